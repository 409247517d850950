package stitch

import (
	"context"

	"strata/pkg/filter"
	"strata/pkg/oct/stitch/affine"
	"strata/pkg/oct/stitch/consensus"
	"strata/pkg/oct/stitch/reference"
)

// byReference finds the displacements along the axes by the reference's rules.
func (e *estimator) byReference(ctx context.Context) (*estimation, error) {
	expects := byAxis(e.grid.Expected)
	var measures []measure
	var pairs []reference.Pair
	for k, a := range e.all {
		middle := a.mosaic.Shape[0] / 2
		a.depths = [2]int{middle, middle + 1}
		if err := eachPair(ctx, a, func(p *filter.Phase, n neighbours) measure {
			return highestPeak(p, n, expects)
		}, func(_ neighbours, m measure) {
			m.a, m.b = m.a+e.first[k], m.b+e.first[k]
			measures = append(measures, m)
			if m.reason == "" {
				pairs = append(pairs, reference.Pair{Axis: m.axis, D: m.d})
			}
		}); err != nil {
			return nil, err
		}
	}
	if len(pairs) == 0 {
		return e.unknown(measures, errNothingCommon), nil
	}
	steps, count, spread := reference.Pool(pairs)
	e.grid.Expected = e.complete(steps, [2]bool{count[0] > 0, count[1] > 0})
	t := affine.Transform{Pairs: len(pairs), Spread: milli(spread)}
	return e.found(t, measures, consensus.Arrange(e.grid, nil, nil, 1), count)
}

// highestPeak measures the displacement of two neighbours by the reference's rules, within their expected overlap.
func highestPeak(p *filter.Phase, n neighbours, expects expectation) measure {
	m := measure{pair: n.pair, d: expects(n.pair), emptyA: reference.Empty(n.va.v), emptyB: reference.Empty(n.vb.v)}
	if m.emptyA || m.emptyB {
		m.reason = emptyTile
		return m
	}
	s, ok := displaced(n.va.n, n.vb.n, n.expected(expects), 0, 1)
	if !ok {
		m.reason = noOverlap
		return m
	}
	fixed, moving := filter.Crop(n.va.v, n.va.n[1], s.a, s.ny, s.nx), filter.Crop(n.vb.v, n.vb.n[1], s.b, s.ny, s.nx)
	d, correlation, ok := reference.Shift(p, fixed, moving, s.ny, s.nx)
	if !ok {
		m.reason = nothingThere
		return m
	}
	m.d, m.correlation = [2]float64{float64(s.a[0]-s.b[0]) + d[0], float64(s.a[1]-s.b[1]) + d[1]}, correlation
	return m
}
