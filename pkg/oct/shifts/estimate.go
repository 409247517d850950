package shifts

import (
	"context"
	"fmt"
	"math"

	"strata/pkg/oct"
	"strata/pkg/rawtiles"
	"strata/pkg/registration"
	"strata/pkg/work"
)

// EstimateOptions are the options of [Estimate].
type EstimateOptions struct {
	SwapXY  bool // x and y of the stage change places in the table
	Workers int  // that read the settings of tiles
}

// nominalStep is the distance of tiles whose position is not recorded, in widths of a tile.
const nominalStep = 0.8

// area is where the tiles of a slice lie, by the positions of the stage.
type area struct {
	low, high [2]float64 // edges along (x, y), in mm
	tiles     [2]int     // different numbers along x and y in the names of tiles
	voxel     [2]float64 // of the first tile, in µm
	recorded  bool       // by the stage, or else assumed from the names
}

// Estimate computes the table of shifts between consecutive slices from the recorded stage positions of their tiles. A
// slice's area may have grown on one side; the edge that moved less along x, and along y, therefore gives the shift:
// its position in the fixed slice minus its position in the moving one. A row is reliable if both slices have as many
// columns and rows of tiles. If no slice has recorded positions, tiles are assumed to be 0.8 tile widths apart. If only
// some have, Estimate returns an error.
func Estimate(ctx context.Context, slices []rawtiles.Slice, o EstimateOptions) (t *registration.ShiftTable, warnings []string, err error) {
	areas := make([]area, len(slices))
	err = work.Each(ctx, max(1, o.Workers), len(slices), func(_, i int) (err error) {
		areas[i], err = covered(ctx, slices[i])
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	t = &registration.ShiftTable{Judged: true}
	for i, a := range areas {
		if a.recorded != areas[0].recorded {
			with, without := slices[0].ID, slices[i].ID
			if a.recorded {
				with, without = without, with
			}
			return nil, nil, oct.BadInput("%s: slice %02d has no stage_x_pos_mm and stage_y_pos_mm, slice %02d has: want them for all slices", slices[i].Tiles[0].Path, without, with)
		}
		if i == 0 {
			continue
		}
		row := registration.ShiftRow{PairShift: registration.PairShift{Fixed: slices[i-1].ID, Moving: slices[i].ID}, Reliable: areas[i-1].tiles == a.tiles}
		var mm [2]float64
		for d := range mm {
			mm[d] = areas[i-1].low[d] - a.low[d]
			if high := areas[i-1].high[d] - a.high[d]; math.Abs(high) < math.Abs(mm[d]) {
				mm[d] = high
			}
			row.PX[d] = mm[d] / (areas[0].voxel[d] / 1000)
		}
		if o.SwapXY {
			mm[0], mm[1], row.PX[0], row.PX[1] = mm[1], mm[0], row.PX[1], row.PX[0]
		}
		row.X, row.Y = mm[0], mm[1]
		t.Rows = append(t.Rows, row)
	}
	if len(areas) > 0 && !areas[0].recorded {
		warnings = append(warnings, "info.txt of the tiles states no positions of the stage: shifts are those of the numbers of tiles")
	}
	if len(areas) == 1 {
		warnings = append(warnings, fmt.Sprintf("there is only slice %02d: the table has no rows", slices[0].ID))
	}
	return t, warnings, nil
}

// covered reads the settings of all tiles of a slice.
func covered(ctx context.Context, s rawtiles.Slice) (a area, err error) {
	if _, err := s.Grid(); err != nil {
		return a, oct.InputFault(err)
	}
	a.low, a.high = [2]float64{math.Inf(1), math.Inf(1)}, [2]float64{math.Inf(-1), math.Inf(-1)}
	names := [2]map[int]bool{{}, {}}
	for i, tile := range s.Tiles {
		info, err := tile.Info(ctx)
		if err != nil {
			return a, oct.InputFault(err)
		}
		recorded := info.Staged[0] && info.Staged[1]
		if i == 0 {
			a.recorded = recorded
			a.voxel[0], a.voxel[1] = info.Voxel()
		}
		if recorded != a.recorded {
			return a, oct.BadInput("%s: only some tiles of slice %02d have stage_x_pos_mm and stage_y_pos_mm in their info.txt", tile.Path, s.ID)
		}
		for d, size := range [2]float64{info.Width / 1000, info.Height / 1000} {
			index := [2]int{tile.X, tile.Y}[d]
			names[d][index] = true
			centre := info.Stage[d]
			if !recorded {
				centre = float64(float64(index) * float64(nominalStep*size))
			}
			a.low[d] = min(a.low[d], centre-size/2)
			a.high[d] = max(a.high[d], centre+size/2)
		}
	}
	a.tiles = [2]int{len(names[0]), len(names[1])}
	return a, nil
}
