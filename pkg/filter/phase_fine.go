package filter

import (
	"math"
	"math/cmplx"
)

// Register finds the displacement (y, x) in parts of a pixel that moves the content of moving onto that of fixed, by
// phase correlation as scikit-image's phase_cross_correlation does it: all frequencies count alike, there is no window,
// planes repeat beyond their edges, and around the highest correlation (of either sign) the surface is computed at
// steps of 1/steps pixel by a discrete Fourier transform (Guizar-Sicairos, Thurman and Fienup, Optics Letters 33,
// 2008). Pixels that are not finite count as 0. ok is false for planes without any structure.
//
// It suits planes that show the same content in full. [Phase.Match] finds the displacement of planes that overlap in
// part.
func (p *Phase) Register(fixed, moving []float32, height, width, steps int) (dy, dx float64, ok bool) {
	if height == 0 || width == 0 {
		return 0, 0, false
	}
	p.period(height, width)
	p.raw(p.a, fixed)
	p.raw(p.b, moving)
	for i, f := range p.a {
		r := f * cmplx.Conj(p.b[i])
		if m := cmplx.Abs(r); m > 100*epsilon {
			p.a[i], ok = complex(real(r)/m, imag(r)/m), ok || i > 0
		} else {
			p.a[i] = complex(real(r)/(100*epsilon), imag(r)/(100*epsilon))
		}
	}
	if !ok {
		return 0, 0, false
	}
	p.surface()
	best, top := 0, math.Inf(-1)
	for i, v := range p.space {
		if v = math.Abs(v); v > top {
			best, top = i, v
		}
	}
	y, x := wrapped(best/p.nx, p.ny), wrapped(best%p.nx, p.nx)
	if steps <= 1 {
		return float64(y), float64(x), true
	}
	dy, dx = p.finer(y, x, steps)
	return dy, dx, true
}

// epsilon is the distance from 1 to the next number.
const epsilon = 0x1p-52

// wrapped returns the displacement that index i of a surface of n samples stands for.
func wrapped(i, n int) int {
	if i > n/2 {
		return i - n
	}
	return i
}

// raw makes the half spectrum of a plane that has the size of the transform.
func (p *Phase) raw(dst []complex128, src []float32) {
	for i, f := range src {
		if p.space[i] = float64(f); f-f != 0 {
			p.space[i] = 0
		}
	}
	fft := p.rows[p.nx]
	for y := range p.ny {
		fft.Coefficients(dst[y*p.nk:][:p.nk], p.space[y*p.nx:][:p.nx])
	}
	p.columns(dst, p.cols[p.ny].Coefficients)
}

// finer finds the highest correlation around a displacement, at displacements that are multiples of 1/steps pixel.
func (p *Phase) finer(y, x, steps int) (dy, dx float64) {
	n := int(math.Ceil(1.5 * float64(steps)))
	at := func(centre, i int) float64 { return float64(centre*steps+i-n/2) / float64(steps) }
	// first along x, from the half spectrum: the other half is its conjugate
	part := make([]complex128, p.ny*n)
	for i := range n {
		turn := turns(at(x, i), p.nx, p.nk)
		for k := range turn {
			if k > 0 && 2*k != p.nx {
				turn[k] *= 2
			}
		}
		for ky := range p.ny {
			var sum complex128
			for k, v := range p.a[ky*p.nk:][:p.nk] {
				sum += v * turn[k]
			}
			part[ky*n+i] = sum
		}
	}
	top := math.Inf(-1)
	for j := range n {
		turn := turns(at(y, j), p.ny, p.ny)
		for i := range n {
			var sum float64
			for ky, t := range turn {
				sum += real(part[ky*n+i] * t)
			}
			if sum = math.Abs(sum); sum > top {
				top, dy, dx = sum, at(y, j), at(x, i)
			}
		}
	}
	if p.ny == 1 { // along a single sample no displacement differs from another
		dy = 0
	}
	if p.nx == 1 {
		dx = 0
	}
	return dy, dx
}

// turns returns exp(2πi·f·shift/n) for the k stored frequencies; frequencies from n/2 on are negative.
func turns(shift float64, n, k int) []complex128 {
	out := make([]complex128, k)
	for f := range out {
		w := float64(wrapped(f, n))
		if 2*f == n {
			w = -w
		}
		s, c := math.Sincos(2 * math.Pi * w * shift / float64(n))
		out[f] = complex(c, s)
	}
	return out
}

// Overlap returns the normalised cross-correlation of two planes of height × width pixels when the content of moving is
// moved by (dy, dx) whole pixels, over the pixels that both have there and that are finite; 0 if there are none, or if
// one is constant.
func Overlap(fixed, moving []float32, height, width, dy, dx int) float64 {
	return correlateAt(fixed, moving, finiteMean(fixed), finiteMean(moving), height, width, dy, dx)
}

func finiteMean(v []float32) float64 {
	sum, n := 0.0, 0
	for _, f := range v {
		if f-f == 0 {
			sum, n = sum+float64(f), n+1
		}
	}
	return sum / float64(max(n, 1))
}
