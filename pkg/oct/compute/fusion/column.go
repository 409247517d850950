package fusion

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"strata/pkg/dtype"
	"strata/pkg/gpu"
	"strata/pkg/gpu/kernels"
	"strata/pkg/mem"
	"strata/pkg/ngff/ngffgpu"
	"strata/pkg/work"
)

// columnKeeper holds columns in memory, to which all workers of a pass add tiles.
type columnKeeper interface {
	// Column allocates a column's planes of the pass, or returns nil after an error. The pass continues the given sums
	// of the column's seams. Workers must not call it concurrently.
	Column(c *Column, sums []*SeamSum) *ColumnMemory
	// Write writes complete columns. After each it calls written and releases the column's memory.
	Write(columns []*ColumnMemory, written func(m *ColumnMemory))
}

// ColumnMemory holds a column's planes of a pass in host or device memory.
type ColumnMemory struct {
	*Column
	sums  []*SeamSum
	first []int // of each shared region: index of its first pixel among those of all
	on    interface{ release() }
}

// Release releases the memory of a column that is not written. No worker may be using it.
func (m *ColumnMemory) Release() { m.on.release() }

// memoryOf returns a column's memory with only the fields that host and device share.
func memoryOf(c *Column, sums []*SeamSum) *ColumnMemory {
	m := &ColumnMemory{Column: c, sums: sums, first: make([]int, len(c.Regions))}
	shared := 0
	for i, r := range c.Regions {
		m.first[i] = shared
		if len(r.Who) > 1 {
			shared += r.Area()
		}
	}
	return m
}

// hostColumn holds a column in host memory.
type hostColumn[T dtype.Element, F float32 | float64] struct {
	*ColumnMemory
	unit    int // planes
	buffers []*mem.Buffer
	units   [][]T
	means   []F       // of shared regions, region by region (z, y, x); nil: kept in units
	weights []float32 // sums of weights so far, of these regions (y, x)
}

func (m *hostColumn[T, F]) release() {
	for _, b := range m.buffers {
		b.Release()
	}
}

// memoryFor allocates n bytes of the columns' memory for m.
func (f *hostFusion[T, F]) memoryFor(m *hostColumn[T, F], n int) ([]byte, error) {
	b, err := f.pool.TryGet(n)
	if b == nil && err == nil {
		err = fmt.Errorf("%s: a stitched column does not find the %d bytes that were set aside for it", f.Mosaic.Where, n)
	}
	if err != nil {
		return nil, err
	}
	m.buffers = append(m.buffers, b)
	return b.B, nil
}

// columnBytes returns the host memory for the given number of planes of a column.
func (f *hostFusion[T, F]) columnBytes(c *Column, planes int) int64 {
	total := int64(4 * c.Shared) // sums of weights
	for z := 0; z < planes; z += f.Unit[0] {
		total += int64(mem.Size(min(f.Unit[0], planes-z) * c.Box.Area() * f.Mosaic.DType.Size()))
	}
	if f.apart && c.Shared > 0 {
		total += int64(mem.Size(planes * c.Shared * dtype.Of[F]().Size()))
	}
	return total
}

func (w *hostFuser[T, F]) Column(c *Column, sums []*SeamSum) *ColumnMemory {
	if w.err != nil {
		return nil
	}
	m := &hostColumn[T, F]{ColumnMemory: memoryOf(c, sums), unit: w.Unit[0], weights: make([]float32, c.Shared)}
	m.on = m
	planes := w.pass.Z1 - w.pass.Z0
	if w.err = w.takeColumn(m, planes); w.err != nil {
		m.release()
		return nil
	}
	for i := range c.Regions {
		if r := &c.Regions[i]; len(r.Who) == 0 { // nothing else writes there
			for z := range planes {
				for y := r.Y0; y < r.Y1; y++ {
					clear(m.row(r, z, y))
				}
			}
		}
	}
	return m.ColumnMemory
}

// takeColumn allocates the memory for the given number of planes of a column.
func (w *hostFuser[T, F]) takeColumn(m *hostColumn[T, F], planes int) error {
	for z := 0; z < planes; z += w.Unit[0] {
		b, err := w.memoryFor(m, min(w.Unit[0], planes-z)*m.Box.Area()*w.Mosaic.DType.Size())
		if err != nil {
			return err
		}
		m.units = append(m.units, dtype.Slice[T](b))
	}
	if w.apart && m.Shared > 0 {
		b, err := w.memoryFor(m, planes*m.Shared*dtype.Of[F]().Size())
		if err != nil {
			return err
		}
		m.means = dtype.Slice[F](b)
	}
	return nil
}

// row returns row y of a region, in plane z of the pass.
func (m *hostColumn[T, F]) row(r *Region, z, y int) []T {
	return m.units[z/m.unit][(z%m.unit*m.Box.Height()+y-m.Box.Y0)*m.Box.Width()+r.X0-m.Box.X0:][:r.Width()]
}

// meansOf returns the means of region i over the given number of planes, or nil if they are kept in the units.
func (m *hostColumn[T, F]) meansOf(i, planes int) []F {
	if m.means == nil {
		return nil
	}
	return m.means[m.first[i]*planes:][:m.Regions[i].Area()*planes]
}

// Write shares the units of all columns with idle processors: a unit is often a single chunk.
func (w *hostFuser[T, F]) Write(columns []*ColumnMemory, written func(m *ColumnMemory)) {
	if w.err != nil || len(columns) == 0 {
		return
	}
	units := len(columns[0].on.(*hostColumn[T, F]).units) // of each
	done := make([]atomic.Int64, len(columns))
	w.err = work.Split(w.ctx, len(columns)*units, w.Encoding, func(i int) error {
		m := columns[i/units]
		if err := w.writeUnit(m.on.(*hostColumn[T, F]), i%units); err != nil {
			return err
		}
		if done[i/units].Add(1) == int64(units) {
			written(m)
			m.Release()
		}
		return nil
	})
}

// writeUnit writes a column's k-th unit.
func (w *hostFuser[T, F]) writeUnit(m *hostColumn[T, F], k int) error {
	z := w.pass.Z0 + k*w.Unit[0]
	shape := w.Mosaic.BoxShape(min(w.Unit[0], w.pass.Z1-z), m.Box.Height(), m.Box.Width())
	return w.Output.WriteTile(w.ctx, w.Mosaic.Index(z, m.Box.Y0, m.Box.X0), shape, dtype.Bytes(m.units[k]))
}

// deviceColumn holds a column in device memory.
type deviceColumn struct {
	*ColumnMemory
	begun  bool
	buffer *gpu.Buffer
	voxels gpu.Span    // all planes of the pass
	means  gpu.Span    // of shared regions, region by region (z, y, x); empty if kept in voxels
	sums   [2]gpu.Span // of weights of these regions (y, x): before and after the current tile, alternately
	states gpu.Span    // sums of the seams
}

func (m *deviceColumn) release() { m.buffer.Release() }

// columnParts returns the offsets of the parts of a column's memory, followed by its size: voxels, means, two sums
// of weights, seam states.
func (f *deviceFusion) columnParts(c *Column, planes int) (at [6]int64) {
	kind := f.Mosaic.DType
	bytes := [5]int64{int64(c.Box.Area()) * int64(planes*kind.Size()), 0, int64(4 * c.Shared), int64(4 * c.Shared), int64(len(c.Seams) * kernels.SeamState)}
	if kernels.FuseType(kind) != kind {
		bytes[1] = int64(c.Shared) * int64(planes*kernels.FuseType(kind).Size())
	}
	for i, n := range bytes {
		at[i+1] = at[i] + (n+255)/256*256
	}
	return at
}

// columnBytes returns the device memory for the given number of planes of a column.
func (f *deviceFusion) columnBytes(c *Column, planes int) int64 {
	return mem.Pooled(f.columnParts(c, planes)[5])
}

func (w *deviceFuser) Column(c *Column, sums []*SeamSum) *ColumnMemory {
	if w.err != nil {
		return nil
	}
	at := w.columnParts(c, w.pass.Z1-w.pass.Z0)
	b, err := w.weights.beside(func() (*gpu.Buffer, error) { return w.Res.Device.Memory().Get(at[5]) })
	if err != nil {
		w.err = shortOfMemory(fmt.Errorf("a column of the slice: %w", err))
		return nil
	}
	part := func(i int) gpu.Span { return b.From(at[i], at[i+1]-at[i]) }
	m := &deviceColumn{ColumnMemory: memoryOf(c, sums), buffer: b, voxels: part(0), means: part(1), sums: [2]gpu.Span{part(2), part(3)}, states: part(4)}
	m.on = m
	return m.ColumnMemory
}

// shortOfMemory wraps an error that the device is out of memory as [ShortOfMemory], so that the stage can retry
// with less. It returns other errors unchanged.
func shortOfMemory(err error) error {
	if errors.Is(err, gpu.ErrMemory) {
		return ShortOfMemory{err}
	}
	return err
}

// unitAlignment is the required alignment in bytes of a unit's device memory when it is written.
const unitAlignment = 16

// deviceUnit is a unit of a column that is being written.
type deviceUnit struct {
	column *ColumnMemory
	last   bool // of the column
	tile   *ngffgpu.Tile
}

// Write overlaps the host's writing of a unit with the transfer of the next one.
func (w *deviceFuser) Write(columns []*ColumnMemory, written func(m *ColumnMemory)) {
	if len(columns) == 0 {
		return
	}
	w.try(func() error {
		w.pass.order.follow(w.dev.Stream) // others may have added to them
		var before *deviceUnit
		k := 0 // units
		for _, c := range columns {
			m := c.on.(*deviceColumn)
			states := w.back[8:][:len(c.Seams)*kernels.SeamState]
			w.dev.Stream.Download(states, m.states)
			at := int64(0)
			for z := w.pass.Z0; z < w.pass.Z1; z += w.Unit[0] {
				now, n, err := w.leave(m, z, at, k, w.writer.Begin)
				short := errors.Is(err, gpu.ErrMemory)
				if err != nil && !short {
					return err
				}
				if before != nil {
					if err := before.write(w.ctx, w.dev.Stream, written); err != nil {
						return err
					}
					before = nil
				}
				if short { // others' units hold it
					if now, n, err = w.leave(m, z, at, k, w.await); err != nil {
						return err
					}
				}
				if err := w.wait(); err != nil {
					return err
				}
				if z == w.pass.Z0 {
					c.takeSums(states)
				}
				if w.inFlight > 1 {
					before = now
				} else if err := now.write(w.ctx, w.dev.Stream, written); err != nil {
					return err
				}
				at += n
				k++
			}
		}
		if before == nil {
			return nil
		}
		return before.write(w.ctx, w.dev.Stream, written)
	})
}

// leave queues the transfer of a unit from the device: the planes from z on of a column, at byte offset at of its
// voxels. It is the worker's k-th unit. It returns the unit's size n in bytes. begin is the writer's Begin, or await.
func (w *deviceFuser) leave(m *deviceColumn, z int, at int64, k int, begin func(*gpu.Stream, []int, []int, gpu.Span) (*ngffgpu.Tile, error)) (u *deviceUnit, n int64, err error) {
	shape := []int{min(w.Unit[0], w.pass.Z1-z), m.Box.Height(), m.Box.Width()}
	n = w.reader.Bytes(shape)
	src := m.voxels.From(at, n)
	if at%unitAlignment != 0 {
		to := w.scratch[k%w.inFlight]
		w.dev.Stream.Copy(to, src)
		src = to.From(0, n)
	}
	t, err := begin(w.dev.Stream, w.Mosaic.Index(z, m.Box.Y0, m.Box.X0), w.Mosaic.BoxShape(shape[0], shape[1], shape[2]), src)
	if err != nil {
		return nil, 0, err
	}
	w.units[k%2] = t
	return &deviceUnit{m.ColumnMemory, z+w.Unit[0] >= w.pass.Z1, t}, n, nil
}

// await is Begin of the writer for a unit that found no memory.
func (w *deviceFuser) await(s *gpu.Stream, start, shape []int, src gpu.Span) (*ngffgpu.Tile, error) {
	return w.writer.Await(w.ctx, s, start, shape, src)
}

// write writes a unit that has been transferred, or writes it directly from the device. After the last unit of a
// column it releases the column.
func (u *deviceUnit) write(ctx context.Context, s *gpu.Stream, written func(m *ColumnMemory)) error {
	if err := u.tile.Write(ctx, s); err != nil || !u.last {
		return err
	}
	written(u.column)
	u.column.Release()
	return nil
}
