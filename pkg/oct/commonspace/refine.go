package commonspace

import (
	"context"
	"math"
	"slices"

	"strata/pkg/filter"
	"strata/pkg/mem"
	"strata/pkg/oct"
	"strata/pkg/oct/blocks"
	"strata/pkg/registration"
)

// steps is the number of steps to a pixel at which shifts of pictures are searched.
const steps = 10

// pictureBytes is the memory that a shift's search needs for each pixel of the two pictures: pictures as they are and
// padded, two half spectra, their magnitudes and the surface.
const pictureBytes = 2*4 + 2*4 + 2*8 + 8 + 8

// refine replaces unreliable shifts by those that pictures show.
func (p *Plan) refine(ctx context.Context, table *registration.ShiftTable, res oct.Resources) error {
	if !table.Judged {
		res.Warnf("%s: has no column %q: no shift is refined", table.Name, "reliable")
		return nil
	}
	find := filter.NewPhase()
	for i := range table.Rows {
		row := &table.Rows[i]
		fixed, moving := p.slice(row.Fixed), p.slice(row.Moving)
		if row.Reliable || fixed == nil || moving == nil {
			continue
		}
		found, err := p.compare(ctx, find, *row, fixed.volume, moving.volume, res)
		if err != nil {
			return err
		}
		if found == nil {
			res.Warnf("slices %d and %d: their pictures show no structure to refine the shift by", row.Fixed, row.Moving)
			continue
		}
		if found.Used {
			row.PX = found.PX
			row.X, row.Y = found.PX[0]*moving.volume.Voxel[2]/1000, found.PX[1]*moving.volume.Voxel[1]/1000
		}
		verdict := map[bool]string{true: "used", false: "not used"}[found.Used]
		res.Decided("slices %d and %d: pictures show a shift of (%.1f, %.1f) px, correlation %.3f, %.1f px from the recorded one: %s",
			row.Fixed, row.Moving, found.PX[0], found.PX[1], found.Correlation, found.Discrepancy, verdict)
		p.Refined = append(p.Refined, *found)
	}
	return nil
}

func (p *Plan) slice(id int) *placed {
	i, ok := slices.BinarySearchFunc(p.slices, id, func(s placed, id int) int { return s.ID - id })
	if !ok {
		return nil
	}
	return &p.slices[i]
}

// compare finds the shift between pictures of two slices; nil if they show nothing.
func (p *Plan) compare(ctx context.Context, find *filter.Phase, row registration.ShiftRow, fixed, moving *blocks.Volume, res oct.Resources) (*Refined, error) {
	height, width := max(fixed.Shape[1], moving.Shape[1]), max(fixed.Shape[2], moving.Shape[2])
	need := int64(mem.Product(height, width, pictureBytes))
	if need > res.Mem/2 {
		return nil, res.TooLittle(int64(mem.Sum(int(need), int(need))), "comparing slices %d and %d of %d × %d pixels", row.Fixed, row.Moving, height, width)
	}
	res = res.Less(need)
	var pictures [2][]float32
	for i, v := range []*blocks.Volume{fixed, moving} {
		picture, err := project(ctx, v, res)
		if err != nil {
			return nil, err
		}
		pictures[i] = padded(picture, v.Shape[1], v.Shape[2], height, width)
	}
	dy, dx, ok := find.Register(pictures[0], pictures[1], height, width, steps)
	if !ok {
		return nil, nil
	}
	out := &Refined{Fixed: row.Fixed, Moving: row.Moving, PX: [2]float64{dx, dy}}
	recorded := row.PX
	for d := range recorded {
		if math.IsNaN(recorded[d]) {
			recorded[d] = [2]float64{row.X, row.Y}[d] * 1000 / moving.Voxel[2-d]
		}
	}
	out.Discrepancy = math.Hypot(dx-recorded[0], dy-recorded[1])
	wy, wx := int(math.RoundToEven(dy)), int(math.RoundToEven(dx))
	common := max(wy, 0) < min(fixed.Shape[1], moving.Shape[1]+wy) && max(wx, 0) < min(fixed.Shape[2], moving.Shape[2]+wx)
	if common {
		out.Correlation = filter.Overlap(pictures[0], pictures[1], height, width, wy, wx)
	}
	out.Used = common &&
		(p.opt.MinCorrelation == 0 || out.Correlation >= p.opt.MinCorrelation) && (p.opt.MaxDiscrepancy == 0 || out.Discrepancy <= p.opt.MaxDiscrepancy)
	return out, nil
}

// project returns the largest voxels along z in the middle fifth of a volume. NaN is left out.
func project(ctx context.Context, v *blocks.Volume, res oct.Resources) ([]float32, error) {
	mid, half := v.Shape[0]/2, max(1, v.Shape[0]/10)
	part := v.Planes(max(0, mid-half), min(v.Shape[0], mid+half+1))
	cut, err := part.Cut(blocks.Plan{Size: part.Columns(oct.Layout{}), Work: "projecting columns"}, res)
	if err != nil {
		return nil, err
	}
	out := make([]float32, v.Shape[1]*v.Shape[2])
	err = cut.Each(ctx, func(_ context.Context, b *blocks.Block) error {
		for y := range b.Size[1] {
			row := out[(b.Start[1]+y)*v.Shape[2]+b.Start[2]:][:b.Size[2]]
			for x := range row {
				row[x] = float32(math.NaN())
			}
			for z := range b.Size[0] {
				for x, f := range b.Voxels[b.At(z, y, 0):][:b.Size[2]] {
					if f > row[x] || row[x] != row[x] {
						row[x] = f
					}
				}
			}
		}
		return nil
	})
	return out, err
}

// padded returns a picture with NaN beyond its far edges.
func padded(v []float32, ny, nx, height, width int) []float32 {
	if ny == height && nx == width {
		return v
	}
	out := make([]float32, height*width)
	for y := range height {
		row := out[y*width:][:width]
		n := 0
		if y < ny {
			n = copy(row, v[y*nx:][:nx])
		}
		for x := n; x < width; x++ {
			row[x] = float32(math.NaN())
		}
	}
	return out
}
