package filter

import (
	"math"

	"strata/pkg/dtype"
)

// InterfaceSearch finds in every A-line the depth where the image brightens most: the interface between water
// and tissue (stages specification, focal, step 1).
type InterfaceSearch struct {
	// SigmaXY is the size of the mean filter along Y and X: ⌊SigmaXY⌋ pixels.
	SigmaXY float64
	// SigmaZ is the standard deviation, in voxels, of the Gaussian whose derivative is taken along Z; it is
	// above 0.
	SigmaZ float64
	// Log makes the search use ln(v) where v > 0.
	Log bool
	// Clip is the value at which larger ones are clipped; 0: no limit.
	Clip float32
	// Planes limits the interface to this many planes from the first; 0: all. The filters use the other
	// planes as well.
	Planes int
}

// Window returns the size of the mean filter in pixels, at least 1.
func (s *InterfaceSearch) Window() int { return max(1, int(s.SigmaXY)) }

// Windows returns the samples that the mean filter's windows cover for outputs from…to−1 of an axis of length
// samples, mirrored ones included: the rows and columns that [Interfaces] needs.
func (s *InterfaceSearch) Windows(from, to, length int) []int {
	return windowSamples(from, to, length, s.Window())
}

// Reach returns how many planes on either side the derivative along Z uses.
func (s *InterfaceSearch) Reach() int { return len(GaussianKernel(s.SigmaZ, 1)) / 2 }

// Seen returns how many of an image's planes, from the first, the search uses.
func (s *InterfaceSearch) Seen(planes int) int {
	if s.Planes == 0 {
		return planes
	}
	return min(planes, s.Planes+s.Reach())
}

// Derivative returns the weights of the derivative along Z, w₁…w_r, the outermost first: it is Σ_k
// w_k·(v[z+r+1−k] − v[z−r−1+k]), r the [InterfaceSearch.Reach].
func (s *InterfaceSearch) Derivative() []float32 {
	k := GaussianKernel(s.SigmaZ, 1)
	w := make([]float32, len(k)/2)
	for i := range w {
		w[i] = float32(k[len(k)-1-i])
	}
	return w
}

// Ceiling returns the clipping value of the search.
func (s *InterfaceSearch) Ceiling() float32 {
	if s.Clip > 0 {
		return s.Clip
	}
	return math.MaxFloat32
}

// Depth returns the interface for a largest gradient at plane z.
func (s *InterfaceSearch) Depth(z int32) int32 {
	return int32(math.Ceil(float64(z) + 0.5*s.SigmaZ))
}

// Magnitudes converts voxels to the input of the search's filters: |v| in float32, clipped and logarithmic as
// the search specifies. NaN and infinite voxels become 0, so that they spread no further than any dark voxel.
func Magnitudes[T dtype.Element](s *InterfaceSearch, dst []float32, src []T) {
	dst = dst[:len(src)]
	clip := s.Ceiling()
	ToFloat32(dst, src)
	for i := magnitudesVector(dst, clip); i < len(dst); i++ {
		dst[i] = magnitude(dst[i], clip)
	}
	if s.Log {
		Ln(dst)
	}
}

func magnitude(v, clip float32) float32 {
	b := math.Float32bits(v) &^ (1 << 31)
	if b >= 0x7f800000 {
		return 0
	}
	if v = math.Float32frombits(b); v > clip {
		return clip
	}
	return v
}

// Slab is a box of voxels (z, row, column) in a larger block of memory.
type Slab[T dtype.Element] struct {
	Data        []T
	Planes      int
	PlaneStride int // elements from a plane to the next
	RowStride   int
	// Swapped means that rows lie along X and columns along Y.
	Swapped bool
	// Ready means that the voxels are the result of [Magnitudes].
	Ready bool
}

// Workspace is the scratch memory of [Interfaces], which a worker reuses.
type Workspace struct {
	wide, half, ring, best []float32
	arg                    []int32
	offsets                []int64
	weights, taps          []float32
	sigma                  float64
}

// ringBytes is the size of the filtered planes that are kept at a time: a part of a core's second-level
// cache.
const ringBytes = 320 << 10

// alinesAtOnce is the maximum number of A-lines filtered at a time.
const alinesAtOnce = 512

// Interfaces finds the interfaces of a rectangle of A-lines. rows and columns list the rows and columns of
// src that the mean filter's windows cover (see [InterfaceSearch.Windows]); for windows of w samples there
// are w−1 more of them than outputs.
//
// depth receives the interface z0 = ⌈argmax_z g + 0.5·SigmaZ⌉ of each A-line in C order, where g is the
// derivative of Gaussian (truncated at 4 SigmaZ, volume mirrored at its ends) of the mean-filtered
// magnitudes; the first maximum wins. peak, unless nil, receives the maximum. All arithmetic is float32.
// Results are the same for every way to cut a plane into rectangles, and with rows and columns swapped.
func Interfaces[T dtype.Element](s *InterfaceSearch, w *Workspace, depth []int32, peak []float32, src Slab[T], rows, columns []int) {
	n := s.Window()
	ny, nx := len(rows)-(n-1), len(columns)-(n-1)
	w.prepare(s)
	radius := len(w.weights)
	keep := min(2*radius+1, src.Planes)
	for x := 0; x < nx; x += alinesAtOnce {
		width := min(alinesAtOnce, nx-x)
		stride := (width + n - 1 + 7) &^ 7
		most := min(ny, max(1, ringBytes/(4*keep*stride)))
		w.reserve(most, n, stride, keep)
		runs := splitRuns(columns[x : x+width+n-1])
		for y := 0; y < ny; y += most {
			height := min(most, ny-y)
			b := block[T]{s: s, w: w, src: src, rows: rows[y : y+height+n-1], runs: runs,
				height: height, stride: stride, window: n, keep: keep}
			b.search()
			for r := range height {
				to := (y+r)*nx + x
				for i, z := range w.arg[r*stride : r*stride+width] {
					depth[to+i] = s.Depth(z)
				}
				if peak != nil {
					copy(peak[to:to+width], w.best[r*stride:])
				}
			}
		}
	}
}

// prepare computes the weights w₁…w_r of the derivative, the outermost first.
func (w *Workspace) prepare(s *InterfaceSearch) {
	if n := s.Window(); len(w.taps) != n {
		w.taps = windowTaps(n)
	}
	if w.sigma == s.SigmaZ {
		return
	}
	w.sigma = s.SigmaZ
	w.weights = s.Derivative()
	w.offsets = make([]int64, 2*len(w.weights))
}

func (w *Workspace) reserve(height, n, stride, keep int) {
	grow := func(s *[]float32, n int) {
		if len(*s) < n {
			*s = make([]float32, n)
		}
	}
	grow(&w.wide, (height+n)*stride+n)
	grow(&w.half, (height+n)*stride+n)
	grow(&w.ring, keep*height*stride)
	grow(&w.best, height*stride)
	if len(w.arg) < height*stride {
		w.arg = make([]int32, height*stride)
	}
}

// run is a stretch of consecutive columns of the source.
type run struct{ to, from, n int }

func splitRuns(columns []int) []run {
	var out []run
	for i, c := range columns {
		if k := len(out) - 1; k >= 0 && c == out[k].from+out[k].n {
			out[k].n++
			continue
		}
		out = append(out, run{i, c, 1})
	}
	return out
}

// block is a few rows of A-lines, searched plane by plane: the filtered planes
// within reach of the derivative stay in the cache.
type block[T dtype.Element] struct {
	s      *InterfaceSearch
	w      *Workspace
	src    Slab[T]
	rows   []int
	runs   []run
	height int
	stride int
	window int
	keep   int // filtered planes that are kept
}

func (b *block[T]) search() {
	w, planes := b.w, b.src.Planes
	size := b.height * b.stride
	best, arg := w.best[:size], w.arg[:size]
	for i := range best {
		best[i] = float32(math.Inf(-1))
	}
	clear(arg)
	limit := planes
	if b.s.Planes > 0 {
		limit = min(limit, b.s.Planes)
	}
	radius := len(w.weights)
	loaded := 0
	for z := range limit {
		for ; loaded < planes && loaded <= z+radius; loaded++ {
			at := loaded % b.keep * size
			b.filter(w.ring[at:at+size], loaded)
		}
		for k := range radius {
			d := radius - k
			w.offsets[2*k] = int64(Reflect.Index(z+d, planes) % b.keep * size)
			w.offsets[2*k+1] = int64(Reflect.Index(z-d, planes) % b.keep * size)
		}
		steepest(best, arg, w.ring, w.offsets, w.weights, int32(z))
	}
}

// filter makes the mean-filtered magnitudes of one plane.
func (b *block[T]) filter(dst []float32, z int) {
	plane := b.src.Data[z*b.src.PlaneStride:]
	wide := b.w.wide
	for e, y := range b.rows {
		row := plane[y*b.src.RowStride:]
		to := wide[e*b.stride:]
		for _, r := range b.runs {
			if b.src.Ready {
				copy(to[r.to:r.to+r.n], any(row[r.from:r.from+r.n]).([]float32))
			} else {
				Magnitudes(b.s, to[r.to:], row[r.from:r.from+r.n])
			}
		}
	}
	n := b.window
	switch {
	case n == 1:
		copy(dst, wide)
	case b.src.Swapped: // Y lies along the rows
		half := b.w.half[:len(b.rows)*b.stride]
		Combine(half, wide, 1, b.w.taps)
		Combine(dst, half, b.stride, b.w.taps)
	default:
		half := b.w.half[:len(dst)]
		Combine(half, wide, b.stride, b.w.taps)
		Combine(dst, b.w.half, 1, b.w.taps)
	}
}

// steepest computes the derivative of one plane, Σ_k weights[k]·(ring[offsets[2k]+i] − ring[offsets[2k+1]+i]). If it
// exceeds best[i], it replaces best[i], and z replaces arg[i].
func steepest(best []float32, arg []int32, ring []float32, offsets []int64, weights []float32, z int32) {
	for i := steepestVector(best, arg, ring, offsets, weights, z); i < len(best); i++ {
		var sum float32
		for k, w := range weights {
			d := ring[int(offsets[2*k])+i] - ring[int(offsets[2*k+1])+i]
			sum += float32(w * d)
		}
		if sum > best[i] {
			best[i], arg[i] = sum, z
		}
	}
}
