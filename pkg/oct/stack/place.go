package stack

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"strata/pkg/oct"
)

// leaveOut records the number of cuts between neighbours, the neighbours between which slices are left out, and the
// slices that are interpolated.
func (p *stackPlan) leaveOut(in Input) {
	made := func(s *stackSlice) bool { return in.Config[s.id].Interpolated }
	for _, m := range p.moving {
		if cuts, ok := in.Cuts[m.slice.id]; ok {
			m.cuts = cuts
		}
		m.apart = slices.Contains(in.Apart, m.slice.id)
		m.made = !p.opt.MeasureInterpolated && (made(m.slice) || made(m.fixed))
	}
}

// place determines the recorded positions of the slices in the plane.
func (p *stackPlan) place(in Input, res *oct.Resources) error {
	first := p.slices[0]
	ids := p.ids()
	for _, id := range ids {
		p.position[id] = [2]float64{}
	}
	if in.Shifts != nil {
		p.shifts = in.Shifts.Name
	}
	if !p.opt.NoXYShift && in.Shifts != nil {
		between, outside := in.Shifts.Absent(ids)
		leftOut := func(id int) bool { return slices.Contains(in.LeftOut, id) }
		between, outside = slices.DeleteFunc(between, leftOut), slices.DeleteFunc(outside, leftOut)
		if len(between) > 0 {
			res.Warnf("%s: slices %v are missing: the slices beside them are stacked as neighbours", p.shifts, between)
		}
		if len(outside) > 0 {
			res.Warnf("%s: slices %v are missing: the volume begins or ends without them", p.shifts, outside)
		}
		at, warnings := in.Shifts.Positions(ids)
		for _, w := range warnings {
			res.Warnf("%s", w)
		}
		for id, mm := range at {
			p.position[id] = [2]float64{mm[0] * 1000 / first.voxel[2], mm[1] * 1000 / first.voxel[1]}
		}
		if !p.opt.IgnoreOrigins {
			for _, s := range p.slices {
				at := p.position[s.id]
				p.position[s.id] = [2]float64{at[0] + s.origin[1], at[1] + s.origin[0]}
			}
		}
		p.centred = true
	}
	if p.opt.AccumulateTranslations && slices.ContainsFunc(p.moving, func(m *movingSlice) bool { return m.transform.loaded || m.transform.moves }) {
		for i, d := range p.accumulate() {
			id := p.moving[i].slice.id
			at := p.position[id]
			p.position[id] = [2]float64{at[0] - d[0], at[1] - d[1]}
		}
		p.centred = true
	}
	for _, s := range p.slices {
		if at := p.position[s.id]; !(max(math.Abs(at[0]), math.Abs(at[1])) < farthest) {
			return oct.BadInput("%s: slice %d lies at (%.3g, %.3g) pixels: wrong shifts, or wrong voxel sizes", cmp.Or(p.shifts, s.path), s.id, at[0], at[1])
		}
	}
	return nil
}

// farthest bounds positions and the canvas, in pixels.
const farthest = 1 << 40

func (p *stackPlan) ids() (ids []int) {
	for _, s := range p.slices {
		ids = append(ids, s.id)
	}
	return ids
}

// all returns the base and all moving slices.
func (p *stackPlan) all() []*movingSlice { return append([]*movingSlice{p.base}, p.moving...) }

// layOut determines the canvas that holds all slices, and their positions on it.
func (p *stackPlan) layOut(res *oct.Resources) error {
	first := p.slices[0]
	p.canvas = [2]int{first.shape[1], first.shape[2]}
	if p.centred {
		if err := p.centre(p.ids()); err != nil {
			return err
		}
	}
	canvas := oct.Rect(0, p.canvas[0], 0, p.canvas[1])
	for _, m := range p.all() {
		s, at := m.slice, p.position[m.slice.id]
		m.origin = [2]int{int(math.RoundToEven(at[1])), int(math.RoundToEven(at[0]))}
		whole := oct.Rect(m.origin[0], m.origin[0]+s.shape[1], m.origin[1], m.origin[1]+s.shape[2])
		if m.place = whole.And(canvas); m.place != whole {
			res.Warnf("%s: planes of %d × %d are larger than the %d × %d of %s: cropped to the canvas of %d × %d",
				s.path, s.shape[1], s.shape[2], first.shape[1], first.shape[2], first.path, p.canvas[0], p.canvas[1])
		}
		p.show(m, res)
	}
	return nil
}

// centre moves the origin to the smallest position and determines the size of the canvas.
func (p *stackPlan) centre(ids []int) error {
	mid := p.position[ids[len(ids)/2]]
	lo, hi := [2]float64{math.Inf(1), math.Inf(1)}, [2]float64{math.Inf(-1), math.Inf(-1)}
	for _, id := range ids {
		at := p.position[id]
		for d := range 2 {
			at[d] -= mid[d]
			lo[d], hi[d] = min(lo[d], at[d]), max(hi[d], at[d])
		}
		p.position[id] = at
	}
	for _, id := range ids {
		at := p.position[id]
		p.position[id] = [2]float64{at[0] - lo[0], at[1] - lo[1]}
	}
	for d := range 2 { // (x, y) to (y, x)
		n := math.Ceil(hi[d] + float64(p.slices[0].shape[2-d]) - lo[d])
		if !(n < farthest) {
			what := "shifts"
			if p.opt.AccumulateTranslations {
				what = "shifts and accumulated translations"
			}
			return oct.BadInput("%s: %s spread the slices over %.3g pixels", cmp.Or(p.shifts, p.slices[0].path), what, n)
		}
		p.canvas[1-d] = int(n)
	}
	return nil
}

// maxVolume is the size in bytes above which a volume far larger than its slices is attributed to wrong shifts.
const maxVolume = 1 << 40

// checkCanvas returns an error for volumes that only wrong shifts can cause.
func (p *stackPlan) checkCanvas() error {
	first := p.slices[0]
	area := float64(p.canvas[0]) * float64(p.canvas[1])
	bytes := area * float64(p.depth) * 4
	spread := area > 4*float64(first.shape[1])*float64(first.shape[2])
	if spread && bytes >= maxVolume || bytes >= math.MaxInt64/4 {
		return oct.BadInput("%s: shifts make a canvas of %d × %d pixels for slices of %d × %d: a volume of %d planes and %s", cmp.Or(p.shifts, first.path),
			p.canvas[0], p.canvas[1], first.shape[1], first.shape[2], p.depth, terabytes(bytes))
	}
	return nil
}

func terabytes(n float64) string { return fmt.Sprintf("%.1f TB", n/1e12) }
