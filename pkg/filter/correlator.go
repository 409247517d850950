package filter

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/dsp/fourier"
)

// Correlator computes the normalised cross-correlation of two planes at many displacements at once: numerators by
// Fourier transforms, means and variances of each overlap from tables of sums (J. P. Lewis, Fast Normalized
// Cross-Correlation, 1995). It is not safe for concurrent use; its spectra are.
type Correlator struct {
	h, w       int // of planes
	ny, nx, nk int // of transforms: at least twice a plane, so that displacements are not mixed up
	rows       *fourier.FFT
	cols       *fourier.CmplxFFT
	space      []float64
	work       []complex128
	column     []complex128
}

// NewCorrelator returns a Correlator for planes of height × width pixels (y, x).
func NewCorrelator(height, width int) *Correlator {
	c := &Correlator{h: height, w: width, ny: fastLength(2 * height), nx: fastLength(2 * width)}
	c.nk = c.nx/2 + 1
	c.rows, c.cols = fourier.NewFFT(c.nx), fourier.NewCmplxFFT(c.ny)
	c.space, c.work, c.column = make([]float64, c.nx), make([]complex128, c.ny*c.nk), make([]complex128, c.ny)
	return c
}

// CorrelatorBytes returns the memory of a spectrum of a plane of height × width pixels, in bytes; a Correlator takes as
// much.
func CorrelatorBytes(height, width int) int64 {
	return 16*int64(fastLength(2*height))*int64(fastLength(2*width)/2+1) + 16*int64(height+1)*int64(width+1)
}

// Spectrum is a plane that was prepared for Correlator.
type Spectrum struct {
	f        []complex128
	sum, sqr []float64 // (h+1, w+1): of the pixels above and to the left
}

// Spectrum prepares a plane for Correlate. It reuses the memory of old, unless that is nil. Its pixels must be finite.
func (c *Correlator) Spectrum(old *Spectrum, plane []float32) *Spectrum {
	if len(plane) != c.h*c.w {
		panic(fmt.Sprintf("filter: %d pixels for a plane of %d × %d", len(plane), c.h, c.w))
	}
	mean := 0.0
	for _, v := range plane {
		mean += float64(v)
	}
	mean /= float64(len(plane))
	s := old
	if s == nil {
		s = &Spectrum{make([]complex128, c.ny*c.nk), make([]float64, (c.h+1)*(c.w+1)), make([]float64, (c.h+1)*(c.w+1))}
	}
	clear(s.f[c.h*c.nk:])
	clear(c.space)
	for y := range c.h {
		a, b := 0.0, 0.0
		for x, p := range plane[y*c.w:][:c.w] {
			v := float64(p) - mean
			c.space[x] = v
			a, b = a+v, b+float64(v*v)
			i := (y+1)*(c.w+1) + x + 1
			s.sum[i], s.sqr[i] = s.sum[i-c.w-1]+a, s.sqr[i-c.w-1]+b
		}
		c.rows.Coefficients(s.f[y*c.nk:][:c.nk], c.space)
	}
	c.each(s.f, c.cols.Coefficients)
	return s
}

// each transforms the columns of a half spectrum.
func (c *Correlator) each(v []complex128, fft func(dst, src []complex128) []complex128) {
	for x := range c.nk {
		for y := range c.ny {
			c.column[y] = v[y*c.nk+x]
		}
		fft(c.column, c.column)
		for y := range c.ny {
			v[y*c.nk+x] = c.column[y]
		}
	}
}

// box returns the sum of a table's plane over y0 ≤ y < y1, x0 ≤ x < x1.
func (c *Correlator) box(t []float64, y0, y1, x0, x1 int) float64 {
	w := c.w + 1
	return t[y1*w+x1] - t[y0*w+x1] - t[y1*w+x0] + t[y0*w+x0]
}

// Displacements is a range of displacements (y, x): from the first up to the last, included.
type Displacements struct{ First, Last [2]int }

// Size returns the number of displacements along y and x.
func (r Displacements) Size() [2]int {
	return [2]int{r.Last[0] - r.First[0] + 1, r.Last[1] - r.First[1] + 1}
}

// Correlate returns the normalised cross-correlation of the overlap, b displaced by (dy, dx) against a, for all
// displacements of r in C order: b(y, x) is compared with a(y+dy, x+dx). It is 0 where fewer than least pixels overlap
// or a plane's variance there is below a thousandth of its whole variance.
func (c *Correlator) Correlate(a, b *Spectrum, r Displacements, least int) []float32 {
	for i, f := range a.f {
		g := b.f[i]
		c.work[i] = complex(real(f)*real(g)+imag(f)*imag(g), imag(f)*real(g)-real(f)*imag(g))
	}
	c.each(c.work, c.cols.Sequence)
	n := r.Size()
	out := make([]float32, n[0]*n[1])
	whole := float64(c.h * c.w)
	flatA, flatB := 1e-3*c.variance(a)/whole, 1e-3*c.variance(b)/whole
	scale := 1 / float64(c.ny*c.nx)
	for i := range n[0] {
		dy := r.First[0] + i
		y0, y1 := max(0, -dy), min(c.h, c.h-dy) // in b
		if y0 >= y1 {
			continue
		}
		c.rows.Sequence(c.space, c.work[((dy%c.ny)+c.ny)%c.ny*c.nk:][:c.nk])
		for k := range n[1] {
			dx := r.First[1] + k
			x0, x1 := max(0, -dx), min(c.w, c.w-dx)
			m := float64((y1 - y0) * (x1 - x0))
			if x0 >= x1 || m < float64(least) {
				continue
			}
			sa, sb := c.box(a.sum, y0+dy, y1+dy, x0+dx, x1+dx), c.box(b.sum, y0, y1, x0, x1)
			va, vb := c.box(a.sqr, y0+dy, y1+dy, x0+dx, x1+dx)-sa*sa/m, c.box(b.sqr, y0, y1, x0, x1)-sb*sb/m
			if !(va > flatA*m && vb > flatB*m) {
				continue
			}
			p := c.space[((dx%c.nx)+c.nx)%c.nx]*scale - sa*sb/m
			out[i*n[1]+k] = float32(max(min(p/math.Sqrt(va*vb), 1), -1))
		}
	}
	return out
}

// variance returns the sum of a plane's squared deviations from its mean.
func (c *Correlator) variance(s *Spectrum) float64 { return s.sqr[len(s.sqr)-1] }

// Peak is a local maximum of a surface.
type Peak struct {
	D     [2]int
	Value float64
}

// Peaks returns the highest local maxima of a surface over r, at most n, highest first, none closer than apart pixels
// along both axes to a higher one.
func (r Displacements) Peaks(v []float32, n, apart int) (out []Peak) {
	size := r.Size()
	for y := range size[0] {
		for x := range size[1] {
			f := v[y*size[1]+x]
			if len(out) > 4*n && float64(f) <= out[4*n].Value || !top(v, size, y, x) {
				continue
			}
			p := Peak{[2]int{r.First[0] + y, r.First[1] + x}, float64(f)}
			i, _ := slices.BinarySearchFunc(out, p, func(a, b Peak) int {
				if a.Value >= b.Value {
					return -1
				}
				return 1
			})
			out = slices.Insert(out[:min(len(out), 4*n)], i, p)
		}
	}
	kept := out[:0]
	for _, p := range out {
		near := slices.ContainsFunc(kept, func(q Peak) bool { return max(abs(p.D[0]-q.D[0]), abs(p.D[1]-q.D[1])) < apart })
		if !near && len(kept) < n {
			kept = append(kept, p)
		}
	}
	return kept
}

// top reports whether no neighbour in the surface exceeds an element that is positive and not at its border; of equal
// ones the first counts.
func top(v []float32, size [2]int, y, x int) bool {
	f := v[y*size[1]+x]
	if !(f > 0) || y == 0 || x == 0 || y == size[0]-1 || x == size[1]-1 {
		return false
	}
	for d := range 9 {
		if o := v[(y+d/3-1)*size[1]+x+d%3-1]; o > f || o == f && d < 4 {
			return false
		}
	}
	return true
}
