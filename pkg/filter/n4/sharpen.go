package n4

import (
	"math"

	"gonum.org/v1/gonum/dsp/fourier"
)

// histogram counts numbers between low and high in bins whose centres lie step apart, the first at low and the last at
// high; a number counts for the two bins around it by its distance from them.
type histogram struct {
	low, step float64
	counts    []float64
}

func newHistogram(low, high float64, bins int) *histogram {
	return &histogram{low: low, step: (high - low) / float64(bins-1), counts: make([]float64, bins)}
}

// place returns the bin below a number, and the number's distance from its centre in bins.
func (h *histogram) place(v float64) (bin int, t float64) {
	c := (v - h.low) / h.step
	bin = min(max(int(c), 0), len(h.counts)-2)
	return bin, c - float64(bin)
}

// sharpener removes the blur that a field gives to the histogram of log intensities: the distribution is deconvolved by
// a Gaussian, and each number becomes the one expected of it under the sharper distribution (Sled, Zijdenbos and Evans,
// IEEE Transactions on Medical Imaging 17, 1998; its parameters are those of Tustison et al. 2010).
type sharpener struct {
	fwhm, noise float64
	fft         *fourier.CmplxFFT
	n           int
}

func newSharpener(bins int, fwhm, noise float64) *sharpener {
	n := 2
	for n < 2*bins {
		n *= 2
	}
	return &sharpener{fwhm: fwhm, noise: noise, fft: fourier.NewCmplxFFT(n), n: n}
}

// inverse returns the real part of an inverse transform.
func (s *sharpener) inverse(spectrum []complex128) []float64 {
	out := make([]float64, s.n)
	for i, c := range s.fft.Sequence(nil, spectrum) {
		out[i] = real(c) / float64(s.n)
	}
	return out
}

// expectation returns, for the centre of each bin, the intensity that is expected without the blur.
func (s *sharpener) expectation(h *histogram) []float64 {
	bins := len(h.counts)
	pad := (s.n - bins) / 2
	v := make([]complex128, s.n)
	for i, c := range h.counts {
		v[pad+i] = complex(c, 0)
	}
	width := s.fwhm / h.step
	factor, scale := 4*math.Ln2/(width*width), 2*math.Sqrt(math.Ln2/math.Pi)/width
	blur := make([]complex128, s.n)
	for i := range blur {
		d := float64(min(i, s.n-i))
		blur[i] = complex(scale*exp(-factor*d*d), 0)
	}
	blur = s.fft.Coefficients(nil, blur)
	v = s.fft.Coefficients(nil, v)
	for i, b := range blur { // the Wiener filter; a Gaussian that is symmetric has a real spectrum
		g := real(b)
		v[i] *= complex(g/(float64(g*g)+s.noise), 0)
	}
	sharp := s.inverse(v)
	weighted, mass := make([]complex128, s.n), make([]complex128, s.n)
	for i, u := range sharp {
		u = max(u, 0)
		centre := h.low + float64(float64(i-pad)*h.step)
		weighted[i], mass[i] = complex(float64(centre*u), 0), complex(u, 0)
	}
	weighted, mass = s.fft.Coefficients(nil, weighted), s.fft.Coefficients(nil, mass)
	for i, b := range blur {
		g := complex(real(b), 0)
		weighted[i] *= g
		mass[i] *= g
	}
	above, below := s.inverse(weighted), s.inverse(mass)
	out, least := make([]float64, bins), 0.0
	for _, b := range below {
		least = max(least, b)
	}
	least *= 1e-12 // rounding of the transform
	for i := range out {
		out[i] = h.low + float64(float64(i)*h.step)
		if b := below[pad+i]; b > least {
			out[i] = above[pad+i] / b
		}
	}
	return out
}

// Exp returns the exponential function, within 10⁻¹⁵ of it. math.Exp differs in the last bit between processors.
func Exp(x float64) float64 { return exp(x) }

func exp(x float64) float64 {
	const (
		high = 6.93147180369123816490e-01 // ln 2 = high + low; high has 21 zero bits at its end
		low  = 1.90821492927058770002e-10
	)
	switch {
	case x != x:
		return x
	case x < -700:
		return 0
	case x > 700:
		return math.Inf(1)
	}
	k := math.Floor(x*(1/math.Ln2) + 0.5)
	r := x - float64(k*high) - float64(k*low) // |r| ≤ ln 2 / 2
	p := series[0]
	for _, c := range series[1:] {
		p = c + float64(p*r)
	}
	return p * math.Float64frombits(uint64(1023+int64(k))<<52)
}

// series holds 1/13!, …, 1/1!, 1/0!.
var series = func() (s [14]float64) {
	f := 1.0
	for n := range s {
		if n > 0 {
			f *= float64(n)
		}
		s[len(s)-1-n] = 1 / f
	}
	return s
}()
