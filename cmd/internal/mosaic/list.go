package mosaic

import (
	"context"
	"encoding/json"
	"fmt"
	"text/tabwriter"

	"strata/pkg/cli"
	"strata/pkg/cli/stage"
	"strata/pkg/oct/mosaic"
	"strata/pkg/rawtiles"
	"strata/pkg/units"
)

// sliceInfo describes a slice for --list, as text and as JSON.
type sliceInfo struct {
	Slice   int         `json:"slice"`
	Name    string      `json:"name"` // of the mosaic grid
	Tiles   int         `json:"tiles"`
	Grid    *[2]int     `json:"grid,omitempty"`    // places along the microscope's x and y
	Missing []string    `json:"missing,omitempty"` // tiles
	Raw     *rawInfo    `json:"raw,omitempty"`
	Shape   *[3]int     `json:"shape,omitempty"` // of the mosaic grid (z, y, x)
	Tile    *[3]int     `json:"tile,omitempty"`  // of its tiles
	Voxel   *[3]float64 `json:"voxel_size_um,omitempty"`
	Bytes   int64       `json:"bytes,omitempty"` // of the frames
	Places  []placeInfo `json:"positions,omitempty"`
	Notes   []string    `json:"warnings,omitempty"`
	Problem string      `json:"problem,omitempty"`

	found *mosaic.Mosaic
}

// rawInfo is the settings of the tiles.
type rawInfo struct {
	NX     int     `json:"nx"`
	NY     int     `json:"ny"`
	Extra  int     `json:"n_extra"`
	Repeat int     `json:"n_repeat"`
	Depth  int     `json:"depth"`
	Width  float64 `json:"width_um"`
	Height float64 `json:"height_um"`
	Axial  float64 `json:"axial_resolution_um,omitempty"` // as stated
}

// placeInfo is a tile.
type placeInfo struct {
	Tile  string      `json:"tile"`
	Path  string      `json:"path"`
	X     int         `json:"x"`
	Y     int         `json:"y"`
	Stage [3]*float64 `json:"stage_mm"` // x, y, z; null where it is not stated
}

// list prints the slices. One that cannot be made is listed with its problem, which is the command's error in the end.
func list(ctx context.Context, r *cli.Run, in *input) error {
	var all []*sliceInfo
	var problem error
	for _, s := range in.slices {
		info := &sliceInfo{Slice: s.ID, Name: mosaic.Name(s.ID), Tiles: len(s.Tiles)}
		all = append(all, info)
		m, err := mosaic.Open(ctx, s, options(r))
		if err != nil {
			if ctx.Err() != nil {
				return err
			}
			if info.Problem = err.Error(); problem == nil {
				problem = stage.Failed(err)
			}
			continue
		}
		info.describe(m)
	}
	var err error
	if r.Bool("json") {
		e := json.NewEncoder(r.Stdout)
		e.SetIndent("", "  ")
		err = e.Encode(map[string]any{"root": in.root, "slices": all})
	} else {
		err = printTable(r, all)
	}
	if err != nil {
		return err
	}
	return problem
}

func (info *sliceInfo) describe(m *mosaic.Mosaic) {
	i := m.Infos[0]
	info.found = m
	info.Grid, info.Shape, info.Tile, info.Voxel, info.Bytes, info.Notes = &m.Grid.Size, &m.Shape, &m.Tile, &m.Voxel, m.Bytes(), m.Warnings
	info.Raw = &rawInfo{NX: i.NX, NY: i.NY, Extra: i.Extra, Repeat: i.Repeat, Depth: i.Depth, Width: i.Width, Height: i.Height, Axial: i.Axial}
	info.Missing, _ = m.Grid.Missing(m.Slice.ID, len(m.Grid.Tiles))
	for k, t := range m.Slice.Tiles {
		p := placeInfo{Tile: t.Name(), Path: t.Path, X: t.X, Y: t.Y}
		for d := range p.Stage {
			if m.Infos[k].Staged[d] {
				p.Stage[d] = &m.Infos[k].Stage[d]
			}
		}
		info.Places = append(info.Places, p)
	}
}

// printTable prints a line for each slice, and of a single slice one for each tile.
func printTable(r *cli.Run, all []*sliceInfo) error {
	w := tabwriter.NewWriter(r.Stdout, 0, 8, 2, ' ', 0)
	fmt.Fprintln(w, "slice\ttiles\tgrid x × y\tmissing\tA-lines × frames × samples\tmosaic z × y × x\tvoxel z × y × x (µm)\tstage x, y, z (mm)\tframes")
	for _, s := range all {
		if s.Problem != "" {
			fmt.Fprintf(w, "%02d\t%d\t%s\n", s.Slice, s.Tiles, s.Problem)
			continue
		}
		lines := fmt.Sprint(s.Raw.NX)
		if s.Raw.Extra > 0 {
			lines += fmt.Sprintf("+%d", s.Raw.Extra)
		}
		fmt.Fprintf(w, "%02d\t%d\t%d × %d\t%d\t%s × %d × %d\t%d × %d × %d\t%.4g × %.4g × %.4g\t%s\t%s\n", s.Slice, s.Tiles, s.Grid[0], s.Grid[1], len(s.Missing), lines,
			s.Raw.NY, s.Raw.Depth, s.Shape[0], s.Shape[1], s.Shape[2], s.Voxel[0], s.Voxel[1], s.Voxel[2], position(s.found.Infos[0]), units.FormatSize(s.Bytes))
	}
	if err := w.Flush(); err != nil || len(all) != 1 || all[0].Problem != "" {
		return err
	}
	fmt.Fprintln(w, "\ntile\tx\ty\tstage x, y, z (mm)")
	for k, t := range all[0].found.Slice.Tiles {
		fmt.Fprintf(w, "%s\t%d\t%d\t%s\n", t.Name(), t.X, t.Y, position(all[0].found.Infos[k]))
	}
	return w.Flush()
}

// position returns the stage's position as text.
func position(i rawtiles.Info) (text string) {
	for d, v := range i.Stage {
		if d > 0 {
			text += ", "
		}
		if !i.Staged[d] {
			text += "–"
		} else {
			text += fmt.Sprintf("%g", v)
		}
	}
	return text
}
