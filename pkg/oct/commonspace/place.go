package commonspace

import (
	"math"
	"slices"

	"strata/pkg/oct"
	"strata/pkg/registration"
)

// place finds the positions of the slices from the sums of shifts.
func (p *Plan) place(table *registration.ShiftTable, res oct.Resources) {
	named := table.IDs()
	sums, warnings := table.Shifts().Positions(named)
	for _, w := range warnings {
		res.Warnf("%s", w)
	}
	voxel := p.slices[0].volume.Voxel
	var absent []int
	for i := range p.slices {
		s := &p.slices[i]
		if _, ok := slices.BinarySearch(named, s.ID); !ok {
			absent = append(absent, s.ID)
		}
		mm := between(named, sums, s.ID)
		for d := range s.at {
			s.at[d] = mm[d]*1000/voxel[2-d] + s.origin[d]
		}
	}
	if len(absent) > 0 {
		res.Warnf("%s: no shift for slices %v: they are put between their neighbours in the table", table.Name, absent)
	}
}

// between returns the position of slice id among those named, in increasing order: in proportion to the numbers between
// its two neighbours, or that of the nearest beyond the ends.
func between(named []int, at map[int][2]float64, id int) [2]float64 {
	i, ok := slices.BinarySearch(named, id)
	switch {
	case len(named) == 0:
		return [2]float64{}
	case ok, i == 0:
		return at[named[i]]
	case i == len(named):
		return at[named[i-1]]
	}
	a, b := named[i-1], named[i]
	t := float64(id-a) / float64(b-a)
	from, to := at[a], at[b]
	for d := range from {
		from[d] += float64((to[d] - from[d]) * t)
	}
	return from
}

// spare is the part of a pixel that a canvas may be short: what sums of shifts leave beyond a whole number.
const spare = 1e-6

// layOut makes positions relative to the smallest, and finds the size of the canvas.
func (p *Plan) layOut(table string, res oct.Resources) error {
	bytes, before := 0.0, 0.0
	for d := range 2 {
		lo, end := math.Inf(1), math.Inf(-1)
		for _, s := range p.slices {
			lo = min(lo, s.at[d])
		}
		for i := range p.slices {
			s := &p.slices[i]
			if s.at[d] -= lo; p.opt.WholePixels {
				s.at[d] = math.RoundToEven(s.at[d])
			}
			end = max(end, s.at[d]+float64(s.volume.Shape[2-d]))
		}
		if !(end < 1<<40) {
			return oct.BadInput("%s: shifts spread the slices over %.3g pixels", table, end)
		}
		p.Canvas[1-d] = int(math.Ceil(end - spare))
	}
	for _, s := range p.slices {
		before += float64(s.volume.Bytes())
		bytes += float64(s.volume.Shape[0]) * float64(s.volume.DType.Size()) * float64(p.Canvas[0]) * float64(p.Canvas[1])
	}
	if bytes > oct.VastBytes && bytes > 8*before || bytes > math.MaxInt64/2 {
		return oct.BadInput("%s: shifts make a canvas of %d × %d pixels, on which the slices take %.1f times as much as they do now", table,
			p.Canvas[0], p.Canvas[1], bytes/before)
	}
	for _, s := range p.slices {
		res.Decided("slice %d: at (%.3f, %.3f) px along x and y of a canvas of %d × %d", s.ID, s.at[0], s.at[1], p.Canvas[1], p.Canvas[0])
	}
	return nil
}
