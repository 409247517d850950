package mosaic

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"text/tabwriter"

	"strata/pkg/cli"
	"strata/pkg/oct/mosaic"
	"strata/pkg/tilefiles"
	"strata/pkg/tilefiles/tilestore"
	"strata/pkg/units"
)

// fileInfo describes a slice of tiles in files for --list, as text and as JSON.
type fileInfo struct {
	Slice   int64       `json:"slice"`
	Name    string      `json:"name"`              // of the mosaic grid
	Tiles   int         `json:"tiles"`             // that are there
	Grid    [2]int      `json:"grid"`              // rows and columns
	Missing [][2]int    `json:"missing,omitempty"` // rows and columns of places without a tile
	Axes    []string    `json:"axes"`              // of the mosaic grid
	Shape   []int       `json:"shape"`             // along these
	Tile    [2]int      `json:"tile"`              // pixels (y, x)
	DType   string      `json:"data_type"`
	Voxel   *[3]float64 `json:"voxel_size_um,omitempty"` // (z, y, x); 0: not known
	From    string      `json:"voxel_size_from,omitempty"`
	Bytes   int64       `json:"bytes"` // of the files, decoded
	Places  []filePlace `json:"positions"`
	Notes   []string    `json:"warnings,omitempty"`
	Problem string      `json:"problem,omitempty"`
}

// filePlace is a tile.
type filePlace struct {
	Row    int         `json:"row"`
	Column int         `json:"column"`
	Files  []string    `json:"files"`
	Stage  *[2]float64 `json:"position_um,omitempty"` // (y, x)
}

// listFiles prints slices. One that cannot be made is listed with its problem, which is the command's error in the end.
func listFiles(ctx context.Context, r *cli.Run, set *tilefiles.Set, chosen []tilefiles.Slice) error {
	var all []*fileInfo
	var problem error
	for i := range chosen {
		s := &chosen[i]
		info := &fileInfo{Slice: s.ID, Name: mosaic.Name(int(s.ID)), Tiles: len(s.Tiles), Grid: s.Grid}
		all = append(all, info)
		f, bytes, err := openSlice(ctx, r, set, s)
		if err != nil {
			if ctx.Err() != nil {
				return err
			}
			if info.Problem = err.Error(); problem == nil {
				problem = err
			}
			continue
		}
		info.describe(f, set, bytes)
		if err := f.in.Levels[0].Array.Store().Close(); err != nil {
			return err
		}
	}
	var err error
	if r.Bool("json") {
		e := json.NewEncoder(r.Stdout)
		e.SetIndent("", "  ")
		e.SetEscapeHTML(false)
		err = e.Encode(map[string]any{"root": set.Root, "pattern": set.Pattern.String(), "slices": all})
	} else {
		err = printFiles(r, all)
	}
	if err != nil {
		return err
	}
	return problem
}

func (info *fileInfo) describe(f *fileSlice, set *tilefiles.Set, bytes int64) {
	h := f.in.Levels[0].Array.Store().(*tilestore.Store).Header()
	info.Missing, _ = f.slice.Missing(f.slice.Grid[0] * f.slice.Grid[1])
	for _, x := range f.in.Axes {
		info.Axes = append(info.Axes, x.Name)
	}
	info.Shape, info.Tile, info.DType, info.Bytes, info.Notes = f.in.Levels[0].Array.Shape(), [2]int{h.Height, h.Width}, h.Type.String(), bytes, f.slice.Warnings
	if v, err := set.Voxel(); err == nil {
		info.Voxel, info.From = &v, set.Header.VoxelFrom
		if set.Options.Voxel != [3]float64{} {
			info.From = "--voxel_size"
		}
	}
	for _, t := range f.slice.Tiles {
		p := filePlace{Row: t.Place[0], Column: t.Place[1], Stage: t.Position}
		for _, name := range t.Files {
			if name != "" {
				p.Files = append(p.Files, name)
			}
		}
		info.Places = append(info.Places, p)
	}
}

// printFiles prints a line for each slice, and of a single slice one for each tile.
func printFiles(r *cli.Run, all []*fileInfo) error {
	w := tabwriter.NewWriter(r.Stdout, 0, 8, 2, ' ', 0)
	fmt.Fprintln(w, "slice\ttiles\trows × columns\tmissing\tmosaic\tdata type\tvoxel z × y × x (µm)\tread from\tfiles")
	for _, s := range all {
		if s.Problem != "" {
			fmt.Fprintf(w, "%02d\t%d\t%d × %d\t%s\n", s.Slice, s.Tiles, s.Grid[0], s.Grid[1], s.Problem)
			continue
		}
		var shape []string
		for d, n := range s.Shape {
			shape = append(shape, fmt.Sprintf("%s %d", s.Axes[d], n))
		}
		fmt.Fprintf(w, "%02d\t%d\t%d × %d\t%d\t%s\t%s\t%.4g × %.4g × %.4g\t%s\t%s\n", s.Slice, s.Tiles, s.Grid[0], s.Grid[1], len(s.Missing),
			strings.Join(shape, " × "), s.DType, s.Voxel[0], s.Voxel[1], s.Voxel[2], s.From, units.FormatSize(s.Bytes))
	}
	if err := w.Flush(); err != nil || len(all) != 1 || all[0].Problem != "" {
		return err
	}
	fmt.Fprintln(w, "\nrow\tcolumn\tposition y, x (µm)\tfile")
	for _, p := range all[0].Places {
		at := "–"
		if p.Stage != nil {
			at = fmt.Sprintf("%g, %g", p.Stage[0], p.Stage[1])
		}
		more := ""
		if n := len(p.Files); n > 1 {
			more = fmt.Sprintf(" and %d more", n-1)
		}
		fmt.Fprintf(w, "%d\t%d\t%s\t%s%s\n", p.Row, p.Column, at, tilefiles.Name(p.Files[0]), more)
	}
	return w.Flush()
}
