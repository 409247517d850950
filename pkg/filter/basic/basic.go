// Package basic estimates the flat-field that a set of images shares with BaSiC (Peng et al., A BaSiC tool
// for background and shading correction of optical microscopy images, Nature Communications 8, 2017): every
// image is a smooth flat-field times its own brightness, plus a sparse remainder. There is no dark-field.
//
// Two programs solve this differently, and a [Solver] does it as one of them: [Approximate] as basicpy (stages
// specification, focal, step 2), [Sorted] as linum-basic (workflow specification, section 1). Both repeat rounds,
// each of which weighs down the pixels in which the last one found a remainder.
//
// Values of pixels are float32, as in these programs; sums over pixels and images are float64 and have a fixed order.
package basic

import (
	"math"
	"slices"

	"strata/pkg/dtype"
	"strata/pkg/mem"
)

const (
	bits = 7
	// Size is the height and width at which the flat-field is estimated.
	Size   = 1 << bits
	pixels = Size * Size
)

const (
	penaltyGrowth = 1.5
	penaltyMax    = 1e7  // relative to the first
	epsilon       = 0.1  // of the weights
	offset        = 1e-6 // of the brightness, in the weights
	smoothScale   = 800  // of the smoothness that is chosen from the images

	singularTolerance = 1e-10 // of σ₁², relative, if no other singular value is close; of σ₁ its root else
)

// Memory returns how many bytes [Solver.FlatField] needs for a number of images, besides the images.
func Memory(images int) int64 { return 2*int64(images)*pixels*4 + int64(images)*bands*24 + 16*pixels*8 }

// A Solver estimates flat-fields. Its zero value is not ready; see [Approximate] and [Sorted].
type Solver struct {
	Smoothness float64 // of the flat-field, λ; 0: chosen from the images
	Rounds     int     // of reweighting, at most
	Steps      int     // of a round, at most

	// Each runs f for 0 to n−1, which may be at the same time, and returns when all calls have. Its error ends the
	// estimate. nil: one after another.
	Each func(n int, f func(i int)) error

	sorted       bool
	tolerance    float64 // residual that ends a round, relative to the images
	reweightStop float64 // relative change of the flat-field that ends the rounds
}

// Approximate returns the augmented Lagrangian solver that basicpy calls "approximate", with its defaults.
func Approximate() Solver {
	return Solver{Smoothness: 1, Rounds: 10, Steps: 500, tolerance: 1e-3, reweightStop: 1e-2}
}

// Sorted returns the solver of linum-basic, with its defaults. It sorts the values of each pixel over the images, so
// that one of its images holds all the smallest values and another all the largest. What differs from image to image
// cancels out there, also if no image shows much else.
func Sorted() Solver {
	return Solver{Rounds: 10, Steps: 500, tolerance: 1e-6, reweightStop: 1e-3, sorted: true}
}

// A Field is an estimated flat-field.
type Field struct {
	Pixels     []float64 // Size × Size, mean 1
	Rounds     int       // of reweighting
	Smoothness float64   // λ
}

// FlatField estimates the flat-field of consecutive images of Size × Size. All numbers must be finite. Images of zeros
// have an even flat-field. The solver Sorted changes the images, as do both if numbers are extremely large or small.
func (s Solver) FlatField(images []float32) (Field, error) {
	f, err := newFit(s, images)
	if err != nil {
		return Field{}, err
	}
	defer f.free()
	out := Field{Pixels: f.last, Smoothness: s.Smoothness}
	if s.sorted {
		f.each(f.sort)
	}
	f.begin()
	if f.err != nil || f.norm == 0 || f.largest == 0 {
		return out, f.err
	}
	if f.how.Smoothness == 0 {
		f.how.Smoothness = f.ownSmoothness()
	}
	out.Smoothness = f.how.Smoothness
	for f.err == nil && out.Rounds < s.Rounds {
		if s.sorted {
			f.solveSorted()
		} else {
			f.solveApproximate()
		}
		out.Rounds++
		field := f.field()
		change, size := 0.0, 0.0
		for i, v := range field {
			change += math.Abs(v - f.last[i])
			size += math.Abs(f.last[i])
		}
		f.last = field
		if change <= s.reweightStop*size {
			break
		}
		f.reweight()
	}
	out.Pixels = f.last
	return out, f.err
}

// bands is the number of parts of an image that are worked on at the same time.
const (
	bands = 16
	band  = pixels / bands
)

// fit is a running estimate of I ≈ S·B + R.
type fit struct {
	how        Solver
	t          int
	images     []float32 // I: T × pixels
	state      []float32 // of R and Y, see [step]: bands × T × band
	weight     []float32 // W, bands × T × band; nil: 1
	least      []float64 // the smallest W of each pixel
	ones       []float32 // a band
	smooth     []float64 // S, pixels
	narrow     []float32 // S
	change     []float32 // p of [step], pixels
	spectrum   []float64 // Ŝ, of S
	brightness []float32 // B, T
	before     []float32 // B of the step before
	mean       []float64 // of each image
	imageSum   []float64 // of I over t, pixels
	restSum    []float64 // of R
	dualSum    []float64 // of Y
	pull       []float64 // of μ²·B·(I − S·B − R), with the S before it changed
	sum        []float64 // pixels
	partial    []float64 // sums of a band: T × bands
	square     []float64 // likewise
	along      []float64 // likewise
	last       []float64 // the flat-field of the last round
	mu         float64   // of the last step
	offset     float64   // see [offset]
	norm       float64   // ‖I‖
	largest    float64   // singular value of I
	dct        *dct
	even       *evenness // of Approximate
	err        error     // of Each or of memory: nothing more is computed
	memory     [][]byte
}

func newFit(s Solver, images []float32) (*fit, error) {
	t := len(images) / pixels
	f := &fit{how: s, images: images, t: t, dct: newDCT(), ones: make([]float32, band), offset: offset,
		narrow: make([]float32, pixels), change: make([]float32, pixels), brightness: make([]float32, t), before: make([]float32, t),
		mean: make([]float64, t), partial: make([]float64, t*bands), square: make([]float64, t*bands), along: make([]float64, t*bands)}
	for _, v := range []*[]float64{&f.least, &f.smooth, &f.spectrum, &f.imageSum, &f.restSum, &f.dualSum, &f.pull, &f.sum, &f.last} {
		*v = make([]float64, pixels)
	}
	for i := range f.last {
		f.last[i], f.least[i] = 1, 1
	}
	for i := range f.ones {
		f.ones[i] = 1
	}
	f.state = f.alloc()
	return f, f.err
}

// alloc returns zeros for all pixels of all images, until free.
func (f *fit) alloc() []float32 {
	b, err := mem.Alloc(4 * f.t * pixels)
	if err != nil {
		f.err = err
	}
	f.memory = append(f.memory, b)
	return dtype.Slice[float32](b)
}

func (f *fit) free() {
	for _, b := range f.memory {
		mem.Free(b)
	}
}

// each calls work for the bands, by their first pixels.
func (f *fit) each(work func(first int)) {
	if f.err != nil {
		return
	}
	if f.how.Each == nil {
		for k := range bands {
			work(k * band)
		}
		return
	}
	f.err = f.how.Each(bands, func(k int) { work(k * band) })
}

// of returns a band of image i.
func (f *fit) of(i, first int) []float32 { return f.images[i*pixels+first:][:band:band] }

// piece returns a band of image i, of numbers of which each band's lie together.
func (f *fit) piece(v []float32, i, first int) []float32 {
	return v[first*f.t+i*band:][:band:band]
}

// weights returns the weights of a band of image i.
func (f *fit) weights(i, first int) []float32 {
	if f.weight == nil {
		return f.ones
	}
	return f.piece(f.weight, i, first)
}

// total adds up the partial sums of image i.
func total(partial []float64, i int) (sum float64) {
	for _, v := range partial[i*bands:][:bands] {
		sum += v
	}
	return sum
}

// Images whose root mean square is beyond these powers of 2 are scaled, so that neither μ nor 1/μ leaves the range of
// float32, and S = 1 with which rounds begin is not far from their brightness.
const (
	minExponent = -20
	maxExponent = 60
)

// normalize scales images by a power of 2 if that is needed, which changes no digit of any result, and reports whether.
func (f *fit) normalize() bool {
	_, exponent := math.Frexp(f.norm / math.Sqrt(float64(len(f.images))))
	if f.norm == 0 || exponent > minExponent && exponent < maxExponent {
		return false
	}
	f.offset = math.Ldexp(f.offset, -exponent)
	by := math.Ldexp(1, -exponent)
	f.each(func(first int) {
		for i := range f.t {
			image := f.of(i, first)
			for x, v := range image {
				image[x] = float32(float64(v) * by)
			}
		}
	})
	return true
}

// begin computes the sums, the norm and the largest singular value of the images.
func (f *fit) begin() {
	if f.add(); f.err == nil && f.normalize() {
		f.add()
	}
	f.largest = f.singularValue()
}

// add computes the sums and the norm.
func (f *fit) add() {
	f.each(func(first int) {
		all := f.imageSum[first:][:band:band]
		clear(all)
		for i := range f.t {
			sum, square := 0.0, 0.0
			for x, v := range f.of(i, first) {
				w := float64(v)
				sum += w
				square += float64(w * w)
				all[x] += w
			}
			f.partial[i*bands+first/band], f.square[i*bands+first/band] = sum, square
		}
	})
	f.norm = 0
	for i := range f.mean {
		f.mean[i] = total(f.partial, i) / pixels
		f.norm += total(f.square, i)
	}
	f.norm = math.Sqrt(f.norm)
}

// singularValue returns the largest singular value of I, by power iteration on I·Iᵀ: the images are hardly ever
// negative, so that the vector of their means is not orthogonal to what is sought, and the value converges twice as
// fast as the vector.
func (f *fit) singularValue() float64 {
	v, u := make([]float64, f.t), f.sum
	size := 0.0
	for _, m := range f.mean {
		size += float64(m * m)
	}
	for i, m := range f.mean {
		if v[i] = 1 / math.Sqrt(float64(f.t)); size > 0 {
			v[i] = math.Abs(m) / math.Sqrt(size)
		}
	}
	square := 0.0
	for range 1000 {
		f.each(func(first int) {
			u := u[first:][:band:band]
			clear(u)
			for i, c := range v {
				for x, p := range f.of(i, first) {
					u[x] += float64(c * float64(p))
				}
			}
			for i := range v {
				f.partial[i*bands+first/band] = dot(u, f.of(i, first))
			}
		})
		along := 0.0
		square = 0
		for i, c := range v {
			w := total(f.partial, i) // of I·Iᵀ·v, |v| = 1
			square += float64(w * w)
			along += float64(c * w) // tends to σ²
			v[i] = w
		}
		if square == 0 || f.err != nil {
			return 0
		}
		if square-float64(along*along) <= singularTolerance*square { // the square of what v lacks to be an eigenvector
			return math.Sqrt(along)
		}
		for i := range v {
			v[i] /= math.Sqrt(square)
		}
	}
	return math.Sqrt(math.Sqrt(square))
}

// dot returns the scalar product of a multiple of 4 numbers, as four sums that do not wait for each other.
func dot(u []float64, v []float32) float64 {
	var a, b, c, d float64
	for i := 0; i+4 <= len(u) && i+4 <= len(v); i += 4 {
		u, v := (*[4]float64)(u[i:]), (*[4]float32)(v[i:])
		a += float64(u[0] * float64(v[0]))
		b += float64(u[1] * float64(v[1]))
		c += float64(u[2] * float64(v[2]))
		d += float64(u[3] * float64(v[3]))
	}
	return (a + b) + (c + d)
}

// ownSmoothness returns the smoothness that linum-basic takes if it is given none: the more structure the mean of the
// images has, the larger.
func (f *fit) ownSmoothness() float64 {
	copy(f.sum, f.imageSum)
	mean := 0.0
	for _, v := range f.sum {
		mean += v / pixels
	}
	if mean == 0 {
		return 1
	}
	scale(f.sum, 1/mean)
	f.dct.forward(f.sum)
	size := 0.0
	for _, v := range f.sum {
		size += math.Abs(v)
	}
	return size / smoothScale
}

// sort sorts the values of each pixel of a band.
func (f *fit) sort(first int) {
	values := make([]float32, f.t)
	for x := first; x < first+band; x++ {
		for i := range values {
			values[i] = f.images[i*pixels+x]
		}
		slices.Sort(values)
		for i, v := range values {
			f.images[i*pixels+x] = v
		}
	}
}

// field returns the flat-field of a round: S, scaled to mean 1; without any, as before.
func (f *fit) field() []float64 {
	mean := 0.0
	for _, v := range f.smooth {
		mean += v
	}
	mean /= pixels
	if !(math.Abs(mean*f.meanBrightness()) > 0) {
		return f.last
	}
	out := make([]float64, pixels)
	for i, v := range f.smooth {
		out[i] = v / mean
	}
	return out
}

func (f *fit) meanBrightness() (mean float64) {
	for _, b := range f.brightness {
		mean += float64(b)
	}
	return mean / float64(f.t)
}

// reweight gives pixels weight that have a small rest, relative to the mean of their image's S·B, or of that of all
// images where values are sorted.
func (f *fit) reweight() {
	if f.even.holds() { // nowhere a rest
		return
	}
	mean := 0.0
	for _, v := range f.smooth {
		mean += v
	}
	mean /= pixels
	size := make([]float32, f.t)
	for i, b := range f.brightness {
		if size[i] = float32(float64(mean*float64(b)) + f.offset); f.how.sorted {
			size[i] = float32(float64(mean*f.meanBrightness()) + f.offset)
		}
		size[i] *= float32(f.mu)
	}
	weight := f.weight
	if weight == nil {
		if weight = f.alloc(); f.err != nil {
			return
		}
	}
	f.each(func(first int) {
		for i, size := range size {
			sum := 0.0
			old, out := f.weights(i, first), f.piece(weight, i, first)
			for x, u := range f.piece(f.state, i, first) {
				w := old[x]
				w = 1 / (abs((u-max(-w, min(u, w)))/size) + epsilon)
				out[x] = w
				sum += float64(w)
			}
			f.partial[i*bands+first/band] = sum
		}
	})
	sum := 0.0
	for i := range f.t {
		sum += total(f.partial, i)
	}
	f.weight = weight
	factor := float32(float64(f.t*pixels) / sum)
	f.each(func(first int) {
		least := f.least[first:][:band:band]
		for x := range least {
			least[x] = math.Inf(1)
		}
		for i := range f.t {
			for x, w := range f.piece(weight, i, first) {
				w *= factor
				f.weight[first*f.t+i*band+x] = w
				least[x] = min(least[x], float64(w))
			}
		}
	})
}

func abs(v float32) float32 { return math.Float32frombits(math.Float32bits(v) &^ (1 << 31)) }
