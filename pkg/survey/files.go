package survey

import (
	"context"
	"path/filepath"
	"slices"
	"strings"

	"strata/pkg/czi/czistore"
	"strata/pkg/images"
)

// imageNames are the ends of names of files that may be images of their own.
var imageNames = []string{".czi", ".svs", ".ndpi", ".scn", ".bif", ".qptiff", ".vms", ".tif", ".tiff", ".btf", ".tf8", ".zip"}

// mostImages is the number of files whose headers are looked at.
const mostImages = 8

// lookImages looks at files that are images of their own. Files of pixels as plain as those of tiles count only if
// there is nothing else.
func lookImages(ctx context.Context, l *Listing, other bool) (out []*Finding, err error) {
	var scans, stacks []string
	for _, name := range l.Files {
		ext := strings.ToLower(filepath.Ext(name))
		if !slices.Contains(imageNames, ext) {
			continue
		}
		if ext == ".tif" || ext == ".tiff" {
			stacks = append(stacks, name)
		} else {
			scans = append(scans, name)
		}
	}
	if !other {
		if f := oneOf(ctx, l, stacks); f != nil {
			out = append(out, f)
		}
	}
	if f := oneOf(ctx, l, scans); f != nil {
		out = append([]*Finding{f}, out...)
	}
	return out, ctx.Err()
}

// oneOf describes files by the first that can be read.
func oneOf(ctx context.Context, l *Listing, names []string) *Finding {
	if len(names) == 0 {
		return nil
	}
	f := &Finding{Kind: Stack, Confidence: High, What: count(len(names), "image file")}
	f.evidence("%s, such as %s", f.What, names[0])
	for _, name := range names[:min(mostImages, len(names))] {
		if f.file(ctx, filepath.Join(l.Root, filepath.FromSlash(name))) {
			return f
		}
	}
	if len(f.Warnings) == 0 {
		return nil
	}
	f.Confidence = Low
	return f
}

// file describes an image file, and reports whether it can be read.
func (f *Finding) file(ctx context.Context, name string) bool {
	if !images.Is(name) {
		return false
	}
	im, err := openImage(ctx, name)
	if err != nil {
		f.warn("%v", err)
		return false
	}
	st := im.Levels[0].Array.Store()
	defer st.Close()
	f.describe(im, filepath.Base(name))
	f.evidence("%s: %v of %s, %d levels", filepath.Base(name), f.Shape, f.DType, len(im.Levels))
	f.image = name
	stem := strings.TrimSuffix(filepath.Base(name), filepath.Ext(name))
	stem = strings.TrimSuffix(stem, ".ome")
	out := quote(stem + ".ome.zarr")
	f.Commands = []string{"strata view " + quote(name) + " --open", "strata zarr-tool import " + quote(name) + " " + out}
	switch c, ok := st.(*czistore.Store); {
	case ok && c.File().Tiled() > 1:
		f.Kind = Scan
		f.Tiles = c.File().Tiled()
		f.evidence("%d tiles with the positions of the stage", f.Tiles)
		f.Commands = []string{"strata zarr-tool import " + quote(name) + " tiles.ome.zarr --tiles",
			"strata stitch tiles.ome.zarr " + out + " --positions tiles_positions.json", "strata view " + out + " --open"}
	case ok || len(im.Levels) > 1:
		f.Kind = Scan
		f.Commands[1] += " --keep_levels"
	}
	return true
}
