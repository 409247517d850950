package shifts

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"

	"strata/pkg/filter"
	"strata/pkg/oct"
	"strata/pkg/rawtiles"
	"strata/pkg/smallfile"
)

// Fact is a known number of an acquisition. From names its source; it is "" if the number is not known.
type Fact struct {
	Value float64
	From  string
}

// Known reports whether the number is known.
func (f Fact) Known() bool { return f.From != "" }

// learn sets a fact that is not known yet, if the value lies above 0 and not above high.
func (f *Fact) learn(value, high float64, from string) {
	if !f.Known() && value > 0 && value <= high {
		*f = Fact{value, from}
	}
}

// Acquisition holds how slices were imaged, as far as it is known, for [Suggest].
type Acquisition struct {
	Thickness Fact // that the blade cuts off, mm
	Overlap   Fact // of tiles, as a fraction
	Tile      Fact // width of a tile, µm
	Pixel     Fact // width of a pixel, µm
	Axial     Fact // distance of samples of an A-line, µm
	Depth     Fact // of an A-line, µm
}

// ReadState reads facts from a JSON file of the microscope: state.json, or the metadata.json of a slice, with
// slice_thickness (mm), overlap_fraction, tile_size_um and tile_n_samples. It ignores other members, and values that
// are no numbers.
func (a *Acquisition) ReadState(r io.Reader, name string) error {
	b, err := smallfile.All(r, name)
	if err != nil {
		return err
	}
	var all map[string]json.RawMessage
	if err := json.Unmarshal(b, &all); err != nil {
		return smallfile.JSONError(name, b, err)
	}
	number := func(key string) (v float64) {
		if json.Unmarshal(all[key], &v) != nil {
			return math.NaN()
		}
		return v
	}
	a.Thickness.learn(number("slice_thickness"), 10, "slice_thickness in "+name)
	a.Overlap.learn(number("overlap_fraction"), 0.99, "overlap_fraction in "+name)
	a.Tile.learn(number("tile_size_um"), 1e6, "tile_size_um in "+name)
	a.Pixel.learn(number("tile_size_um")/number("tile_n_samples"), 1e4, "tile_size_um and tile_n_samples in "+name)
	return nil
}

// ReadTiles reads facts from the info.txt of raw tiles. It reads all tiles of the middle slice, and the first tile of
// every slice, whose stage heights give the distance of slices.
func (a *Acquisition) ReadTiles(ctx context.Context, all []rawtiles.Slice) error {
	if len(all) == 0 {
		return nil
	}
	middle := all[len(all)/2]
	at := map[[2]int]rawtiles.Info{}
	for _, t := range middle.Tiles {
		info, err := t.Info(ctx)
		if err != nil {
			return oct.InputFault(err)
		}
		at[[2]int{t.X, t.Y}] = info
	}
	from := fmt.Sprintf("info.txt of slice %02d", middle.ID)
	info := at[[2]int{middle.Tiles[0].X, middle.Tiles[0].Y}]
	x, y := info.Voxel()
	a.Tile.learn(min(info.Width, info.Height), 1e6, "width and height in "+from)
	a.Pixel.learn(min(x, y), 1e4, "the size and number of pixels in "+from)
	a.Axial.learn(info.Axial, 1e3, from)
	a.Depth.learn(a.Axial.Value*float64(info.Depth), 1e6, from)
	var overlaps []float64
	for place, i := range at {
		for d, next := range [][2]int{{place[0] + 1, place[1]}, {place[0], place[1] + 1}} {
			if n, ok := at[next]; ok && i.Staged[d] && n.Staged[d] {
				overlaps = append(overlaps, 1-math.Abs(n.Stage[d]-i.Stage[d])*1000/[2]float64{i.Width, i.Height}[d])
			}
		}
	}
	if len(overlaps) > 0 {
		a.Overlap.learn(filter.MedianOf(overlaps), 0.99, "the stage's positions in "+from)
	}
	var heights, steps []float64
	for _, s := range all {
		info, err := s.Tiles[0].Info(ctx)
		if err != nil {
			return oct.InputFault(err)
		}
		if !info.Staged[2] {
			return nil
		}
		heights = append(heights, info.Stage[2])
		if n := len(heights); n > 1 {
			steps = append(steps, math.Abs(heights[n-1]-heights[n-2])/float64(max(1, s.ID-all[n-2].ID)))
		}
	}
	if len(steps) > 0 {
		slices.Sort(steps)
		a.Thickness.learn(steps[len(steps)/2], 10, "the stage's heights (stage_z_pos_mm) at the slices")
	}
	return nil
}
