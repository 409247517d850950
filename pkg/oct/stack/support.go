package stack

import (
	"context"
	"slices"

	"strata/pkg/oct"
	"strata/pkg/oct/surface"
)

// silent reports that the two slices were compared and nothing shows that one lies on the other: neither their
// pictures, nor a measured overlap, nor a registration that counts.
func (m *movingSlice) silent(low float64) bool {
	compared := m.displaced.least > 0 || m.search != nil && m.fallback
	return compared && !m.displaced.shown() && m.source != "correlation" && !(m.source == "registration" && m.transform.confidence >= low)
}

// unsupported warns of slices that agree with none of their neighbours, and names those without tissue.
func (p *stackPlan) unsupported(ctx context.Context, res *oct.Resources) error {
	blank := map[*stackSlice]bool{}
	var alone []*stackSlice
	for i, s := range p.slices {
		pairs := p.moving[max(i-1, 0):min(i+1, len(p.moving))]
		if len(pairs) == 0 || slices.ContainsFunc(pairs, func(m *movingSlice) bool { return !m.silent(p.opt.ConfidenceLow) }) {
			continue
		}
		is, err := surface.Blank(ctx, s.image, *res)
		if err != nil {
			return err
		}
		if is {
			blank[s] = true
			res.Warnf("%s: agrees with no neighbour: %s", s.path, surface.BlankText)
		} else {
			alone = append(alone, s)
		}
	}
	var ids []int
	for _, s := range alone {
		if slices.ContainsFunc(p.moving, func(m *movingSlice) bool { return m.slice == s && !blank[m.fixed] || m.fixed == s && !blank[m.slice] }) {
			ids = append(ids, s.id)
		}
	}
	if ids != nil {
		res.Warnf("slices %v: agree with no neighbour: only the recorded shifts and the expected overlaps place them", ids)
	}
	return nil
}
