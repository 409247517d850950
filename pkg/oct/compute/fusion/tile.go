package fusion

import (
	"context"
	"encoding/binary"
	"errors"
	"io/fs"
	"math"
	"slices"
	"time"

	"strata/pkg/dtype"
	"strata/pkg/filter"
	"strata/pkg/gpu/kernels"
	"strata/pkg/meter"
	"strata/pkg/oct"
	"strata/pkg/oct/compute/transfer"
	"strata/pkg/tile"
	"strata/pkg/tile/zarrsource"
)

// tileLoader reads the planes of a pass, one tile after another.
type tileLoader interface {
	// Load begins a tile. blank is the number of planes, from plane 0 on, that the caller knows to be zero. If it is
	// negative, nothing is known, and Load reads until it finds a non-zero voxel. It returns the number known
	// afterwards, which is the mosaic's depth if all planes are zero.
	Load(tile Tile, blank int) int
	// Planes calls take for the tile's planes of the pass in increasing z. While take runs, Fuse adds n planes from
	// plane z on. If take returns false, Planes ends, and a device does none of the work that take requested.
	Planes(take func(z, n int) bool)
	// CountNonFinite adds the number of NaN and infinite voxels to the meter, for the planes of the latest call of
	// Planes.
	CountNonFinite()
}

// pieceReader reads the tiles of a mosaic in pieces along z that contain whole planes of the tile. Uncompressed
// chunks are read in pieces that fit the cache, others chunk by chunk.
type pieceReader[T dtype.Element] struct {
	mosaic *oct.Mosaic
	loader *tile.Loader[T]
	planes int   // of a piece
	pieces int   // of a tile
	bytes  int64 // memory of a worker: a piece and its encoded form
}

// newPieceReader plans the reading. With workers 0, the reader serves for planning only.
func newPieceReader[T dtype.Element](m *oct.Mosaic, workers int, count *meter.Meter) (*pieceReader[T], error) {
	plane := m.Chunk[1] * m.Chunk[2] * m.DType.Size()
	src, err := pieceSource(m, count)
	if err != nil {
		return nil, err
	}
	r := &pieceReader[T]{mosaic: m, planes: m.Frames.Planes(src.TileShape(0))}
	r.pieces = (m.Shape[0] + r.planes - 1) / r.planes
	r.bytes = int64(r.planes)*int64(plane) + src.ScratchBytes()
	if workers > 0 {
		r.loader, err = tile.New[T](src, tile.Inline(), tile.ViewsAvailable(workers))
	}
	return r, err
}

// pieceSource returns the source of the pieces. If chunks hold several frames, a piece is as deep as a chunk.
func pieceSource(m *oct.Mosaic, count *meter.Meter) (*zarrsource.Source, error) {
	plane := m.Chunk[1] * m.Chunk[2] * m.DType.Size()
	a := m.Image.Levels[0].Array
	cut := zarrsource.PieceBytes(max(transfer.PlanesPiece, plane))
	if slices.ContainsFunc(a.Chunks()[:len(m.At)], func(n int) bool { return n > 1 }) {
		cut = zarrsource.Tile(m.BoxShape(m.Chunk[0], m.Chunk[1], m.Chunk[2])...)
	}
	return zarrsource.New(a, cut, zarrsource.Meter(count))
}

// close releases the reader. All views must have been released.
func (r *pieceReader[T]) close() {
	if r != nil && r.loader != nil {
		_ = r.loader.Close() // it holds nothing but memory
	}
}

// piece holds a worker's current piece.
type piece[T dtype.Element] struct {
	*pieceReader[T]
	view *tile.View[T]
	at   [3]int // its index: piece, i, j
}

// load reads piece k of the tile that begins at r's corner. Rows keep the pitch of whole tiles, even in a partial
// tile.
func (p *piece[T]) load(ctx context.Context, k int, r oct.Rectangle) (data []T, err error) {
	i, j := r.Y0/p.mosaic.Chunk[1], r.X0/p.mosaic.Chunk[2]
	index := [3]int{k, i, j}
	switch {
	case p.view == nil:
		p.view, err = p.loader.View(ctx, 0, p.mosaic.Index(k, i, j))
	case p.at != index:
		if err = p.loader.Reload(ctx, p.view, p.mosaic.Index(k, i, j)); err != nil {
			p.view = nil // Reload released it
		}
	}
	if errors.Is(err, fs.ErrPermission) {
		err = oct.InputFault(err) // a chunk that may not be read
	}
	if err != nil {
		return nil, err
	}
	p.at = index
	return p.view.Data(), nil
}

// of returns the number of planes in piece k.
func (p *piece[T]) of(k int) int { return min(p.planes, p.mosaic.Shape[0]-k*p.planes) }

func (p *piece[T]) release() {
	if p.view != nil {
		_ = p.view.Release() // once, by its only owner
		p.view = nil
	}
}

// zeros returns how many of a tile's first planes are zero, to the granularity of pieces: all of them if the
// microscope skipped the tile. It reads up to the first piece that is not zero, which stays in memory.
func (p *piece[T]) zeros(ctx context.Context, r oct.Rectangle) (int, error) {
	for k := range p.pieces {
		data, err := p.load(ctx, k, r)
		if err != nil || !p.blank(data, p.of(k), r) {
			return k * p.planes, err
		}
	}
	return p.mosaic.Shape[0], nil
}

// blank reports whether all voxels of the planes are zero. Minus zero does not count as zero.
func (p *piece[T]) blank(data []T, planes int, r oct.Rectangle) bool {
	ny, nx := p.mosaic.Chunk[1], p.mosaic.Chunk[2]
	for z := range planes {
		for y := range r.Height() {
			for _, v := range data[(z*ny+y)*nx:][:r.Width()] {
				if v != 0 || math.Signbit(float64(v)) {
					return false
				}
			}
		}
	}
	return true
}

func (w *hostFuser[T, F]) Load(t Tile, blank int) int {
	w.take(t)
	if blank < 0 && w.err == nil {
		blank, w.err = w.in.zeros(w.ctx, t.From)
	}
	w.blank = blank
	return blank
}

func (w *hostFuser[T, F]) Planes(take func(z, n int) bool) {
	for k := w.pass.Z0 / w.in.planes; k < w.in.pieces && k*w.in.planes < w.pass.Z1; k++ {
		if w.err == nil {
			w.err = w.ctx.Err()
		}
		if w.err != nil {
			return
		}
		w.first, w.data = k*w.in.planes, nil
		if w.first >= w.blank {
			if w.data, w.err = w.in.load(w.ctx, k, w.tile.From); w.err != nil {
				return
			}
		}
		w.lo, w.hi = max(w.first, w.pass.Z0), min(w.first+w.in.of(k), w.pass.Z1)
		start := time.Now()
		w.waited = 0
		more := take(w.lo, w.hi-w.lo)
		w.Res.Meter.Since(meter.Compute, start.Add(w.waited))
		if !more {
			return
		}
	}
}

func (w *hostFuser[T, F]) CountNonFinite() {
	if !w.Mosaic.DType.IsFloat() || w.data == nil {
		return
	}
	ny, nx, r := w.Mosaic.Chunk[1], w.Mosaic.Chunk[2], w.tile.From
	n := int64(0)
	for z := w.lo - w.first; z < w.hi-w.first; z++ {
		for y := range r.Height() {
			n += filter.NonFiniteStored(w.Mosaic.DType, dtype.Bytes(w.data[(z*ny+y)*nx:][:r.Width()]))
		}
	}
	w.Res.Meter.AddNonFinite(n)
}

// Load copies a tile's planes of the pass to the device, for all columns that the tile covers. If these planes are
// zero and it is unknown whether the tile is empty, Load checks the other planes in the same memory.
func (w *deviceFuser) Load(t Tile, blank int) int {
	w.take(t)
	depth := w.Mosaic.Shape[0]
	w.try(func() (err error) {
		switch {
		case blank == depth:
			err = w.wait() // the table is the tile's before
		case blank >= 0:
			err = w.fetch(w.pass.Z0, w.pass.Z1, false)
		default:
			blank, err = w.look()
		}
		return err
	})
	w.blank = blank
	return blank
}

// look loads a tile and determines whether all its planes are zero.
func (w *deviceFuser) look() (blank int, err error) {
	z0, z1, depth := w.pass.Z0, w.pass.Z1, w.Mosaic.Shape[0]
	parts := [][2]int{{z0, z1}}
	for _, rest := range [][2]int{{0, z0}, {z1, depth}} {
		for z := rest[0]; z < rest[1]; z += z1 - z0 {
			parts = append(parts, [2]int{z, min(z+z1-z0, rest[1])})
		}
	}
	for i, z := range parts {
		if err := w.fetch(z[0], z[1], true); err != nil {
			return 0, err
		}
		if binary.LittleEndian.Uint64(w.back) == 0 {
			continue
		}
		if i > 0 { // the planes of the pass were zero
			w.dev.Stream.Zero(w.planes)
		}
		return 0, nil
	}
	return depth, nil
}

// fetch copies planes z0 … z1−1 of a tile to the device and waits for them. With count, it also downloads the
// number of non-zero voxels to the beginning of back. The host fetches a region while the preceding one is copied
// to the device.
func (w *deviceFuser) fetch(z0, z1 int, count bool) error {
	from, slots, s := w.tile.From, w.dev.Slots, w.dev.Stream
	at := int64(0)
	for i, r := range w.reader.PlanesOf(z0, z1, from.Y0, from.Height(), from.X0, from.Width()) {
		if i > 0 && len(slots) == 1 {
			if err := w.wait(); err != nil {
				return err
			}
		}
		slot := slots[i%len(slots)]
		if err := slot.Fetch(w.ctx, r); err != nil {
			return oct.Readable(err)
		}
		if i > 0 && len(slots) > 1 {
			if err := w.wait(); err != nil {
				return err
			}
		}
		n := w.reader.Bytes(r.Shape)
		slot.Into(s, w.planes.From(at, n))
		at += n
	}
	if count {
		s.Zero(w.set)
		if err := kernels.CountSet(s, w.set, w.planes.From(0, at)); err != nil {
			return err
		}
		s.Download(w.back[:8], w.set)
	}
	return w.wait()
}

func (w *deviceFuser) CountNonFinite() {
	kind := w.Mosaic.DType
	if !kind.IsFloat() || w.blank == w.Mosaic.Shape[0] {
		return
	}
	w.try(func() error {
		s, n := w.dev.Stream, int64(w.pass.Z1-w.pass.Z0)*int64(w.tile.From.Area())
		s.Zero(w.set)
		if err := kernels.CountNonFinite(s, w.set, w.planes, kind, n); err != nil {
			return err
		}
		s.Download(w.back[:8], w.set)
		if err := w.wait(); err != nil {
			return err
		}
		w.Res.Meter.AddNonFinite(int64(binary.LittleEndian.Uint64(w.back)))
		return nil
	})
}

func (w *deviceFuser) wait() error {
	start := time.Now()
	defer func() { w.Res.Meter.Since(meter.Compute, start) }()
	return w.dev.Stream.Wait()
}

func (w *deviceFuser) Planes(take func(z, n int) bool) {
	w.cells, w.seams, w.columns, w.then = w.cells[:0], w.seams[:0], w.columns[:0], w.then[:0]
	w.most = 0
	if w.err == nil && take(w.pass.Z0, w.pass.Z1-w.pass.Z0) {
		w.try(w.queue)
		for _, f := range w.then {
			if w.err == nil {
				f()
			}
		}
	}
}
