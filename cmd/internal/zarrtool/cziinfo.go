package zarrtool

import (
	"context"
	"fmt"
	"strings"

	"strata/pkg/cli"
	"strata/pkg/czi"
)

// cziInfo describes a CZI file apart from its images.
type cziInfo struct {
	SubBlocks     int      `json:"subblocks"`
	Tiles         int      `json:"tiles"` // of level 0
	Scenes        int      `json:"scenes"`
	PixelTypes    []string `json:"pixel_types"` // of channels
	Compression   []string `json:"compression"`
	Bounds        [4]int   `json:"bounds_px"` // x, y, width, height in the common pixel plane
	Magnification float64  `json:"magnification,omitempty"`
	Objective     string   `json:"objective,omitempty"`
	Acquired      string   `json:"acquired,omitempty"`
	Attachments   []string `json:"attachments,omitempty"`
}

func describeCZI(ctx context.Context, r *cli.Run, f *czi.File) *cziInfo {
	info := &cziInfo{SubBlocks: f.Len(), Tiles: f.Tiled(), Scenes: len(f.Scenes())}
	for _, c := range f.Channels() {
		p, _ := f.PixelType(c)
		info.PixelTypes = append(info.PixelTypes, p.String())
	}
	for _, c := range f.Compressions() {
		info.Compression = append(info.Compression, c.String())
	}
	b := f.Bounds(czi.AllScenes)
	info.Bounds = [4]int{b.Min.X, b.Min.Y, b.Dx(), b.Dy()}
	if m, err := f.Metadata(ctx); err == nil { // else there was a warning
		info.Magnification, info.Objective, info.Acquired = m.Objective.Magnification, m.Objective.Name, m.Acquired
	}
	all, err := f.Attachments(ctx)
	if err != nil {
		r.Warn("%s", err)
	}
	for _, a := range all {
		info.Attachments = append(info.Attachments, a.Name)
	}
	return info
}

func (c *cziInfo) String() string {
	number := func(n int, what string) string {
		if n == 1 {
			return "1 " + what
		}
		return fmt.Sprintf("%d %ss", n, what)
	}
	parts := []string{"CZI", number(c.SubBlocks, "sub-block"), number(c.Tiles, "tile"), number(c.Scenes, "scene")}
	var types []string
	for _, t := range c.PixelTypes {
		if len(types) == 0 || types[len(types)-1] != t {
			types = append(types, t)
		}
	}
	parts = append(parts, strings.Join(types, " and "), strings.Replace(strings.Join(c.Compression, " and "), "none", "uncompressed", 1))
	if c.Magnification > 0 {
		parts = append(parts, fmt.Sprintf("%g×", c.Magnification))
	}
	if len(c.Attachments) > 0 {
		parts = append(parts, "with "+strings.Join(c.Attachments, ", "))
	}
	return strings.Join(parts, ", ")
}
