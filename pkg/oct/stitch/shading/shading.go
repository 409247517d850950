// Package shading finds the brightness with which a microscope shows evenly bright tissue from tiles that overlap.
package shading

import "math"

// Shading is the brightness with which the microscope shows evenly bright tissue: a factor for each pixel of a
// tile's projection, the same for all tiles.
type Shading struct {
	width   int
	inverse []float32 // one over the factor, (y, x) of a whole tile
}

// Divide divides ny × nx pixels, the first of which is pixel at of a tile, by the shading.
func (s *Shading) Divide(v []float32, at [2]int, ny, nx int) {
	for y := range ny {
		for x, f := range s.inverse[(at[0]+y)*s.width+at[1]:][:nx] {
			v[y*nx+x] *= f
		}
	}
}

// degrees is the total degree of the polynomial in (y, x), each from −1 to 1 over the tile and without a
// constant, that models the logarithm of the shading.
const degrees = 4

// count is the number of terms of the polynomial.
const count = (degrees+1)*(degrees+2)/2 - 1

// terms returns the terms of the polynomial at a pixel of a tile of the given size.
func terms(tile [2]int, y, x int) (t [count]float64) {
	v, u := (2*float64(y)+1)/float64(tile[0])-1, (2*float64(x)+1)/float64(tile[1])-1
	k := 0
	for degree := 1; degree <= degrees; degree++ {
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

// Equations holds the normal equations of a least-squares fit of the shading. Where two tiles overlap, both show the
// same tissue, so that the ratio of their projections is that of the shading at the two places, whatever the tissue
// looks like. The fit minimises the squared errors of the logarithms of these ratios.
type Equations struct {
	a [count][count]float64
	b [count]float64
}

// Add adds other equations.
func (e *Equations) Add(o *Equations) {
	for i := range e.b {
		e.b[i] += o.b[i]
		for k := range e.a[i] {
			e.a[i][k] += o.a[i][k]
		}
	}
}

// Ratio adds a sample: p and q are the projections of the same tissue at the pixels a and b of two tiles of the given
// size. It is weighted by its squared brightness, so that the detector's floor does not count.
func (e *Equations) Ratio(tile [2]int, p, q float64, a, b [2]int) {
	if !(p > 0 && q > 0) || p-p != 0 || q-q != 0 {
		return
	}
	ratio := math.Log(p / q)
	if math.Abs(ratio) > 1 {
		return
	}
	w := (p + q) * (p + q)
	t, u := terms(tile, a[0], a[1]), terms(tile, b[0], b[1])
	for i := range t {
		t[i] -= u[i]
	}
	for i, v := range t {
		e.b[i] += float64(w * v * ratio)
		for k := range i + 1 {
			e.a[i][k] += float64(w * v * t[k])
		}
	}
}

// Fit returns the shading of tiles of the given size, times a pattern that all tiles share unless it is nil; nil if
// there is neither.
func (e *Equations) Fit(tile [2]int, pattern []float32) *Shading {
	c, ok := e.solve()
	if !ok && pattern == nil {
		return nil
	}
	s := &Shading{width: tile[1], inverse: make([]float32, tile[0]*tile[1])}
	for y := range tile[0] {
		for x := range tile[1] {
			v := 0.0
			for k, t := range terms(tile, y, x) {
				v += float64(c[k] * t)
			}
			i := y*s.width + x
			s.inverse[i] = float32(math.Exp(-min(max(v, -3), 3)))
			if pattern != nil {
				s.inverse[i] *= pattern[i]
			}
		}
	}
	return s
}

// solve solves the equations by Cholesky's method. Terms that the overlaps hardly determine stay near zero.
func (e *Equations) solve() (c [count]float64, ok bool) {
	trace := 0.0
	for i := range e.a {
		trace += e.a[i][i]
	}
	if !(trace > 0) || trace-trace != 0 {
		return c, false
	}
	a := e.a
	for i := range a {
		a[i][i] += 1e-4 * trace / count
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
		c[i] = e.b[i]
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
