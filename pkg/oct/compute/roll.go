package compute

import (
	"errors"
	"fmt"
	"sync"

	"strata/pkg/dtype"
	"strata/pkg/filter"
	"strata/pkg/gpu"
	"strata/pkg/gpu/kernels"
	"strata/pkg/mem"
	"strata/pkg/ngff/ngffgpu"
	"strata/pkg/oct"
	"strata/pkg/oct/compute/transfer"
	"strata/pkg/work"
)

// Roller is a worker that rolls the A-lines of tiles by the plan's [Rolling], with the same bits on every machine.
type Roller interface {
	Worker
	// RollTile reads a tile, rolls its A-lines by the plan's shifts and writes it. The plan counts non-finite voxels.
	RollTile(tile oct.Rectangle)
}

// Rolling is the operator of a [Roller].
type Rolling struct {
	summing
	Shifts Block // shifts of a tile's pixels, float32 (y, x), with the pitch of a whole tile; made by [Shared]
	Chunk  int64 // bytes of a chunk of the output
}

// Shared returns a block with the values v that all workers can use, and a function that frees it. On a
// device it uploads them; on the host it shares v.
func Shared[T dtype.Element](res *oct.Resources, v []T) (b Block, free func(), err error) {
	if res.Device == nil {
		return Block{host: dtype.Bytes(v)}, func() {}, nil
	}
	s, err := res.Device.Stream()
	if err != nil {
		return b, nil, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	host, err := res.Device.Host(len(dtype.Bytes(v)))
	if err != nil {
		return b, nil, err
	}
	defer host.Release()
	copy(host.B, dtype.Bytes(v))
	d, err := res.Device.Memory().Get(int64(len(host.B)))
	if err != nil {
		return b, nil, err
	}
	s.Upload(d.Span, host.B)
	if err := s.Wait(); err != nil {
		d.Release()
		return b, nil, err
	}
	return Block{device: d.Span}, d.Release, nil
}

func (*Rolling) streams() bool { return false }

// loads returns the size of a tile, which is rolled in place.
func (*Rolling) loads(p *Plan) int64 { return p.Source.mosaic.TileBytes() }

// onHost returns the memory for a tile's encoded form.
func (r *Rolling) onHost(p *Plan) int64 {
	return max(p.Source.whole.Scratch, r.Chunk) + workspace(p.Source.mosaic)
}

// workspace returns the approximate memory of a worker's filters, for rolling and for the surface search.
func workspace(m *oct.Mosaic) int64 { return 1<<20 + 2<<10*int64(m.Shape[0]) }

// roll maps an element type to its filter.Roll.
var roll = map[dtype.Type]func(w *filter.RollWorkspace, volume []byte, planes, ny, nx, y0, y1 int, shift []float32, pitch int) int64{
	dtype.Uint8: rollOf[uint8], dtype.Int8: rollOf[int8], dtype.Uint16: rollOf[uint16], dtype.Int16: rollOf[int16],
	dtype.Uint32: rollOf[uint32], dtype.Int32: rollOf[int32], dtype.Uint64: rollOf[uint64], dtype.Int64: rollOf[int64],
	dtype.Float32: rollOf[float32], dtype.Float64: rollOf[float64],
}

func rollOf[T dtype.Element](w *filter.RollWorkspace, volume []byte, planes, ny, nx, y0, y1 int, shift []float32, pitch int) int64 {
	return filter.Roll(w, dtype.Slice[T](volume), planes, ny, nx, y0, y1, shift, pitch)
}

// rollSpaces keeps workspaces between tiles.
var rollSpaces = sync.Pool{New: func() any { return new(filter.RollWorkspace) }}

// rolledRows is the number of rows that a processor rolls at a time.
const rolledRows = 16

// rollRows rolls the tile that was read, on idle processors as well.
func (w *host) rollRows(tile oct.Rectangle) error {
	m, shifts := w.plan.Source.mosaic, dtype.Slice[float32](operatorOf[*Rolling](w.plan).Shifts.host)
	ny, nx := tile.Height(), tile.Width()
	return work.Split(w.ctx, (ny+rolledRows-1)/rolledRows, workspace(m), func(i int) error {
		space := rollSpaces.Get().(*filter.RollWorkspace)
		defer rollSpaces.Put(space)
		y0, y1 := i*rolledRows, min((i+1)*rolledRows, ny)
		w.plan.nonFinite(roll[m.DType](space, w.tile.Data, m.Shape[0], ny, nx, y0, y1, shifts, m.Chunk[2]))
		return nil
	})
}

func (w *host) RollTile(tile oct.Rectangle) {
	if w.err != nil {
		return
	}
	s := w.plan.Source
	m := s.mosaic
	if w.err = s.whole.Read(w.ctx, w.tile, 0, m.Shape[0], tile); w.err != nil {
		return
	}
	w.compute(func() { w.err = w.rollRows(tile) })
	w.Write([]int{0, tile.Y0, tile.X0}, []int{m.Shape[0], tile.Height(), tile.Width()}, Block{host: w.tile.Data})
	if w.err == nil {
		s.res.Done(int64(len(w.tile.Data)))
	}
}

// deviceRoller holds the memory in which a worker rolls tiles. Each tile is uploaded once and comes back once,
// with 8 bytes if its voxels are floating-point numbers.
//
// If the device cannot hold a tile twice, it receives some rows at a time, which are reassembled on the host.
type deviceRoller struct {
	in, rolled gpu.Span // the tile, or rows of it
	back       int64    // bytes of rows downloaded to the host
	together   [][]byte // by place: a tile being assembled; nil: the device holds whole tiles
}

func (r *deviceRoller) free() {
	for _, b := range r.together {
		mem.Free(b)
	}
}

func (r *Rolling) planOnDevice(p *Plan) (output *ngffgpu.Writer, workers int, err error) {
	c := p.Source.columns
	for {
		n, output := r.onDevice(p)
		if workers, err = c.Workers(n); err == nil {
			return output, workers, nil
		}
		if !transfer.FewerRows(err) || !c.Less() {
			return nil, 0, err
		}
	}
}

// onDevice returns the memory of a worker on a device that holds a tile, or as many of its rows as the device has room
// for. output is nil if the host assembles the rows.
func (r *Rolling) onDevice(p *Plan) (n transfer.Needs, output *ngffgpu.Writer) {
	m, c := p.Source.mosaic, p.Source.columns
	n = transfer.Needs{
		What: p.What + " " + c.Pieces(), Mem: p.Memory.Host, Host: r.Chunk, Place: mem.Pooled(8),
		Device: 2*mem.Pooled(c.Piece()) + mem.Pooled(countsBytes), Shared: mem.Pooled(4 * int64(m.Chunk[1]) * int64(m.Chunk[2])),
	}
	if c.Rows < m.Chunk[1] {
		n.PlaceHost, n.Place = mem.Pooled(m.TileBytes()), mem.Pooled(c.Piece()+8)
		return n, nil
	}
	output = p.Source.res.Output(p.Output.To)
	n.Leaves, n.Leaving = output.Memory(m.Tile())
	n.Elements = mem.Pooled(m.TileBytes())
	return n, output
}

func (*Rolling) beginOnDevice(w *onDevice) error {
	s, r := w.plan.Source, &w.roll
	n := s.columns.Piece()
	spans, err := w.dev.Memories(n, n)
	if err != nil {
		return err
	}
	r.in, r.rolled = spans[0], spans[1]
	if s.columns.Rows == s.mosaic.Chunk[1] {
		return nil
	}
	r.back = n
	for range s.columns.Slots {
		b, err := mem.Alloc(int(s.mosaic.TileBytes()))
		if err != nil {
			return fmt.Errorf("memory for a tile: %w", err)
		}
		r.together = append(r.together, b)
	}
	return nil
}

func (w *onDevice) RollTile(tile oct.Rectangle) {
	s := w.plan.Source
	m, r := s.mosaic, &w.roll
	start, shape := []int{0, tile.Y0, tile.X0}, []int{m.Shape[0], tile.Height(), tile.Width()}
	for _, part := range s.Parts(tile) {
		w.load(part, func(z int, plane int64) gpu.Span { return r.in.From(int64(z)*plane, r.in.Bytes()-int64(z)*plane) }, func(int, int, Block) {})
		w.try(func() error {
			bad := w.bad
			if m.DType.IsFloat() {
				bad = w.nonFinite()
			}
			skip := 4 * int64(part.Y0-tile.Y0) * int64(m.Chunk[2])
			shifts := operatorOf[*Rolling](w.plan).Shifts.device
			shifts = shifts.From(skip, shifts.Bytes()-skip)
			return kernels.Roll(w.dev.Stream, r.rolled, r.in, bad, m.DType, m.Shape[0], part.Height(), part.Width(), shifts, m.Chunk[2])
		})
		if r.together != nil {
			w.putTogether(tile, part)
		}
	}
	if r.together == nil {
		w.Write(start, shape, Block{device: r.rolled})
		return
	}
	w.try(func() error {
		t := w.tile()
		t.write = func() error {
			return w.plan.Output.To.WriteTile(w.ctx, start, shape, r.together[t.place][:s.columns.Bytes(shape)])
		}
		return nil
	})
}

// putTogether downloads a part of a tile and copies it to its position in the tile on the host.
func (w *onDevice) putTogether(tile, part oct.Rectangle) {
	c := w.plan.Source.columns
	depth := int64(w.plan.Source.mosaic.Shape[0])
	w.try(func() error {
		t := w.tile()
		plane := c.Bytes([]int{1, part.Height(), part.Width()})
		whole, from := c.Bytes([]int{1, tile.Height(), tile.Width()}), c.Bytes([]int{1, part.Y0 - tile.Y0, part.Width()})
		out, to := w.places[t.place][8:8+depth*plane], w.roll.together[t.place]
		w.dev.Stream.Download(out, w.roll.rolled.From(0, depth*plane))
		w.dev.Stream.After(func() {
			for z := range depth {
				copy(to[z*whole+from:], out[z*plane:(z+1)*plane])
			}
		})
		w.settle() // the next part comes to where this one is
		return w.err
	})
}
