package kernels

import (
	"strata/pkg/dtype"
	"strata/pkg/filter"
	"strata/pkg/gpu"
)

// Searcher computes filter.Interfaces on a device, with the same bits. Several streams may use it at a time.
type Searcher struct {
	search  filter.InterfaceSearch
	weights *gpu.Buffer
	radius  int
	steep   string // the kernel
}

// nearWeights is the number of weights of a derivative that fit into the registers of a thread.
const nearWeights = 8

// NewSearcher copies the weights of the derivative to the device of s.
func NewSearcher(s *gpu.Stream, search filter.InterfaceSearch) (*Searcher, error) {
	w := search.Derivative()
	f := &Searcher{search: search, radius: len(w), steep: "steepest"}
	if len(w) <= nearWeights { // zeros before the others change nothing
		w, f.steep = append(make([]float32, nearWeights-len(w)), w...), "steepest8"
	}
	var err error
	f.weights, err = bring(s, dtype.Bytes(w))
	return f, err
}

// SearcherBytes returns the size of the data that [NewSearcher] copies to the device.
func SearcherBytes(search filter.InterfaceSearch) int64 {
	return 4 * int64(max(nearWeights, len(search.Derivative())))
}

// Release frees the memory.
func (f *Searcher) Release() { f.weights.Release() }

// Field is a box of voxels in device memory, of an image of Length rows and columns: the planes from the
// first that the search uses.
type Field struct {
	At     gpu.Span // of voxel (0, First[0], First[1]) of the image
	Type   dtype.Type
	Planes int
	Shape  [2]int // rows and columns of the box
	Pitch  int    // elements from a row to the next
	Stride int64  // and from a plane
	First  [2]int
	Length [2]int
}

// Run queues the search for the A-lines of rows from[0]…to[0]−1 and columns from[1]…to[1]−1 of the image; the
// field must cover the mean filter's windows. In C order, arg (int32) receives the plane of the largest
// gradient, peak (float32) its size. scratch has [SearchScratch] bytes.
func (f *Searcher) Run(s *gpu.Stream, arg, peak gpu.Span, v Field, from, to [2]int, scratch gpu.Span) error {
	ny, nx := to[0]-from[0], to[1]-from[1]
	means := scratch.From(0, 4*int64(v.Planes)*int64(ny)*int64(v.Shape[1]))
	if err := f.rows(s, means, v, from[0], ny); err != nil {
		return err
	}
	if f.search.Window() > 1 || nx != v.Shape[1] {
		n := int64(v.Planes) * int64(ny)
		to := scratch.From(means.Bytes(), 4*n*int64(nx))
		if err := f.columns(s, to, means, v, n, from[1], nx); err != nil {
			return err
		}
		means = to
	}
	return f.steepest(s, arg, peak, means, v.Planes, int64(ny)*int64(nx))
}

// SearchScratch returns the memory that a [Searcher] needs for ny × nx A-lines of a field with the given
// planes and columns.
func SearchScratch(planes, columns, ny, nx int) int64 {
	return 4 * int64(planes) * int64(ny) * int64(columns+nx)
}

// rows returns the magnitudes and the mean filter along Y.
func (f *Searcher) rows(s *gpu.Stream, dst gpu.Span, v Field, from, ny int) error {
	log, together := bit(f.search.Log), bit(v.Shape[1]%4 == 0 && v.Pitch%4 == 0 && v.Stride%4 == 0 && v.At.Address()%uint64(4*v.Type.Size()) == 0)
	const columns, rows, strip = 32, 8, 32 // of a block's threads, and the rows that it makes
	grid := gpu.Dim{(v.Shape[1] + 4*columns - 1) / (4 * columns), upTo((ny + strip - 1) / strip), upTo(v.Planes)}
	return queueTyped(s, "interface", "row_means", v.Type, shape{grid, gpu.Dim{columns, rows, 1}},
		v.At, dst, int32(v.Planes), int32(ny), int32(v.Shape[1]), int32(v.Pitch), v.Stride,
		int32(from), int32(v.First[0]), int32(v.Length[0]), int32(f.search.Window()), f.search.Ceiling(), log, together)
}

// columns returns the mean filter along X, of n rows.
func (f *Searcher) columns(s *gpu.Stream, dst, src gpu.Span, v Field, n int64, from, nx int) error {
	return queue(s, "interface", "column_means", threads(1, int(n), nx),
		src, dst, n, int32(nx), int32(v.Shape[1]), int32(from), int32(v.First[1]), int32(v.Length[1]), int32(f.search.Window()))
}

// steepest returns the derivative along Z and where it is largest, of n A-lines.
func (f *Searcher) steepest(s *gpu.Stream, arg, peak, src gpu.Span, planes int, n int64) error {
	limit := planes
	if f.search.Planes > 0 {
		limit = min(limit, f.search.Planes)
	}
	if f.steep == "steepest8" {
		return queue(s, "interface", f.steep, blocks(n), src, arg, peak, f.weights.Span, n, int32(planes), int32(limit))
	}
	return queue(s, "interface", f.steep, blocks(n), src, arg, peak, f.weights.Span, int32(f.radius), n, int32(planes), int32(limit))
}
