package n4

import "math"

// Lattice is a uniform cubic B-spline over a grid of samples (z, y, x): a smooth field given by few control points. Its domain reaches from
// the first sample of each axis to the last.
type Lattice struct {
	Samples [3]int    // of the grid
	Control [3]int    // control points, at least 4 along each axis
	Values  []float64 // of the control points, in C order
}

// NewLattice returns a lattice of zeros.
func NewLattice(samples, control [3]int) *Lattice {
	return &Lattice{samples, control, make([]float64, control[0]*control[1]*control[2])}
}

// add adds a lattice of the same control points.
func (l *Lattice) add(other *Lattice) {
	for i, v := range other.Values {
		l.Values[i] += v
	}
}

// Refine returns the same field on a lattice with half the distance between control points: c of them along an axis become 2(c−3)+3.
func (l *Lattice) Refine() *Lattice {
	out, values := &Lattice{Samples: l.Samples, Control: l.Control}, l.Values
	for d := range 3 {
		n := out.Control[d]
		m := 2*(n-3) + 3
		outer, inner := 1, 1
		for k, c := range out.Control {
			if k < d {
				outer *= c
			} else if k > d {
				inner *= c
			}
		}
		next := make([]float64, outer*m*inner)
		for o := range outer {
			for j := range m {
				to, from := next[(o*m+j)*inner:][:inner], values[o*n*inner:]
				i := (j + 1) / 2
				for k := range to {
					if j%2 == 0 {
						to[k] = (from[i*inner+k] + from[(i+1)*inner+k]) / 2
					} else {
						to[k] = (from[(i-1)*inner+k] + float64(6*from[i*inner+k]) + from[(i+1)*inner+k]) / 8
					}
				}
			}
		}
		values, out.Control[d] = next, m
	}
	out.Values = values
	return out
}

// Tap holds the weights of the control points that determine the field at one place of an axis.
type Tap struct {
	First  int // of the four control points
	Weight [4]float64
}

// tap returns the weights at position x of an axis, in samples; positions outside the domain have those of its end.
func tap(x float64, samples, control int) Tap {
	u := 0.0
	if samples > 1 {
		u = min(max(x, 0), float64(samples-1)) / float64(samples-1) * float64(control-3)
	}
	first := min(int(u), control-4)
	t := u - float64(first)
	s := 1 - t
	return Tap{first, [4]float64{
		s * s * s / 6,
		(4 - float64(6*t*t) + float64(3*t*t*t)) / 6,
		(4 - float64(6*s*s) + float64(3*s*s*s)) / 6,
		t * t * t / 6,
	}}
}

// Taps returns the weights of n positions along axis d, position i at first + step·i samples.
func (l *Lattice) Taps(d, n int, first, step float64) []Tap {
	taps := make([]Tap, n)
	for i := range taps {
		taps[i] = tap(first+float64(step*float64(i)), l.Samples[d], l.Control[d])
	}
	return taps
}

// Plane reduces the lattice to the control points (y, x) of the plane at z. dst has room for them.
func (l *Lattice) Plane(dst []float64, z Tap) { reduce(dst, l.Values[z.First*len(dst):], z.Weight) }

// Row reduces the control points of a plane to those of the row at y.
func Row(dst, plane []float64, y Tap) { reduce(dst, plane[y.First*len(dst):], y.Weight) }

// reduce adds four rows of control points by their weights.
func reduce(dst, rows []float64, w [4]float64) {
	n := len(dst)
	a, b, c, d := rows[:n], rows[n:][:n], rows[2*n:][:n], rows[3*n:][:n]
	for i := range dst {
		dst[i] = float64(w[0]*a[i]) + float64(w[1]*b[i]) + float64(w[2]*c[i]) + float64(w[3]*d[i])
	}
}

// At returns the field at a place of a row.
func At(row []float64, x *Tap) float64 {
	r := row[x.First : x.First+4 : x.First+4]
	return float64(x.Weight[0]*r[0]) + float64(x.Weight[1]*r[1]) + float64(x.Weight[2]*r[2]) + float64(x.Weight[3]*r[3])
}

// approximation computes lattices that approximate scattered data on a grid, by the algorithm of Lee, Wolberg and Shin, "Scattered data
// interpolation with multilevel B-splines", IEEE Transactions on Visualization and Computer Graphics 3, 1997: a sample p of value v asks
// control point c for φ = w_c·v / Σ w², where w are the weights of its taps, and a control point takes the mean of what is asked, weighted
// by w_c². A weight is a product over the axes, so that sums over samples are formed along x, then y, then z.
type approximation struct {
	samples, control [3]int
	taps             [3][]cubes
	cover            []float64   // Σ w² of each control point
	planes           [][]float64 // sums of each plane of samples
}

// cubes holds the powers of a tap's weights for sums.
type cubes struct {
	first         int
	square, cubed [4]float64 // w², and w³ / Σ w²
}

func newApproximation(samples, control [3]int) *approximation {
	a := &approximation{samples: samples, control: control, planes: make([][]float64, samples[0])}
	for z := range a.planes {
		a.planes[z] = make([]float64, control[1]*control[2])
	}
	for d, n := range samples {
		a.taps[d] = make([]cubes, n)
		for i := range a.taps[d] {
			t := tap(float64(i), n, control[d])
			c, sum := cubes{first: t.First}, 0.0
			for k, w := range t.Weight {
				c.square[k] = w * w
				sum += c.square[k]
			}
			for k, w := range t.Weight {
				c.cubed[k] = w * w * w / sum
			}
			a.taps[d][i] = c
		}
	}
	return a
}

// plane sums over plane z of the samples, from rows that fill makes: values, NaN where there is no sample.
// line is scratch for a row of samples, sums for one of control points.
func (a *approximation) plane(z int, line, sums []float64, squared bool, fill func(y int, line []float64)) {
	out := a.planes[z]
	clear(out)
	for y := range a.samples[1] {
		fill(y, line)
		clear(sums)
		for x, v := range line {
			if v != v {
				continue
			}
			t := &a.taps[2][x]
			s, w := sums[t.first:t.first+4:t.first+4], &t.cubed
			if squared {
				w = &t.square
			}
			s[0] += float64(w[0] * v)
			s[1] += float64(w[1] * v)
			s[2] += float64(w[2] * v)
			s[3] += float64(w[3] * v)
		}
		t := a.taps[1][y]
		spread(out[t.first*len(sums):], sums, t.weights(squared))
	}
}

func (c *cubes) weights(squared bool) [4]float64 {
	if squared {
		return c.square
	}
	return c.cubed
}

// spread adds a row of sums to four rows of control points.
func spread(rows, sums []float64, w [4]float64) {
	n := len(sums)
	for k, w := range w {
		r := rows[k*n:][:n]
		for i, v := range sums {
			r[i] += float64(w * v)
		}
	}
}

// volume adds the sums of all planes, in their order.
func (a *approximation) volume(squared bool) []float64 {
	out := make([]float64, a.control[0]*a.control[1]*a.control[2])
	for z, sums := range a.planes {
		t := a.taps[0][z]
		spread(out[t.first*len(sums):], sums, t.weights(squared))
	}
	return out
}

// lattice returns the approximation once the sums of all planes are there.
func (a *approximation) lattice() *Lattice {
	l := &Lattice{a.samples, a.control, a.volume(false)}
	for i, c := range a.cover {
		if l.Values[i] /= c; c == 0 || math.IsNaN(l.Values[i]) {
			l.Values[i] = 0
		}
	}
	return l
}
