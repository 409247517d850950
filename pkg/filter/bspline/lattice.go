// Package bspline holds smooth fields as uniform cubic B-splines over few control points: [Lattice] a scalar over a
// volume, [Warp] a displacement over a plane.
package bspline

// Lattice is a uniform cubic B-spline over a grid of samples (z, y, x): a smooth field given by few control points. Its
// domain reaches from the first sample of each axis to the last.
type Lattice struct {
	Samples [3]int    // of the grid
	Control [3]int    // control points, at least 4 along each axis
	Values  []float64 // of the control points, in C order
}

// New returns a lattice of zeros.
func New(samples, control [3]int) *Lattice {
	return &Lattice{samples, control, make([]float64, control[0]*control[1]*control[2])}
}

// Add adds a lattice of the same control points.
func (l *Lattice) Add(other *Lattice) {
	for i, v := range other.Values {
		l.Values[i] += v
	}
}

// Refine returns the same field on a lattice with half the distance between control points: c of them along an axis
// become 2(c−3)+3.
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

// TapAt returns the weights at position x of an axis of that many samples and control points; positions outside the
// domain have those of its end.
func TapAt(x float64, samples, control int) Tap {
	u := 0.0
	if samples > 1 {
		u = min(max(x, 0), float64(samples-1)) / float64(samples-1) * float64(control-3)
	}
	return tap(u, control)
}

// tap returns the weights at u spans from the first sample.
func tap(u float64, control int) Tap {
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
		taps[i] = TapAt(first+float64(step*float64(i)), l.Samples[d], l.Control[d])
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
