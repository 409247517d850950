package filter

import (
	"fmt"
	"math"
	"math/cmplx"
	"slices"

	"gonum.org/v1/gonum/dsp/fourier"
)

// PhaseShift finds the displacement in whole pixels of moving against fixed, planes of height × width pixels
// (y, x) in C order. It returns the shift for which moving(y, x) = fixed(y+dy, x+dx) where both exist: the
// content of moving lies at −(dy, dx). It returns (0, 0) if a plane is constant or empty. See [Phase.Shift]
// for the method; use a [Phase] for more than one pair.
func PhaseShift(fixed, moving []float32, height, width int) (dy, dx int) {
	return NewPhase().Shift(fixed, moving, height, width)
}

// Phase finds displacements by phase correlation. It keeps Fourier tables and memory for the sizes that it
// has seen. It is not safe for concurrent use: make one per worker.
type Phase struct {
	rows map[int]*fourier.FFT
	cols map[int]*fourier.CmplxFFT

	ny, nx, nk              int // size of the transform, and of its half spectrum along x
	space                   []float64
	a, b                    []complex128 // half spectra, (ny, nk); a becomes the phase spectrum
	column                  []complex128
	wy, wx                  []float64 // windows
	mags                    []float64
	peaks                   []peak
	mean                    [2]float64 // of the finite pixels of fixed and moving
	flatF, flatM, line, row []float64  // of SubPixel
}

// NewPhase returns a Phase. It allocates memory as needed, about 48 bytes per pixel of the largest plane.
func NewPhase() *Phase {
	return &Phase{rows: map[int]*fourier.FFT{}, cols: map[int]*fourier.CmplxFFT{}}
}

// peak is a local maximum of the correlation surface.
type peak struct {
	y, x  int
	value float64
}

const (
	// phaseTaper is the part of a plane, on each side, over which the window
	// falls to zero.
	phaseTaper = 0.125
	// phasePeaks is the number of maxima of the correlation surface that are examined.
	phasePeaks = 6
	// peakFraction is the minimum height of a maximum relative to the highest one.
	peakFraction = 0.2
	// maxClimb is the maximum number of pixels that the whole-pixel shift moves uphill from a maximum: the
	// window leaves a bias of about one.
	maxClimb = 4
	// minCommon is the smallest part of the planes that a candidate must leave
	// in common.
	minCommon = 0.04
)

// Shift computes [PhaseShift] in the memory of p.
//
// Both planes lose their mean and a polynomial of second degree (shading), are tapered to zero at the border
// (a Tukey window over an eighth of the length on each side, so that the border is no edge and a narrow
// overlap loses little), padded with zeros to lengths that suit the Fourier transform (2^a·3^b·5^c), and
// transformed, real to complex. The cross spectrum R is divided by |R| + m, where m is the 99th percentile of
// its magnitude: this keeps the phase alone where the signal is strongest and attenuates it where noise
// prevails. (Images of tissue have their signal in a few per cent of the spectrum; the phase of all the rest
// would drown it.)
//
// A maximum of the correlation surface stands for all shifts that are equal modulo the period. Among the
// highest maxima and their aliases, the one with the best normalised cross-correlation of the planes' overlap
// wins; this tells apart shifts of more than half a plane and accidental maxima. From there the
// cross-correlation is climbed pixel by pixel, which removes the bias of the window. Pixels that are not
// finite count as the mean of the others.
func (p *Phase) Shift(fixed, moving []float32, height, width int) (dy, dx int) {
	m := p.Match(fixed, moving, height, width)
	return m.DY, m.DX
}

// PhaseMatch is a displacement in whole pixels, as [PhaseShift] defines it.
type PhaseMatch struct {
	DY, DX int
	// Correlation is the normalised cross-correlation of the planes' overlap at this displacement; 0 if there
	// is nothing to compare.
	Correlation float64
	// Common is the number of pixels in which the planes overlap.
	Common int
}

// Match computes [Phase.Shift] together with the correlation at that displacement.
func (p *Phase) Match(fixed, moving []float32, height, width int) PhaseMatch {
	return p.MatchWithin(fixed, moving, height, width, max(height, width))
}

// MatchWithin computes [Phase.Match] among displacements of at most limit pixels along either axis.
func (p *Phase) MatchWithin(fixed, moving []float32, height, width, limit int) PhaseMatch {
	return p.MatchNear(fixed, moving, height, width, [2]int{}, limit)
}

// MatchNear computes [Phase.Match] among displacements that differ from expected (y, x) by at most limit
// pixels along either axis.
func (p *Phase) MatchNear(fixed, moving []float32, height, width int, expected [2]int, limit int) PhaseMatch {
	none := PhaseMatch{DY: expected[0], DX: expected[1], Common: max(height-abs(expected[0]), 0) * max(width-abs(expected[1]), 0)}
	if !p.spectrum(fixed, moving, height, width) {
		return none
	}
	p.surface()
	p.maxima(expected, limit)
	best, bestScore := none, math.Inf(-1)
	consider := func(dy, dx int) {
		common := (height - abs(dy)) * (width - abs(dx))
		if abs(dy) >= height || abs(dx) >= width || max(abs(dy-expected[0]), abs(dx-expected[1])) > limit || float64(common) < minCommon*float64(height*width) {
			return
		}
		c := correlateAt(fixed, moving, p.mean[0], p.mean[1], height, width, dy, dx)
		// what chance reaches shrinks with the square root of the area
		if score := math.Atanh(min(c, 1-1e-12)) * math.Sqrt(float64(common)); score > bestScore {
			best, bestScore = PhaseMatch{dy, dx, c, common}, score
		}
	}
	if limit < min(height, width) {
		consider(expected[0], expected[1])
	}
	for _, k := range p.peaks {
		if k.value < peakFraction*p.peaks[0].value {
			break
		}
		for _, dy := range aliases(k.y, p.ny, height) {
			for _, dx := range aliases(k.x, p.nx, width) {
				consider(dy, dx)
			}
		}
	}
	for range maxClimb {
		at := best
		for d := range 9 {
			if d != 4 {
				consider(at.DY+d/3-1, at.DX+d%3-1)
			}
		}
		if best == at {
			break
		}
	}
	return best
}

func abs(n int) int { return max(n, -n) }

// aliases returns the shifts within a plane of length n that a maximum at index k of a surface with the given
// period stands for.
func aliases(k, period, n int) []int {
	var out [2]int
	s := out[:0]
	if k < n {
		s = append(s, k)
	}
	if k != 0 && period-k < n {
		s = append(s, k-period)
	}
	return s
}

// fastLength returns the smallest 2^a·3^b·5^c that is at least n.
func fastLength(n int) int {
	for ; ; n++ {
		r := n
		for _, f := range []int{2, 3, 5} {
			for r%f == 0 {
				r /= f
			}
		}
		if r == 1 {
			return n
		}
	}
}

// resize prepares the tables and the memory for planes of a size.
func (p *Phase) resize(height, width int) {
	p.period(fastLength(height), fastLength(width))
	p.wy, p.wx = tukey(p.wy, height), tukey(p.wx, width)
}

// period prepares for transforms of ny × nx samples.
func (p *Phase) period(ny, nx int) {
	p.ny, p.nx, p.nk = ny, nx, nx/2+1
	if p.rows[p.nx] == nil {
		p.rows[p.nx] = fourier.NewFFT(p.nx)
	}
	if p.cols[p.ny] == nil {
		p.cols[p.ny] = fourier.NewCmplxFFT(p.ny)
	}
	p.space = sized(p.space, p.ny*p.nx)
	p.a, p.b = sized(p.a, p.ny*p.nk), sized(p.b, p.ny*p.nk)
	p.mags = sized(p.mags, p.ny*p.nk)
	p.column = sized(p.column, columnsAtOnce*p.ny)
}

func sized[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}

// tukey returns a cosine-tapered window of n samples; none of them is zero.
func tukey(w []float64, n int) []float64 {
	w = sized(w, n)
	edge := phaseTaper * float64(n)
	for i := range w {
		d := min(float64(i), float64(n-1-i)) + 0.5
		w[i] = 1
		if d < edge {
			w[i] = 0.5 * (1 - math.Cos(math.Pi*d/edge))
		}
	}
	return w
}

// spectrum computes the phase spectrum of two planes into p.a. It returns false if one of them is constant.
func (p *Phase) spectrum(fixed, moving []float32, height, width int) bool {
	if n := height * width; len(fixed) != n || len(moving) != n {
		panic(fmt.Sprintf("filter: %d and %d pixels for planes of %d × %d", len(fixed), len(moving), height, width))
	}
	if height == 0 || width == 0 {
		return false
	}
	p.resize(height, width)
	if !p.transform(p.a, &p.mean[0], fixed, height, width) || !p.transform(p.b, &p.mean[1], moving, height, width) {
		return false
	}
	for i, f := range p.a {
		r := f * cmplx.Conj(p.b[i])
		p.a[i] = r
		p.mags[i] = cmplx.Abs(r)
	}
	mags := sized(p.space, len(p.mags))
	copy(mags, p.mags)
	floor := selectNth(mags, len(mags)-1-len(mags)/100)
	for i, m := range p.mags {
		if d := m + floor; d > 0 {
			p.a[i] = complex(real(p.a[i])/d, imag(p.a[i])/d)
		}
	}
	p.a[0] = 0
	return true
}

// transform makes the half spectrum of a plane, and its mean; false if it is
// constant.
func (p *Phase) transform(dst []complex128, average *float64, src []float32, height, width int) bool {
	p.flatF = sized(p.flatF, height*width)
	var ok bool
	if *average, ok = p.flatten(p.flatF, src, height, width); !ok {
		return false
	}
	clear(p.space)
	for y := range height {
		row := p.space[y*p.nx:][:width]
		for x, v := range p.flatF[y*width:][:width] {
			row[x] = v * p.wy[y] * p.wx[x]
		}
	}
	fft := p.rows[p.nx]
	for y := range p.ny {
		out := dst[y*p.nk:][:p.nk]
		if y >= height {
			clear(out)
			continue
		}
		fft.Coefficients(out, p.space[y*p.nx:][:p.nx])
	}
	p.columns(dst, p.cols[p.ny].Coefficients)
	return true
}

// Surface adds the correlation surface of two planes to sum, whose size is that of [SurfaceSize]: element (y,
// x) belongs to all shifts (dy, dx) that are equal to it modulo that size. Surfaces of pairs with the same
// displacement can be summed to find what no single pair shows. It returns false and adds nothing if there is
// nothing to compare.
func (p *Phase) Surface(sum []float32, fixed, moving []float32, height, width int) bool {
	if !p.spectrum(fixed, moving, height, width) {
		return false
	}
	p.surface()
	scale := 1 / float64(len(p.space))
	for i, v := range p.space {
		sum[i] += float32(v * scale)
	}
	return true
}

// SurfaceSize returns the size (y, x) of the correlation surface of planes of height × width pixels.
func SurfaceSize(height, width int) (ny, nx int) { return fastLength(height), fastLength(width) }

// columnsAtOnce is the number of columns gathered together: a cache line holds four complex numbers.
const columnsAtOnce = 4

// columns applies a transform to each column of a half spectrum.
func (p *Phase) columns(v []complex128, fft func(dst, src []complex128) []complex128) {
	for x := 0; x < p.nk; x += columnsAtOnce {
		n := min(columnsAtOnce, p.nk-x)
		for y := range p.ny {
			for k, c := range v[y*p.nk+x:][:n] {
				p.column[k*p.ny+y] = c
			}
		}
		for k := range n {
			c := p.column[k*p.ny:][:p.ny]
			fft(c, c)
		}
		for y := range p.ny {
			row := v[y*p.nk+x:][:n]
			for k := range row {
				row[k] = p.column[k*p.ny+y]
			}
		}
	}
}

// surface makes the correlation surface of the phase spectrum in p.space,
// leaving the spectrum.
func (p *Phase) surface() {
	copy(p.b, p.a)
	p.columns(p.b, p.cols[p.ny].Sequence)
	fft := p.rows[p.nx]
	for y := range p.ny {
		fft.Sequence(p.space[y*p.nx:][:p.nx], p.b[y*p.nk:][:p.nk])
	}
}

// maxima collects the highest local maxima of the surface within limit pixels of
// a displacement, highest first.
func (p *Phase) maxima(expected [2]int, limit int) {
	p.peaks = p.peaks[:0]
	far := func(i, expected, period int) bool {
		d := ((i-expected)%period + period) % period
		return min(d, period-d) > limit
	}
	at := func(y, x int) float64 { return p.space[(y+p.ny)%p.ny*p.nx+(x+p.nx)%p.nx] }
	for y := range p.ny {
		if far(y, expected[0], p.ny) {
			continue
		}
		row := p.space[y*p.nx:][:p.nx]
		for x, v := range row {
			if len(p.peaks) == phasePeaks && v <= p.peaks[phasePeaks-1].value || far(x, expected[1], p.nx) {
				continue
			}
			top := true
			for d := 0; d < 9 && top; d++ {
				// of equal neighbours the first in order counts
				if n := at(y+d/3-1, x+d%3-1); n > v || (n == v && d < 4) {
					top = p.ny*p.nx == 1 || (p.ny == 1 && d/3 != 1) || (p.nx == 1 && d%3 != 1)
				}
			}
			if !top {
				continue
			}
			i, _ := slices.BinarySearchFunc(p.peaks, v, func(k peak, v float64) int {
				if k.value >= v {
					return -1
				}
				return 1
			})
			p.peaks = slices.Insert(p.peaks[:min(len(p.peaks), phasePeaks-1)], i, peak{y, x, v})
		}
	}
}

// correlateAt returns the normalised cross-correlation of moving(y, x) and fixed(y+dy, x+dx) over the pixels
// where both exist and are finite. The sums are taken about of and om, values near the means, so that they
// lose no digits.
func correlateAt(fixed, moving []float32, of, om float64, height, width, dy, dx int) float64 {
	y0, y1 := max(0, -dy), min(height, height-dy)
	x0, x1 := max(0, -dx), min(width, width-dx)
	if y0 >= y1 || x0 >= x1 {
		return 0
	}
	var n, sf, sm, ff, mm, fm float64
	for y := y0; y < y1; y++ {
		f := fixed[(y+dy)*width+x0+dx:][:x1-x0]
		for x, v := range moving[y*width+x0:][:x1-x0] {
			a, b := float64(f[x])-of, float64(v)-om
			if c := float64(a * b); c-c == 0 { // both finite
				n++
				sf, sm = sf+a, sm+b
				ff, mm, fm = ff+float64(a*a), mm+float64(b*b), fm+c
			}
		}
	}
	if n == 0 {
		return 0
	}
	ff, mm, fm = ff-sf*sf/n, mm-sm*sm/n, fm-sf*sm/n
	if !(ff > 1e-14*of*of*n && mm > 1e-14*om*om*n) {
		return 0
	}
	return fm / math.Sqrt(ff*mm)
}
