package filter

import "math"

// surface is a polynomial in (y, x) on a plane's pixels, of a bounded total
// degree: the least-squares fit to numbers that the plane has.
type surface struct {
	y, x [][]float64 // orthonormal polynomials of degree 0, 1, …
	c    [][]float64 // coefficients: c[a][b] of y[a]·x[b]
}

func newSurface(v []float64, height, width, degree int) *surface {
	s := &surface{y: orthogonal(height, degree), x: orthogonal(width, degree)}
	for a := range degree + 1 {
		s.c = append(s.c, make([]float64, degree+1-a))
	}
	along := make([]float64, degree+1)
	for r := range height {
		row := v[r*width:][:width]
		if len(s.x) == 3 { // all at once, as none waits for another
			along[0], along[1], along[2] = dot3(row, s.x[0], s.x[1], s.x[2])
		} else {
			for b, p := range s.x {
				sum := 0.0
				for k, f := range row {
					sum += float64(f * p[k])
				}
				along[b] = sum
			}
		}
		for a, c := range s.c {
			for b := range c {
				c[b] += float64(s.y[a][r] * along[b])
			}
		}
	}
	return s
}

// dot3 returns the products of a row with three others.
func dot3(row, p, q, r []float64) (a, b, c float64) {
	p, q, r = p[:len(row)], q[:len(row)], r[:len(row)]
	for k, f := range row {
		a, b, c = a+float64(f*p[k]), b+float64(f*q[k]), c+float64(f*r[k])
	}
	return a, b, c
}

// row returns the polynomial on row y, in dst's memory where that is enough.
func (s *surface) row(dst []float64, y int) []float64 {
	dst = sized(dst, len(s.x[0]))
	clear(dst)
	for b, p := range s.x {
		f := 0.0
		for a := range len(s.c) - b {
			f += float64(s.c[a][b] * s.y[a][y])
		}
		for k, v := range p {
			dst[k] += float64(f * v)
		}
	}
	return dst
}

// orthogonal returns the polynomials of degree 0 to degree on n samples, orthonormal; zero where n is too
// few.
func orthogonal(n, degree int) [][]float64 {
	p := make([][]float64, degree+1)
	for d := range p {
		p[d] = make([]float64, n)
		for i := range p[d] {
			u := (2*float64(i)+1)/float64(n) - 1
			p[d][i] = 1
			for range d {
				p[d][i] *= u
			}
		}
		for range 2 { // the second time for the digits
			for _, q := range p[:d] {
				s := 0.0
				for i, v := range q {
					s += float64(v * p[d][i])
				}
				for i, v := range q {
					p[d][i] -= float64(v * s)
				}
			}
		}
		norm := 0.0
		for _, v := range p[d] {
			norm += float64(v * v)
		}
		scale := 0.0
		if norm > 1e-9 {
			scale = 1 / math.Sqrt(norm)
		}
		for i := range p[d] {
			p[d][i] *= scale
		}
	}
	return p
}

// RemovePolynomial subtracts from a plane of height × width pixels the polynomial in (y, x) of a total degree that fits
// it best.
func RemovePolynomial(v []float32, height, width, degree int) {
	wide := make([]float64, len(v))
	for i, f := range v {
		wide[i] = float64(f)
	}
	fit := newSurface(wide, height, width, degree)
	var row []float64
	for y := range height {
		row = fit.row(row, y)
		for x, p := range row {
			v[y*width+x] = float32(wide[y*width+x] - p)
		}
	}
}
