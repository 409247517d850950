package filter

import (
	"math"
	"math/cmplx"
)

// Affine maps points p = (x, y) of one plane to points M·(p − C) + C + T of another, in pixels.
type Affine struct {
	M    [2][2]float64
	T, C [2]float64
}

// Identity returns the map that moves nothing, about a centre.
func Identity(c [2]float64) Affine { return Affine{M: [2][2]float64{{1, 0}, {0, 1}}, C: c} }

// At returns the point that (x, y) is mapped to.
func (a Affine) At(x, y float64) (float64, float64) {
	x, y = x-a.C[0], y-a.C[1]
	return float64(a.M[0][0]*x) + float64(a.M[0][1]*y) + a.C[0] + a.T[0], float64(a.M[1][0]*x) + float64(a.M[1][1]*y) + a.C[1] + a.T[1]
}

// Determinant returns the determinant of M.
func (a Affine) Determinant() float64 {
	return float64(a.M[0][0]*a.M[1][1]) - float64(a.M[0][1]*a.M[1][0])
}

// Power returns the fraction alpha of the map, about the same centre: maps whose fractions add up to 1 give the whole
// map when they are applied one after the other. M becomes its power alpha, and T becomes (I − M^alpha)(I − M)⁻¹T, or
// alpha·T where M leaves T unchanged. The power of a map with negative eigenvalues is complex; imaginary is the largest
// imaginary part that is dropped, relative to the largest element.
func (a Affine) Power(alpha float64) (p Affine, imaginary float64) {
	// eigenvalues l and k; a function f of the matrix is f(l)·I + f[l,k]·(M − l·I), with the divided difference f[l,k]
	half, det := complex((a.M[0][0]+a.M[1][1])/2, 0), complex(a.Determinant(), 0)
	root := cmplx.Sqrt(half*half - det)
	l, k := half+root, half-root
	power := func(z complex128) complex128 { return cmplx.Exp(complex(alpha, 0) * cmplx.Log(z)) }
	slope := func(z complex128) complex128 { return complex(alpha, 0) * power(z) / z }
	step := func(z complex128) complex128 { // (1 − z^alpha)/(1 − z)
		if d := z - 1; cmplx.Abs(d) < 1e-5 {
			return complex(alpha, 0) * (1 + complex(alpha-1, 0)/2*d*(1+complex(alpha-2, 0)/3*d))
		}
		return (1 - power(z)) / (1 - z)
	}
	stepSlope := func(z complex128) complex128 { // its derivative
		if d := z - 1; cmplx.Abs(d) < 1e-4 {
			return complex(alpha*(alpha-1)/2, 0) * (1 + complex(alpha-2, 0)*2/3*d)
		}
		return (step(z) - slope(z)) / (1 - z)
	}
	p = Affine{C: a.C}
	m, lost := a.function(l, k, power, slope)
	p.M, imaginary = m, lost
	by, _ := a.function(l, k, step, stepSlope)
	for i := range 2 {
		p.T[i] = float64(by[i][0]*a.T[0]) + float64(by[i][1]*a.T[1])
	}
	return p, imaginary
}

// function returns the real part of a function of M, whose eigenvalues are l and k, and the largest imaginary part
// relative to the largest element.
func (a Affine) function(l, k complex128, f, slope func(complex128) complex128) (out [2][2]float64, lost float64) {
	at := f(l)
	var difference complex128
	if d := l - k; cmplx.Abs(d) < 1e-7*(1+cmplx.Abs(l)) {
		difference = slope((l + k) / 2)
	} else {
		difference = (at - f(k)) / d
	}
	most := 0.0
	for i := range 2 {
		for j := range 2 {
			v := difference * complex(a.M[i][j], 0)
			if i == j {
				v += at - difference*l
			}
			out[i][j] = real(v)
			lost, most = max(lost, math.Abs(imag(v))), max(most, cmplx.Abs(v))
		}
	}
	if most > 0 {
		lost /= most
	}
	return out, lost
}

// Resample writes rows y0 … y1−1 of columns x0 … x1−1 of a plane to dst, which holds only those: pixel p shows src, a
// plane of ny × nx pixels, at the point that p is mapped to. Sampling, edges and fill are those of [Rigid.Resample].
func (a Affine) Resample(dst, src []float32, ny, nx, y0, y1, x0, x1 int, fill float32) {
	for y := y0; y < y1; y++ {
		r := rigidRow{ny: ny, nx: nx, fill: fill, dx: a.M[0][0], dy: a.M[1][0], first: float64(x0)}
		r.x, r.y = a.At(0, float64(y))
		row := dst[(y-y0)*(x1-x0):][:x1-x0]
		r.scalar(row, src, rigidVector(row, src, &r))
	}
}
