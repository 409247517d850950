package stitch

import (
	"context"
	"math"

	"strata/pkg/filter"
)

// shading is the brightness with which the microscope shows evenly bright tissue: a factor for each pixel of a
// tile's projection, the same for all tiles.
type shading struct {
	width   int
	inverse []float32 // one over the factor, (y, x) of a whole tile
}

// shadingDegree is the total degree of the polynomial in (y, x), each from −1 to 1 over the tile and without a
// constant, that models the logarithm of the shading.
const shadingDegree = 4

// shadingTerms is the number of terms of the polynomial.
const shadingTerms = (shadingDegree+1)*(shadingDegree+2)/2 - 1

// terms returns the terms of the polynomial at a pixel of a tile.
func (g *grid) terms(y, x int) (t [shadingTerms]float64) {
	v, u := (2*float64(y)+1)/float64(g.tile[0])-1, (2*float64(x)+1)/float64(g.tile[1])-1
	k := 0
	for degree := 1; degree <= shadingDegree; degree++ {
		for i := range degree + 1 {
			p := 1.0
			for range i {
				p *= v
			}
			for range degree - i {
				p *= u
			}
			t[k] = p
			k++
		}
	}
	return t
}

// normal holds the normal equations of a least-squares fit.
type normal struct {
	a [shadingTerms][shadingTerms]float64
	b [shadingTerms]float64
}

// shadingStep is the distance of the samples in pixels.
const shadingStep = 3

// findShading fits the shading of mosaics acquired alike. Where two tiles overlap, both show the same tissue, so
// that the ratio of their projections is that of the shading at the two places, whatever the tissue looks like.
// The fit minimises the squared errors of the logarithms of these ratios in all overlaps. The displacements of
// neighbours need to be known to a few pixels only, because their errors average out. Samples are weighted by
// their squared brightness, so that the detector's floor does not count.
func findShading(ctx context.Context, all []*aligner, expected []expectation) error {
	var sum normal
	g := &all[0].grid
	for i, a := range all {
		err := eachPair(ctx, a, func(_ *filter.Phase, n neighbours) *normal {
			if n.va.v == nil || n.vb.v == nil {
				return nil
			}
			return a.grid.ratios(n, n.expected(expected[i]))
		}, func(_ neighbours, m *normal) {
			if m == nil {
				return
			}
			for i := range sum.b {
				sum.b[i] += m.b[i]
				for k := range sum.a[i] {
					sum.a[i][k] += m.a[i][k]
				}
			}
		})
		if err != nil {
			return err
		}
	}
	c, ok := sum.solve()
	if !ok && all[0].pattern == nil {
		return nil
	}
	s := &shading{width: g.tile[1], inverse: make([]float32, g.tile[0]*g.tile[1])}
	for y := range g.tile[0] {
		for x := range g.tile[1] {
			v := 0.0
			for k, t := range g.terms(y, x) {
				v += float64(c[k] * t)
			}
			i := y*s.width + x
			s.inverse[i] = float32(math.Exp(-min(max(v, -3), 3)))
			if p := all[0].pattern; p != nil {
				s.inverse[i] *= p[i]
			}
		}
	}
	for _, a := range all {
		a.shading = s
	}
	return nil
}

// ratios returns the normal equations of one overlap.
func (g *grid) ratios(n neighbours, d [2]int) *normal {
	s, ok := displaced(n.va.n, n.vb.n, d, 0, 1)
	if !ok {
		return nil
	}
	m := &normal{}
	for y := 0; y < s.ny; y += shadingStep {
		for x := 0; x < s.nx; x += shadingStep {
			p := float64(n.va.v[(s.a[0]+y)*n.va.n[1]+s.a[1]+x])
			q := float64(n.vb.v[(s.b[0]+y)*n.vb.n[1]+s.b[1]+x])
			if !(p > 0 && q > 0) || p-p != 0 || q-q != 0 {
				continue
			}
			ratio := math.Log(p / q)
			if math.Abs(ratio) > 1 {
				continue
			}
			w := (p + q) * (p + q)
			t, u := g.terms(n.va.at[0]+s.a[0]+y, n.va.at[1]+s.a[1]+x), g.terms(n.vb.at[0]+s.b[0]+y, n.vb.at[1]+s.b[1]+x)
			for i := range t {
				t[i] -= u[i]
			}
			for i, v := range t {
				m.b[i] += float64(w * v * ratio)
				for k := range i + 1 {
					m.a[i][k] += float64(w * v * t[k])
				}
			}
		}
	}
	return m
}

// solve solves the equations by Cholesky's method. Terms that the overlaps hardly determine stay near zero.
func (m *normal) solve() (c [shadingTerms]float64, ok bool) {
	trace := 0.0
	for i := range m.a {
		trace += m.a[i][i]
	}
	if !(trace > 0) || trace-trace != 0 {
		return c, false
	}
	a := m.a
	for i := range a {
		a[i][i] += 1e-4 * trace / shadingTerms
	}
	for i := range a {
		for k := range i + 1 {
			s := a[i][k]
			for j := range k {
				s -= float64(a[i][j] * a[k][j])
			}
			if i == k {
				if !(s > 0) {
					return c, false
				}
				a[i][i] = math.Sqrt(s)
			} else {
				a[i][k] = s / a[k][k]
			}
		}
	}
	for i := range c {
		c[i] = m.b[i]
		for j := range i {
			c[i] -= float64(a[i][j] * c[j])
		}
		c[i] /= a[i][i]
	}
	for i := len(c) - 1; i >= 0; i-- {
		for j := i + 1; j < len(c); j++ {
			c[i] -= float64(a[j][i] * c[j])
		}
		c[i] /= a[i][i]
	}
	return c, true
}
