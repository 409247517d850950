package compute

import (
	"errors"
	"slices"
	"sync"
	"time"

	"strata/pkg/dtype"
	"strata/pkg/filter"
	"strata/pkg/gpu"
	"strata/pkg/gpu/kernels"
	"strata/pkg/meter"
	"strata/pkg/oct"
	"strata/pkg/work"
)

// InterfaceFinder is a worker that finds the tissue interfaces of A-lines by the plan's [Search], with the same bits on
// every machine.
type InterfaceFinder interface {
	Worker
	// Load reads the planes of a box of A-lines that the search needs. The box is a piece of the mosaic or one that
	// [Search.Fits]. The voxels are valid until the next Load.
	Load(box oct.Rectangle) Voxels
	// CountNonFinite adds the number of NaN and infinite voxels to the plan's count.
	CountNonFinite(v Voxels)
	// FindInterfaces searches a rectangle of A-lines, at most as many as a piece has. The voxels must cover all their
	// windows. The result is passed to the search's Found when the data of Bring is handed over.
	FindInterfaces(in Voxels, r oct.Rectangle)
	// Gather copies the voxels of a piece into the part of a seam that it overlaps.
	Gather(seam, piece Voxels)
	// FindInSeam searches a complete seam and returns after Found. It must only be called from a function passed to
	// Then.
	FindInSeam(seam Voxels, r oct.Rectangle) error
}

// Voxels is a box of A-lines in host or device memory.
type Voxels struct {
	Box   oct.Rectangle
	block Block
	seam  bool // on the host, holds float32 magnitudes
}

// swapped reports whether magnitudes are stored as (z, x, y), which is the case for narrow upright strips.
func (v *Voxels) swapped() bool { return v.seam && v.Box.Width() < v.Box.Height() }

// Seam allocates memory for a box that spans several pieces, until release is called. A nil release means that
// there is no room.
func (p *Search) Seam(box oct.Rectangle) (v Voxels, release func(), err error) {
	n := p.bytes(box)
	if p.source.columns == nil {
		n = 4 * int64(p.planes) * int64(box.Area())
	}
	b, release, err := p.Seams.Get(n)
	return Voxels{Box: box, block: b, seam: true}, release, err
}

// hostFinder holds the buffers with which a worker on the host searches rectangles.
type hostFinder struct {
	depth    []int32
	gradient []float32
}

// Search functions by element type.
var (
	interfaces = map[dtype.Type]func(s *filter.InterfaceSearch, w *filter.Workspace, depth []int32, peak []float32, src filter.Slab[byte], rows, columns []int){
		dtype.Uint8: interfacesOf[uint8], dtype.Int8: interfacesOf[int8], dtype.Uint16: interfacesOf[uint16], dtype.Int16: interfacesOf[int16],
		dtype.Uint32: interfacesOf[uint32], dtype.Int32: interfacesOf[int32], dtype.Uint64: interfacesOf[uint64], dtype.Int64: interfacesOf[int64],
		dtype.Float32: interfacesOf[float32], dtype.Float64: interfacesOf[float64],
	}
	magnitudes = map[dtype.Type]func(s *Search, seam Voxels, z, n int, voxels []byte, at, part oct.Rectangle){
		dtype.Uint8: magnitudesOf[uint8], dtype.Int8: magnitudesOf[int8], dtype.Uint16: magnitudesOf[uint16], dtype.Int16: magnitudesOf[int16],
		dtype.Uint32: magnitudesOf[uint32], dtype.Int32: magnitudesOf[int32], dtype.Uint64: magnitudesOf[uint64], dtype.Int64: magnitudesOf[int64],
		dtype.Float32: magnitudesOf[float32], dtype.Float64: magnitudesOf[float64],
	}
)

// interfacesOf calls filter.Interfaces for the bytes of a slab. The slab's strides are in elements.
func interfacesOf[T dtype.Element](s *filter.InterfaceSearch, w *filter.Workspace, depth []int32, peak []float32, b filter.Slab[byte], rows, columns []int) {
	slab := filter.Slab[T]{Data: dtype.Slice[T](b.Data), Planes: b.Planes, PlaneStride: b.PlaneStride, RowStride: b.RowStride, Swapped: b.Swapped, Ready: b.Ready}
	filter.Interfaces(s, w, depth, peak, slab, rows, columns)
}

// magnitudesOf stores the magnitudes of a part of n planes of voxels, whose box is at, in a seam from plane z on.
func magnitudesOf[T dtype.Element](s *Search, seam Voxels, z, n int, voxels []byte, at, part oct.Rectangle) {
	box := seam.Box
	column := make([]T, part.Height())
	for i := range n {
		from := dtype.Slice[T](voxels)[i*at.Area():]
		to := dtype.Slice[float32](seam.block.host)[(z+i)*box.Area():]
		if !seam.swapped() {
			for y := part.Y0; y < part.Y1; y++ {
				filter.Magnitudes(&s.InterfaceSearch, to[(y-box.Y0)*box.Width()+part.X0-box.X0:], from[(y-at.Y0)*at.Width()+part.X0-at.X0:][:part.Width()])
			}
			continue
		}
		for x := part.X0; x < part.X1; x++ {
			k := (part.Y0-at.Y0)*at.Width() + x - at.X0
			for i := range column {
				column[i] = from[k]
				k += at.Width()
			}
			filter.Magnitudes(&s.InterfaceSearch, to[(x-box.X0)*box.Height()+part.Y0-box.Y0:], column)
		}
	}
}

func (w *host) Load(box oct.Rectangle) Voxels {
	if w.err != nil {
		return Voxels{Box: box}
	}
	s := w.plan.Source
	if w.err = s.whole.Read(w.ctx, w.tile, 0, operatorOf[*Search](w.plan).planes, box); w.err == nil {
		s.res.Done(int64(s.mosaic.Shape[0] * box.Area() * s.mosaic.DType.Size()))
	}
	return Voxels{Box: box, block: Block{host: w.tile.Data}}
}

func (w *host) CountNonFinite(v Voxels) {
	if w.err != nil {
		return
	}
	m := w.plan.Source.mosaic
	seen := operatorOf[*Search](w.plan).Seen(m.Shape[0]) * v.Box.Area() * m.DType.Size()
	w.plan.nonFinite(filter.NonFiniteStored(m.DType, v.block.host[:seen]))
}

func (w *host) FindInterfaces(in Voxels, r oct.Rectangle) {
	if w.err == nil {
		w.err = w.FindInSeam(in, r)
	}
}

func (w *host) FindInSeam(in Voxels, r oct.Rectangle) error {
	p, f, start := operatorOf[*Search](w.plan), &w.finder, time.Now()
	m, n := p.source.mosaic, r.Area()
	if len(f.depth) < n {
		f.depth, f.gradient = make([]int32, n), make([]float32, n)
	}
	depth, gradient := f.depth[:n], f.gradient[:n]
	rows, columns := p.Windows(r.Y0, r.Y1, m.Shape[1]), p.Windows(r.X0, r.X1, m.Shape[2])
	for i := range rows {
		rows[i] -= in.Box.Y0
	}
	for i := range columns {
		columns[i] -= in.Box.X0
	}
	kind := m.DType
	slab := filter.Slab[byte]{Data: in.block.host, Planes: p.planes, PlaneStride: in.Box.Area(), RowStride: in.Box.Width(), Ready: in.seam}
	if in.seam {
		kind = dtype.Float32
	}
	if in.swapped() {
		slab.Swapped, slab.RowStride = true, in.Box.Height()
		w.err = w.search(kind, depth, gradient, slab, columns, rows)
		turn(depth, r)
		turn(gradient, r)
	} else {
		w.err = w.search(kind, depth, gradient, slab, rows, columns)
	}
	p.source.res.Meter.Since(meter.Compute, start)
	if w.err != nil {
		return w.err
	}
	return p.Found(w.ctx, r, depth, gradient)
}

// searchSpaces keeps workspaces between searches.
var searchSpaces = sync.Pool{New: func() any { return new(filter.Workspace) }}

// searchSpace is the approximate size of a workspace in bytes.
const searchSpace = 2 << 20

// search finds interfaces as [filter.Interfaces] does, in bands of rows if processors are idle. Neighbouring bands
// filter the rows of a window twice, so that they are not narrower than windows.
func (w *host) search(kind dtype.Type, depth []int32, gradient []float32, slab filter.Slab[byte], rows, columns []int) error {
	s := &operatorOf[*Search](w.plan).InterfaceSearch
	beyond := s.Window() - 1
	ny, nx := len(rows)-beyond, len(columns)-beyond
	bands := max(1, min(1+work.Idle(w.ctx), ny/(beyond+1)))
	return work.Split(w.ctx, bands, searchSpace, func(i int) error {
		space := searchSpaces.Get().(*filter.Workspace)
		defer searchSpaces.Put(space)
		y0, y1 := i*ny/bands, (i+1)*ny/bands
		interfaces[kind](s, space, depth[y0*nx:y1*nx], gradient[y0*nx:y1*nx], slab, rows[y0:y1+beyond], columns)
		return nil
	})
}

// turn transposes the results of a swapped slab into C order.
func turn[T any](v []T, r oct.Rectangle) {
	from := slices.Clone(v)
	for x := range r.Width() {
		for y := range r.Height() {
			v[y*r.Width()+x] = from[x*r.Height()+y]
		}
	}
}

func (w *host) Gather(seam, piece Voxels) {
	p := operatorOf[*Search](w.plan)
	w.compute(func() {
		magnitudes[p.source.mosaic.DType](p, seam, 0, p.planes, piece.block.host, piece.Box, seam.Box.And(piece.Box))
	})
}

// deviceFinder holds the voxels and results of a worker on a device. Each voxel that the search needs is uploaded
// once; 4 bytes per A-line come back, or 8 if gradients are wanted. Seams are searched on a stream of their own,
// concurrently with the next piece.
type deviceFinder struct {
	piece, result, scratch gpu.Span
	counts                 gpu.Span // behind the results
	seams                  *gpu.Stream
	seamOut                []byte // page-locked
	seamResult, seamSpace  gpu.Span
}

// beginOnDevice allocates the memory. It accepts less scratch memory than planned if the device has no more.
func (p *Search) beginOnDevice(w *onDevice) (err error) {
	f := &w.finder
	m, row := &p.memory, p.row()
	for _, n := range []struct {
		span         *gpu.Span
		bytes, least int64
	}{{&f.piece, m.piece, m.piece}, {&f.result, m.result, m.result}, {&f.seamResult, m.seam, m.seam},
		{&f.scratch, m.scratch, row}, {&f.seamSpace, m.seamScratch, min(row, m.seamScratch)}} {
		*n.span, err = w.dev.Memory(n.bytes)
		for ; errors.Is(err, gpu.ErrMemory) && n.bytes > n.least; *n.span, err = w.dev.Memory(n.bytes) {
			n.bytes = max(n.least, n.bytes/2)
		}
		if err != nil {
			return err
		}
	}
	f.counts = f.result.From(m.result-countsBytes, countsBytes)
	if f.seamOut, err = w.dev.Pinned(int(m.seam)); err != nil {
		return err
	}
	f.seams, err = w.dev.NewStream()
	return err
}

func (w *onDevice) Load(box oct.Rectangle) Voxels {
	m, c, to := w.plan.Source.mosaic, w.plan.Source.columns, w.finder.piece
	w.load(box, func(z int, plane int64) gpu.Span { return to.From(int64(z)*plane, to.Bytes()-int64(z)*plane) }, func(int, int, Block) {})
	w.Then(func() error {
		w.plan.Source.res.Done(c.Bytes(m.BoxShape(m.Shape[0]-c.Depth, box.Height(), box.Width()))) // not read
		return nil
	})
	return Voxels{Box: box, block: Block{device: to.From(0, operatorOf[*Search](w.plan).bytes(box))}}
}

func (w *onDevice) CountNonFinite(v Voxels) {
	w.try(func() error {
		if m := w.plan.Source.mosaic; m.DType.IsFloat() {
			n := v.block.device.Bytes() / int64(m.DType.Size())
			return kernels.CountNonFinite(w.dev.Stream, w.nonFinite(), v.block.device, m.DType, n)
		}
		return nil
	})
}

// findings divides the memory for the results of n A-lines, 8 bytes each.
func findings(result gpu.Span, n int64) (arg, peak gpu.Span) {
	return result.From(0, 4*n), result.From(4*n, 4*n)
}

// find queues the search of a rectangle.
func (p *Search) find(s *gpu.Stream, result, scratch gpu.Span, in Voxels, r oct.Rectangle) error {
	arg, peak := findings(result, int64(r.Area()))
	m, box := p.source.mosaic, in.Box
	f := kernels.Field{
		At: in.block.device, Type: m.DType, Planes: p.planes, Shape: [2]int{box.Height(), box.Width()}, Pitch: box.Width(), Stride: int64(box.Area()),
		First: [2]int{box.Y0, box.X0}, Length: [2]int{m.Shape[1], m.Shape[2]},
	}
	rows := int(scratch.Bytes() / kernels.SearchScratch(f.Planes, box.Width(), 1, r.Width()))
	for y := r.Y0; y < r.Y1; y += rows {
		n := min(rows, r.Y1-y)
		skip, lines := 4*int64(y-r.Y0)*int64(r.Width()), 4*int64(n)*int64(r.Width())
		if err := p.kernels.Run(s, arg.From(skip, lines), peak.From(skip, lines), f, [2]int{y, r.X0}, [2]int{y + n, r.X1}, scratch); err != nil {
			return err
		}
	}
	return nil
}

// found passes downloaded results to the search's Found.
func (w *onDevice) found(r oct.Rectangle, arg, peak []byte) error {
	p, depth := operatorOf[*Search](w.plan), dtype.Slice[int32](arg)
	for i, z := range depth {
		depth[i] = p.Depth(z)
	}
	return p.Found(w.ctx, r, depth, dtype.Slice[float32](peak))
}

func (w *onDevice) FindInterfaces(in Voxels, r oct.Rectangle) {
	p, f := operatorOf[*Search](w.plan), &w.finder
	w.try(func() error { return p.find(w.dev.Stream, f.result, f.scratch, in, r) })
	arg, peak := findings(f.result, int64(r.Area()))
	var depth, gradient []byte
	w.Bring(Block{device: arg}, func(b []byte) { depth = b })
	if p.gradients {
		w.Bring(Block{device: peak}, func(b []byte) { gradient = b })
	}
	w.Then(func() error { return w.found(r, depth, gradient) })
}

func (w *onDevice) FindInSeam(seam Voxels, r oct.Rectangle) error {
	p, f := operatorOf[*Search](w.plan), &w.finder
	rows := int(p.memory.seam/8) / r.Width()
	for ; r.Y0 < r.Y1; r.Y0 += rows {
		some := oct.Rect(r.Y0, min(r.Y0+rows, r.Y1), r.X0, r.X1)
		start, n := time.Now(), int64(some.Area())
		if err := p.find(f.seams, f.seamResult, f.seamSpace, seam, some); err != nil {
			return err
		}
		arg, peak := findings(f.seamResult, n)
		depth, gradient := f.seamOut[:4*n], []byte(nil)
		f.seams.Download(depth, arg)
		if p.gradients {
			gradient = f.seamOut[4*n : 8*n]
			f.seams.Download(gradient, peak)
		}
		err := f.seams.Wait()
		p.source.res.Meter.Since(meter.Compute, start)
		if err != nil {
			return err
		}
		if err := w.found(some, depth, gradient); err != nil {
			return err
		}
	}
	return nil
}

func (w *onDevice) Gather(seam, piece Voxels) {
	size := int64(w.plan.Source.mosaic.DType.Size())
	part := seam.Box.And(piece.Box)
	brick := func(v Voxels) kernels.Brick {
		skip := (int64(part.Y0-v.Box.Y0)*int64(v.Box.Width()) + int64(part.X0-v.Box.X0)) * size
		span := v.block.device
		return kernels.Brick{At: span.From(skip, span.Bytes()-skip), Pitch: int64(v.Box.Width()) * size, Stride: int64(v.Box.Area()) * size}
	}
	w.try(func() error {
		return kernels.CopyBox(w.dev.Stream, brick(seam), brick(piece), operatorOf[*Search](w.plan).planes, part.Height(), int64(part.Width())*size)
	})
}
