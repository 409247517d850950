// Package basic estimates the flat-field that a set of images shares with BaSiC (Peng et al., A BaSiC tool
// for background and shading correction of optical microscopy images, Nature Communications 8, 2017): every
// image is a smooth flat-field times its own brightness, plus a sparse remainder. There is no dark-field; the
// smoothness of the flat-field is 1. (Stages specification, focal, step 2.)
//
// Numbers are float64 and every sum has a fixed order.
package basic

import (
	"math"
)

const (
	bits = 7
	// Size is the height and width at which the flat-field is estimated.
	Size   = 1 << bits
	pixels = Size * Size
)

const (
	maxRounds     = 10   // of reweighting
	maxSteps      = 500  // of the solver, per round
	tolerance     = 1e-3 // residual of the solver, relative to the images
	reweightStop  = 1e-2 // relative change of the flat-field that ends the rounds
	penaltyGrowth = 1.5
	penaltyMax    = 1e7 // relative to the first
	epsilon       = 0.1 // of the weights
)

// Memory returns how many bytes [FlatField] needs for a number of images, besides the images.
func Memory(images int) int64 { return (3*int64(images) + 8) * pixels * 8 }

// FlatField estimates the flat-field, Size × Size with mean 1, of consecutive images of that size. All
// numbers must be finite and not negative, at least one above 0. It uses the augmented Lagrangian solver that
// basicpy calls "approximate".
func FlatField(images []float32) []float64 {
	t := len(images) / pixels
	f := newFit(images, t)
	last := make([]float64, pixels)
	for i := range last {
		last[i] = 1
	}
	for i := range f.weight {
		f.weight[i] = 1
	}
	for range maxRounds {
		f.solve()
		field := f.field(last)
		change, size := 0.0, 0.0
		for i, v := range field {
			change += math.Abs(v - last[i])
			size += math.Abs(last[i])
		}
		last = field
		if change <= reweightStop*size {
			break
		}
		f.reweight()
	}
	return last
}

// fit is a running estimate of I ≈ S·B + R.
type fit struct {
	images     []float32 // I: T × pixels
	weight     []float64 // W, T × pixels
	rest       []float64 // R, T × pixels
	multiplier []float64 // Y, T × pixels
	smooth     []float64 // S, pixels
	spectrum   []float64 // Ŝ, of S
	brightness []float64 // B, T
	sum        []float64 // over t of I − R − SB + Y/μ, pixels
	t          int
	norm       float64 // ‖I‖
	largest    float64 // singular value of I
	mean       []float64
	dct        *dct
}

func newFit(images []float32, t int) *fit {
	f := &fit{images: images, t: t, dct: newDCT(),
		weight: make([]float64, t*pixels), rest: make([]float64, t*pixels), multiplier: make([]float64, t*pixels),
		smooth: make([]float64, pixels), spectrum: make([]float64, pixels), sum: make([]float64, pixels),
		brightness: make([]float64, t), mean: make([]float64, t),
	}
	for i := range t {
		var sum, square float64
		for _, v := range f.image(i) {
			sum += float64(v)
			square += float64(v) * float64(v)
		}
		f.mean[i] = sum / pixels
		f.norm += square
	}
	f.norm = math.Sqrt(f.norm)
	f.largest = f.singularValue()
	return f
}

func (f *fit) image(i int) []float32 { return f.images[i*pixels : (i+1)*pixels] }

// singularValue returns the largest singular value of I, by power iteration on I·Iᵀ: the images are not
// negative, so that a vector of ones is never orthogonal to what is sought, and the value converges twice as
// fast as the vector.
func (f *fit) singularValue() float64 {
	v, u := make([]float64, f.t), make([]float64, pixels)
	for i := range v {
		v[i] = 1 / math.Sqrt(float64(f.t))
	}
	last := 0.0
	for range 1000 {
		clear(u)
		for i, c := range v {
			for x, p := range f.image(i) {
				u[x] += float64(c * float64(p))
			}
		}
		square := 0.0
		for i := range v {
			v[i] = 0
			for x, p := range f.image(i) {
				v[i] += float64(u[x] * float64(p))
			}
			square += v[i] * v[i]
		}
		n := math.Sqrt(square) // of I·Iᵀ·v, |v| = 1: tends to σ²
		for i := range v {
			v[i] /= n
		}
		if math.Abs(n-last) <= 1e-14*n {
			break
		}
		last = n
	}
	square := 0.0
	for _, x := range v {
		square += x * x
	}
	return math.Sqrt(last / math.Sqrt(square))
}

// solve runs one round: it updates S, B and R for the weights.
func (f *fit) solve() {
	total := 0.0
	for i := range f.t {
		total += f.mean[i]
	}
	for i := range f.t {
		f.brightness[i] = f.mean[i] / (total / float64(f.t))
	}
	for i := range f.smooth {
		f.smooth[i] = 1
	}
	clear(f.spectrum)
	f.spectrum[0] = Size // of S = 1
	clear(f.rest)
	clear(f.multiplier)
	first := 12.5 / f.largest
	mu := first
	f.start()
	for range maxSteps {
		// S
		update := f.sum
		scale(update, 1/float64(f.t))
		f.dct.forward(update)
		for i, v := range update {
			f.spectrum[i] = soft(f.spectrum[i]+v, 1/mu)
		}
		copy(f.smooth, f.spectrum)
		f.dct.inverse(f.smooth)
		// R, B
		all := 0.0
		for i := range f.t {
			f.brightness[i] = f.separate(i, mu) / pixels
			all += f.brightness[i]
		}
		all /= float64(f.t)
		for i := range f.t {
			f.brightness[i] = max(0, f.brightness[i]/all)
		}
		// Y, and the sum for the next S
		next := min(penaltyGrowth*mu, penaltyMax*first)
		clear(f.sum)
		residual := 0.0
		for i := range f.t {
			residual += f.dual(i, mu, next)
		}
		mu = next
		if math.Sqrt(residual) <= tolerance*f.norm {
			break
		}
	}
}

// soft moves v towards 0 by a threshold, no further than 0.
func soft(v, threshold float64) float64 {
	return v - max(-threshold, min(v, threshold))
}

// start sums I − SB for the first S: R = Y = 0.
func (f *fit) start() {
	clear(f.sum)
	for i, b := range f.brightness {
		for x, v := range f.image(i) {
			f.sum[x] += float64(v) - float64(f.smooth[x]*b)
		}
	}
}

// separate makes R of an image and returns the sum of I − R.
func (f *fit) separate(i int, mu float64) float64 {
	b, sum, inverse := f.brightness[i], 0.0, 1/mu
	weight, rest, multiplier := f.weight[i*pixels:][:pixels], f.rest[i*pixels:][:pixels], f.multiplier[i*pixels:][:pixels]
	smooth := f.smooth[:pixels]
	for x, p := range f.image(i) {
		v := float64(p)
		r := soft(v-float64(smooth[x]*b)+float64(multiplier[x]*inverse), weight[x]*inverse)
		rest[x] = r
		sum += v - r
	}
	return sum
}

// dual updates Y of an image, adds to the sum for the next S, and returns the
// squares of the residual.
func (f *fit) dual(i int, mu, next float64) float64 {
	b, square, inverse := f.brightness[i], 0.0, 1/next
	smooth, all := f.smooth[:pixels], f.sum[:pixels]
	rest, multiplier := f.rest[i*pixels:][:pixels], f.multiplier[i*pixels:][:pixels]
	for x, p := range f.image(i) {
		d := float64(p) - float64(smooth[x]*b) - rest[x]
		y := multiplier[x] + float64(mu*d)
		multiplier[x] = y
		all[x] += d + float64(y*inverse)
		square += float64(d * d)
	}
	return square
}

// field returns the flat-field of a round: mean_t(S·B), scaled to mean 1; without any, as before.
func (f *fit) field(last []float64) []float64 {
	b := 0.0
	for _, v := range f.brightness {
		b += v
	}
	out := make([]float64, pixels)
	mean := 0.0
	for i, v := range f.smooth {
		out[i] = v * b
		mean += out[i]
	}
	mean /= pixels
	if mean == 0 {
		return last
	}
	for i := range out {
		out[i] /= mean
	}
	return out
}

// reweight gives pixels weight that have a small rest, relative to the mean of
// their image's S·B.
func (f *fit) reweight() {
	mean := 0.0
	for _, v := range f.smooth {
		mean += v
	}
	mean /= pixels
	sum := 0.0
	for i, b := range f.brightness {
		size := float64(mean*b) + 1e-6
		for x := i * pixels; x < (i+1)*pixels; x++ {
			w := 1 / (math.Abs(f.rest[x]/size) + epsilon)
			f.weight[x] = w
			sum += w
		}
	}
	scale(f.weight, float64(f.t*pixels)/sum)
}
