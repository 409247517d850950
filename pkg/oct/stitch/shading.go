package stitch

import (
	"context"

	"strata/pkg/filter"
	"strata/pkg/oct/stitch/shading"
)

// shadingStep is the distance of the samples in pixels.
const shadingStep = 3

// findShading fits the shading of mosaics acquired alike to all overlaps: see [shading.Equations]. The displacements of
// neighbours need to be known to a few pixels only, because their errors average out.
func findShading(ctx context.Context, all []*aligner, expected []expectation) error {
	var sum shading.Equations
	for i, a := range all {
		err := eachPair(ctx, a, func(_ *filter.Phase, n neighbours) *shading.Equations {
			if n.va.v == nil || n.vb.v == nil {
				return nil
			}
			return a.grid.ratios(n, n.expected(expected[i]))
		}, func(_ neighbours, e *shading.Equations) {
			if e != nil {
				sum.Add(e)
			}
		})
		if err != nil {
			return err
		}
	}
	if s := sum.Fit(all[0].grid.tile, all[0].pattern); s != nil {
		for _, a := range all {
			a.shading = s
		}
	}
	return nil
}

// ratios returns the equations of one overlap.
func (g *grid) ratios(n neighbours, d [2]int) *shading.Equations {
	s, ok := displaced(n.va.n, n.vb.n, d, 0, 1)
	if !ok {
		return nil
	}
	e := &shading.Equations{}
	for y := 0; y < s.ny; y += shadingStep {
		for x := 0; x < s.nx; x += shadingStep {
			p := float64(n.va.v[(s.a[0]+y)*n.va.n[1]+s.a[1]+x])
			q := float64(n.vb.v[(s.b[0]+y)*n.vb.n[1]+s.b[1]+x])
			e.Ratio(g.tile, p, q, [2]int{n.va.at[0] + s.a[0] + y, n.va.at[1] + s.a[1] + x}, [2]int{n.vb.at[0] + s.b[0] + y, n.vb.at[1] + s.b[1] + x})
		}
	}
	return e
}
