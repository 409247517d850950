package compute

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"strata/pkg/filter"
	"strata/pkg/gpu"
	"strata/pkg/gpu/kernels"
	"strata/pkg/mem"
	"strata/pkg/ngff/ngffgpu"
	"strata/pkg/oct"
	"strata/pkg/oct/compute/transfer"
)

// A Search plans the search for the tissue interface of every A-line of a mosaic, including its memory. See
// [InterfaceFinder].FindInterfaces.
type Search struct {
	summing
	filter.InterfaceSearch
	Y, X  []Segment // of the mosaic's axes, cut into pieces
	Seams *Pool     // memory for [Search.Seam]
	Spare int64     // bytes of host memory that are left for a device that joins
	// Found receives the interface depths of a rectangle in C order, and their gradients, which are nil on a device
	// unless requested. Several workers call it concurrently. It must not keep the slices.
	Found func(ctx context.Context, r oct.Rectangle, depth []int32, gradient []float32) error

	source    *Source
	mem       int64 // host memory for the workers
	gradients bool  // gradients are wanted
	tiles     bool  // the pieces of work are tiles, also where the device holds bands of them
	workers   int
	planes    int   // planes loaded
	voxels    int64 // bytes of voxels that a worker on the host holds

	kernels *kernels.Searcher
	memory  searchMemory
}

// searchMemory holds a worker's device memory, in bytes.
type searchMemory struct {
	piece, result, scratch int64 // voxels; what was found, and the worker's counts; filtered voxels
	seam, seamScratch      int64 // what was found in a seam, and its filtered voxels
}

func (m *searchMemory) all() int64 {
	return mem.Pooled(m.piece) + mem.Pooled(m.result) + mem.Pooled(m.scratch) + mem.Pooled(m.seam) + mem.Pooled(m.seamScratch)
}

const (
	deviceScratch = 128 << 20 // of filtered voxels: what keeps a device busy
	seamLines     = 64 << 10  // A-lines of a seam that are searched at a time
)

// NewSearch plans a search of the source within mem bytes of host memory; with gradients, Found gets gradients on
// a device, too. Close releases the memory.
func (s *Source) NewSearch(search filter.InterfaceSearch, mem int64, gradients bool) (*Search, error) {
	p, err := s.planSearch(search, mem, gradients, false)
	if err == nil && s.res.Device != nil {
		err = p.uploadWeights()
	}
	return p, err
}

// Join plans a device's side of the search, within the Spare memory but for reserved bytes of it. s has the mosaic on
// the device. Its pieces of work are tiles, as on the host.
func (p *Search) Join(s *Source, reserved int64) (*Search, error) {
	d, err := s.planSearch(p.InterfaceSearch, p.Spare-reserved, p.gradients, true)
	if err == nil {
		d.Found = p.Found
		err = d.uploadWeights()
	}
	return d, err
}

// CheckSearch returns an error if [Source.NewSearch] would have too little memory.
func (s *Source) CheckSearch(search filter.InterfaceSearch, mem int64, gradients bool) error {
	p, err := s.planSearch(search, mem, gradients, false)
	if err == nil {
		p.Close()
	}
	return err
}

func (s *Source) planSearch(search filter.InterfaceSearch, mem int64, gradients, tiles bool) (*Search, error) {
	p := &Search{InterfaceSearch: search, source: s, mem: mem, gradients: gradients, tiles: tiles}
	if err := s.Whole(s.res.Meter); err != nil {
		return nil, err
	}
	plan := p.planOnHost
	if s.res.Device != nil {
		plan = p.fitAll
	}
	if err := plan(); err != nil {
		return nil, err
	}
	return p, nil
}

// Close releases the memory. No worker may be running.
func (p *Search) Close() {
	p.Seams.Close()
	if p.kernels != nil {
		p.kernels.Release()
	}
}

// SeamsDone gives the memory of the seams, and of a device's side, to the workers of plans made afterwards.
func (p *Search) SeamsDone() {
	p.Seams.Close()
	p.voxels += (p.Seams.budget + p.Spare) / int64(p.workers)
}

// Plan returns a plan for workers that search, with no more workers than pieces.
func (p *Search) Plan(pieces int) *Plan {
	plan := &Plan{What: "searching " + p.source.pieces(), Source: p.source, Memory: Memory{Host: p.mem}, Most: min(p.workers, pieces), Pieces: pieces, Operator: p}
	if p.source.columns != nil {
		plan.Memory.Brought = p.back()
	}
	return plan
}

// back returns the bytes that a piece of work downloads from the device.
func (p *Search) back() int64 { return int64(p.Bands()) * (p.memory.result - countsBytes) }

// Bands returns the number of loaded pieces, one below the other, that make one piece of work.
func (p *Search) Bands() int {
	if !p.tiles {
		return 1
	}
	return p.source.mosaic.Chunk[1] / p.source.rows()
}

// Pieces returns the number of pieces along Y and X in which the mosaic is loaded: tiles, or bands of rows of
// tiles that are too large for the device.
func (p *Search) Pieces() (ny, nx int) {
	m, rows := p.source.mosaic, p.source.rows()
	return (m.Shape[1] + rows - 1) / rows, (m.Shape[2] + m.Chunk[2] - 1) / m.Chunk[2]
}

// Piece returns the extent of piece (i, j).
func (p *Search) Piece(i, j int) oct.Rectangle {
	m, rows := p.source.mosaic, p.source.rows()
	y, x := i*rows, j*m.Chunk[2]
	return oct.Rect(y, min(y+rows, m.Shape[1]), x, min(x+m.Chunk[2], m.Shape[2]))
}

// EachSegment calls f with the indices of the segments along Y and X whose windows overlap piece (i, j).
func (p *Search) EachSegment(i, j int, f func(a, b int)) {
	for a := range p.Y {
		for b := range p.X {
			if p.Y[a].meets(i) && p.X[b].meets(j) {
				f(a, b)
			}
		}
	}
}

// Box returns the rectangle that the windows of a rectangle of A-lines cover.
func (p *Search) Box(r oct.Rectangle) oct.Rectangle {
	y, x := p.Windows(r.Y0, r.Y1, p.source.mosaic.Shape[1]), p.Windows(r.X0, r.X1, p.source.mosaic.Shape[2])
	return oct.Rect(slices.Min(y), slices.Max(y)+1, slices.Min(x), slices.Max(x)+1)
}

// Fits reports whether a worker's memory holds a box, along each axis.
func (p *Search) Fits(box oct.Rectangle) (y, x bool) {
	if m := p.source.mosaic; p.source.columns != nil {
		return box.Height() <= p.source.rows(), box.Width() <= m.Chunk[2]
	}
	fits := p.bytes(box) <= p.voxels
	return fits, fits
}

// TooLarge returns an error that a worker's memory does not hold a box.
func (p *Search) TooLarge(box oct.Rectangle) error {
	where, window := p.source.mosaic.Where, p.Window()
	if p.source.columns == nil {
		return fmt.Errorf("%s: a mean filter of %d pixels over %d planes does not fit into --mem %d MiB", where, window, p.planes, p.source.res.Mem>>20)
	}
	return fmt.Errorf("%s: a mean filter of %d pixels over %d planes takes %d MiB of device memory: %w", where, window, p.planes, p.bytes(box)>>20+1, gpu.ErrMemory)
}

// bytes returns the size of a box's voxels.
func (p *Search) bytes(box oct.Rectangle) int64 {
	return int64(p.planes) * int64(box.Area()) * int64(p.source.mosaic.DType.Size())
}

// planOnHost determines the number of workers.
func (p *Search) planOnHost() error {
	s := p.source
	m := s.mosaic
	p.planes = p.Seen(m.Shape[0])
	if c := s.whole; p.planes < m.Shape[0] && c.Whole() { // chunks are decoded whole
		p.planes = min(m.Shape[0], (p.planes+m.Chunk[0]-1)/m.Chunk[0]*m.Chunk[0])
	}
	p.Y, p.X = Segments(&p.InterfaceSearch, m.Shape[1], m.Chunk[1]), Segments(&p.InterfaceSearch, m.Shape[2], m.Chunk[2])
	p.voxels = m.TileBytes()
	plan := p.Plan(0)
	most, err := plan.workers(plan.onHost())
	if err != nil {
		return err
	}
	// a quarter for seams, unless one worker needs it
	p.workers = int(max(1, min(int64(most), p.mem*3/4/plan.onHost())))
	over := p.mem - int64(p.workers)*plan.onHost()
	if s.res.Coming != nil {
		p.Spare = over / 2
	}
	p.Seams = NewPool(s.res, over-p.Spare)
	return nil
}

func (p *Search) streams() bool { return false }

func (p *Search) loads(*Plan) int64 { return p.voxels }

// onHost returns the memory for decoding, filtering and results.
func (p *Search) onHost(*Plan) int64 {
	m := p.source.mosaic
	return p.source.whole.Scratch + workspace(m) + 8*int64(m.Chunk[1])*int64(m.Chunk[2])
}

// forAll adds the memory of the seams: a quarter.
func (p *Search) forAll(workers int64) int64 { return workers*4/3 + 3 }

// planOnDevice returns the number of workers that fitAll has determined. They write nothing.
func (p *Search) planOnDevice(*Plan) (*ngffgpu.Writer, int, error) { return nil, p.workers, nil }

// fitAll determines the size of pieces, the number of workers and the memory left for seams on a device.
func (p *Search) fitAll() error {
	c := p.source.columns
	p.planes = p.Seen(p.source.mosaic.Shape[0])
	c.Depth = p.planes
	for {
		err := p.fitOnDevice()
		if err == nil || !transfer.FewerRows(err) || !c.Less() {
			return err
		}
	}
}

// fitOnDevice is fitAll for pieces of as many rows as are on the device at a time.
func (p *Search) fitOnDevice() (err error) {
	s := p.source
	m, c := s.mosaic, s.columns
	p.Y, p.X = Segments(&p.InterfaceSearch, m.Shape[1], c.Rows), Segments(&p.InterfaceSearch, m.Shape[2], m.Chunk[2])
	weights := mem.Pooled(kernels.SearcherBytes(p.InterfaceSearch))
	limit := s.res.Device.Memory().Limit() - weights
	_, slot := c.Memory(c.SlotShape())
	seams := min(p.planMemory(), limit/4)
	for p.memory.all()+slot > limit-seams && p.shrink() {
	}
	p.workers, err = c.Workers(transfer.Needs{
		What: "searching " + s.pieces(), Mem: p.mem, Pinned: mem.Pooled(p.memory.seam), Place: mem.Pooled(8 + p.back()), Device: p.memory.all(), Shared: weights,
	})
	if err != nil {
		return err
	}
	// seams come before more workers
	_, slot = c.Memory(c.SlotShape())
	each := p.memory.all() + int64(c.Slots)*slot
	p.workers = int(max(1, min(int64(p.workers), (limit-seams)/each)))
	p.Seams = NewPool(s.res, max(0, limit-int64(p.workers)*each))
	return nil
}

// uploadWeights brings the weights to the device.
func (p *Search) uploadWeights() error {
	stream, err := p.source.res.Device.Stream()
	if err != nil {
		return err
	}
	p.kernels, err = kernels.NewSearcher(stream, p.InterfaceSearch)
	if err = errors.Join(err, stream.Close()); err != nil {
		p.Close()
	}
	return err
}

// planMemory plans a worker's memory, with as much scratch as is useful, and returns the memory that the seams
// need.
func (p *Search) planMemory() (seams int64) {
	m, rows, nx := p.source.mosaic, p.source.rows(), p.source.mosaic.Chunk[2]
	p.memory = searchMemory{
		piece: p.source.columns.Piece(), result: 8*int64(rows)*int64(nx) + countsBytes,
		scratch: max(p.row(), min(kernels.SearchScratch(p.planes, nx, rows, nx), deviceScratch)),
	}
	y, acrossY := largest(p.Y)
	x, acrossX := largest(p.X)
	if acrossY.out+acrossX.out == 0 {
		return 0
	}
	lines := max(acrossY.out*x.out, y.out*acrossX.out)
	box := max(acrossY.in*x.in, y.in*acrossX.in)
	p.memory.seam = 8 * int64(max(x.out, min(lines, seamLines)))
	p.memory.seamScratch = max(p.row(), min(kernels.SearchScratch(p.planes, box, 1, lines), deviceScratch/8))
	ny, nxs := p.Pieces()
	return mem.Pooled(int64(p.planes)*int64(box)*int64(m.DType.Size())) * int64(2*min(ny, nxs)+4*p.source.res.Workers)
}

// row returns the scratch memory for one row of A-lines.
func (p *Search) row() int64 {
	x, _ := largest(p.X)
	nx := max(x.in, p.source.mosaic.Chunk[2])
	return kernels.SearchScratch(p.planes, nx, 1, nx)
}

// shrink halves a worker's scratch memory, down to one row, and reports whether that was possible.
func (p *Search) shrink() bool {
	m, least := &p.memory, p.row()
	before := m.scratch + m.seamScratch
	m.scratch = max(least, m.scratch/2)
	m.seamScratch = min(m.seamScratch, max(least, m.seamScratch/2))
	return m.scratch+m.seamScratch < before
}
