package fusion

import (
	"slices"
	"time"

	"strata/pkg/dtype"
	"strata/pkg/filter"
	"strata/pkg/gpu"
	"strata/pkg/gpu/kernels"
	"strata/pkg/ngff/ngffgpu"
	"strata/pkg/oct/compute/transfer"
	"strata/pkg/work"
)

// blender blends tiles into columns, with the same bits on every machine except for the payload of a NaN.
type blender interface {
	// Fuse adds the planes that Planes hands over to a region of a column. Voxels of a tile that covers the region
	// alone are copied, or interpolated if the tile is offset by a fraction of a voxel. In a shared region, each tile
	// moves the running mean by its share of the sum of weights so far; after the last tile the result is rounded to
	// the column's type, half to even, and clamped. A region whose tiles are all empty becomes zero.
	Fuse(m *ColumnMemory, c *Cell)
	// Then calls f as soon as the next tile may be added to the columns of the preceding calls of Fuse.
	Then(f func())
	// Waited reports time that was spent waiting for other tiles while adding planes, so that it does not count as
	// computing.
	Waited(t time.Duration)
}

// Cell describes how the loaded tile contributes to a region of a column, in all planes of the pass.
type Cell struct {
	Region int  // index in the column's Regions
	Before int  // number of non-empty tiles added to it before
	Last   bool // no other tile follows
	Empty  bool // the tile is zero in all planes
	Seam   bool // the tile is compared with the running mean, which is that of one other

	parts []float32 // on the host: the shares by which the means move
}

// hostFuser is a worker on the host, with its memory.
type hostFuser[T dtype.Element, F float32 | float64] struct {
	*hostFusion[T, F]
	fusedTile
	in     piece[T]
	data   []T // of the current planes; nil: they are zero
	first  int // first plane of data
	lo, hi int // planes being added
	waited time.Duration
	rows   rowBuffers[F]
	own    []float32 // weights of the tile; nil: all are 1
	done   func()    // releases own
}

func (w *hostFuser[T, F]) Then(f func()) {
	if w.err == nil {
		f()
	}
}

func (w *hostFuser[T, F]) Waited(t time.Duration) { w.waited += t }

func (w *hostFuser[T, F]) Fuse(c *ColumnMemory, l *Cell) {
	if w.err != nil {
		return
	}
	m, r := c.on.(*hostColumn[T, F]), &c.Regions[l.Region]
	if len(r.Who) == 1 {
		w.alone(m, r)
	} else {
		if l.parts == nil && !l.Empty {
			l.parts = w.weigh(m.weights[m.first[l.Region]:][:r.Area()], r, l.Before == 0)
		}
		w.blend(m, r, l)
	}
}

// alone stores a region that only this tile covers.
func (w *hostFuser[T, F]) alone(m *hostColumn[T, F], r *Region) {
	w.each(r, w.parts(r), func(rows *rowBuffers[F], z int) {
		for y := r.Y0; y < r.Y1; y++ {
			dst := m.row(r, z-w.pass.Z0, y)
			switch {
			case w.data == nil:
				clear(dst)
			case w.tile.Behind == [2]float32{}:
				copy(dst, w.row(z, y-w.tile.To.Y0)[r.X0-w.tile.To.X0:])
			default:
				storeRow(dst, w.sample(rows, z, y, r.X0, r.X1))
			}
		}
	})
}

// rowBuffers is memory for rows of the canvas as seen by a tile.
type rowBuffers[F float32 | float64] [4][]F

// leastShared is the number of voxels of a region from which idle processors help to fuse it.
const leastShared = 1 << 18

// parts returns the number of parts into which the planes being added are split: more than one only if processors are
// idle.
func (w *hostFuser[T, F]) parts(r *Region) int {
	planes := w.hi - w.lo
	if planes*r.Area() < leastShared {
		return 1
	}
	return min(planes, 1+2*work.Idle(w.ctx))
}

// each calls f for the planes being added, in order if they are one part, else on idle processors as well.
func (w *hostFuser[T, F]) each(r *Region, parts int, f func(rows *rowBuffers[F], z int)) {
	planes := w.hi - w.lo
	if parts == 1 {
		for z := w.lo; z < w.hi; z++ {
			f(&w.rows, z)
		}
		return
	}
	w.err = work.Split(w.ctx, parts, int64(len(w.rows)*8*r.Width()), func(i int) error {
		var rows rowBuffers[F]
		for z := w.lo + i*planes/parts; z < w.lo+(i+1)*planes/parts; z++ {
			f(&rows, z)
		}
		return nil
	})
}

// weigh returns the shares by which the tile moves the running means of a region: its weight divided by the sum of
// the weights up to and including it. It updates sum.
func (w *hostFuser[T, F]) weigh(sum []float32, r *Region, first bool) []float32 {
	if first {
		clear(sum)
	}
	nx, to := r.Width(), w.tile.To
	parts := make([]float32, len(sum))
	for y := r.Y0; y < r.Y1; y++ {
		a, sum := parts[(y-r.Y0)*nx:][:nx], sum[(y-r.Y0)*nx:][:nx]
		var own []float32
		if w.own != nil {
			own = w.own[(y-to.Y0)*to.Width()+r.X0-to.X0:][:nx]
		}
		for x := range a {
			one := float32(1)
			if own != nil {
				one = own[x]
			}
			if w.Choose {
				if one > sum[x] {
					sum[x], a[x] = one, 1
				}
				continue
			}
			sum[x] += one
			a[x] = one / sum[x]
		}
	}
	return parts
}

// blend adds the tile to a region that it shares with others.
func (w *hostFuser[T, F]) blend(m *hostColumn[T, F], r *Region, l *Cell) {
	if l.Empty && !l.Last {
		return
	}
	nx := r.Width()
	means := m.meansOf(l.Region, w.pass.Z1-w.pass.Z0)
	meanOf := func(z, y int) []F {
		if means != nil {
			return means[((z-w.pass.Z0)*r.Height()+y-r.Y0)*nx:][:nx]
		}
		return any(m.row(r, z-w.pass.Z0, y)).([]F)
	}
	var seam *SeamSum // that is to be added to, in order
	if l.Seam && !l.Empty && l.Before > 0 {
		seam = m.sums[r.Seam]
	}
	parts := w.parts(r)
	if seam != nil && parts > 1 { // before the planes are blended in any order
		for z := (w.lo + SeamStep - 1) / SeamStep * SeamStep; z < w.hi; z += SeamStep {
			for y := r.Y0; y < r.Y1; y++ {
				addRow(seam, meanOf(z, y), w.sample(&w.rows, z, y, r.X0, r.X1))
			}
		}
		seam = nil
	}
	w.each(r, parts, func(rows *rowBuffers[F], z int) {
		for y := r.Y0; y < r.Y1; y++ {
			dst, mean := m.row(r, z-w.pass.Z0, y), meanOf(z, y)
			switch {
			case l.Empty && l.Before == 0:
				clear(dst)
				continue
			case l.Empty:
			case l.Before == 0:
				copy(mean, w.sample(rows, z, y, r.X0, r.X1))
			default:
				s := w.sample(rows, z, y, r.X0, r.X1)
				if seam != nil && z%SeamStep == 0 {
					addRow(seam, mean, s)
				}
				filter.Blend(mean, s, l.parts[(y-r.Y0)*nx:][:nx])
			}
			if l.Last && means != nil {
				storeRow(dst, mean)
			}
		}
	})
}

// row returns row y of plane z of the tile.
func (w *hostFuser[T, F]) row(z, y int) []T {
	return w.data[((z-w.first)*w.Mosaic.Chunk[1]+y)*w.Mosaic.Chunk[2]:][:w.tile.To.Width()]
}

// storeRow converts a row to the voxel type, rounding half to even and clamping.
func storeRow[T dtype.Element, F float32 | float64](dst []T, v []F) {
	if same, ok := any(dst).([]F); ok {
		copy(same, v)
		return
	}
	dtype.ConvertSlice(dst, dtype.Bytes(v), dtype.Of[F]())
}

// sample returns a row of the canvas as seen by the tile: interpolated linearly if the tile is offset by a
// fraction of a voxel, with the outermost voxels repeated beyond their centres. The result is valid until the next
// call with these rows.
func (w *hostFuser[T, F]) sample(rows *rowBuffers[F], z, y, x0, x1 int) []F {
	to := w.tile.To
	ty, x0, x1 := y-to.Y0, x0-to.X0, x1-to.X0
	if w.data == nil {
		rows[3] = slices.Grow(rows[3][:0], x1-x0)[:x1-x0]
		clear(rows[3])
		return rows[3]
	}
	fy, fx := w.tile.Behind[0], w.tile.Behind[1]
	// the columns that are needed
	a, b := x0, x1
	if fx > 0 {
		a = max(a-1, 0)
	} else if fx < 0 {
		b = min(b+1, to.Width())
	}
	row := convert(rows, 0, w.row(z, ty)[a:b])
	if fy != 0 {
		o := ty - 1
		if fy < 0 {
			o, fy = ty+1, -fy
		}
		next := convert(rows, 1, w.row(z, min(max(o, 0), to.Height()-1))[a:b])
		rows[2] = slices.Grow(rows[2][:0], b-a)[:b-a]
		filter.Between(rows[2], row, next, F(fy))
		row = rows[2]
	}
	if fx == 0 {
		return row
	}
	n := x1 - x0
	out := slices.Grow(rows[3][:0], n)[:n]
	rows[3] = out
	switch {
	case fx < 0 && b == x1: // nothing beyond the last column
		out[n-1] = row[n-1]
		filter.Between(out[:n-1], row[:n-1], row[1:], F(-fx))
	case fx < 0:
		filter.Between(out, row, row[1:], F(-fx))
	case a == x0: // nothing before the first
		out[0] = row[0]
		filter.Between(out[1:], row[1:], row, F(fx))
	default:
		filter.Between(out, row[1:], row, F(fx))
	}
	return out
}

// convert converts a row to the blending type, in buffer k; a row of that type is returned as it is.
func convert[T dtype.Element, F float32 | float64](rows *rowBuffers[F], k int, row []T) []F {
	if same, ok := any(row).([]F); ok {
		return same
	}
	rows[k] = slices.Grow(rows[k][:0], len(row))[:len(row)]
	for i, v := range row {
		rows[k][i] = F(v)
	}
	return rows[k]
}

// deviceFuser is a worker on a device, with its memory.
type deviceFuser struct {
	*deviceFusion
	fusedTile
	dev     *transfer.DeviceWorker
	queued  *gpu.Event // recorded after its latest work, for others to follow
	planes  gpu.Span   // of the tile, as many as the pass has
	set     gpu.Span   // uint64: number of non-zero voxels in planes
	table   gpu.Span
	scratch []gpu.Span       // copies of units whose alignment does not allow writing them
	units   [2]*ngffgpu.Tile // being written
	rows    []byte           // page-locked: the table
	back    []byte           // page-locked: set; sums of seams
	fill    int              // of rows
	own     gpu.Span         // weights of the tile; of no bytes: all are 1

	// what is to be queued of the tile
	columns []*deviceColumn
	cells   []kernels.Cell
	most    int // pixels of a cell
	seams   []deviceSeam
	then    []func()
}

func (w *deviceFuser) Then(f func())        { w.then = append(w.then, f) }
func (w *deviceFuser) Waited(time.Duration) {}

// row allocates the next n bytes of the table, on the host and on the device.
func (w *deviceFuser) row(n int) ([]byte, gpu.Span) {
	at := w.fill
	w.fill += n
	return w.rows[at:w.fill], w.table.From(int64(at), int64(n))
}

// Fuse records the tile's work; a single kernel launch later does all of it.
func (w *deviceFuser) Fuse(c *ColumnMemory, l *Cell) {
	if w.err != nil {
		return
	}
	m := c.on.(*deviceColumn)
	if n := len(w.columns); n == 0 || w.columns[n-1] != m {
		w.columns = append(w.columns, m)
	}
	cell, does := w.cell(m, l)
	if does {
		w.cells = append(w.cells, cell)
		w.most = max(w.most, cell.NY*cell.NX)
	}
	if l.Seam {
		w.seams = append(w.seams, deviceSeam{m.states.From(int64(c.Regions[l.Region].Seam)*kernels.SeamState, kernels.SeamState), cell})
	}
}

// cell returns the kernel's cell for a region; does is false if the tile contributes nothing to the region.
func (w *deviceFuser) cell(m *deviceColumn, l *Cell) (c kernels.Cell, does bool) {
	r, to, kind := &m.Regions[l.Region], w.tile.To, w.Mosaic.DType
	ny, nx := m.Box.Height(), m.Box.Width()
	first := int64((r.Y0-m.Box.Y0)*nx+r.X0-m.Box.X0) * int64(kind.Size())
	c = kernels.Cell{
		Voxels: m.voxels.From(first, m.voxels.Bytes()-first), Pitch: nx, Stride: int64(ny) * int64(nx),
		Y: r.Y0 - to.Y0, X: r.X0 - to.X0, NY: r.Height(), NX: r.Width(),
	}
	if len(r.Who) == 1 {
		switch {
		case l.Empty:
			c.Do = kernels.CellStore
		case w.tile.Behind == [2]float32{}:
			c.Do = kernels.CellCopy
		default:
			c.Do = kernels.CellSample | kernels.CellStore
		}
		return c, true
	}
	inPlace := m.means.Bytes() == 0
	at := int64(m.first[l.Region])
	if inPlace {
		c.Mean, c.MeanPitch, c.MeanStride = c.Voxels, c.Pitch, c.Stride
	} else {
		size, pixels := int64(kernels.FuseType(kind).Size()), int64(r.Area())
		planes := int64(w.pass.Z1 - w.pass.Z0)
		c.Mean, c.MeanPitch, c.MeanStride = m.means.From(at*planes*size, pixels*planes*size), c.NX, pixels
	}
	if l.Before > 0 {
		c.Do |= kernels.CellBlend
	}
	if l.Last {
		c.Do |= kernels.CellStore
	}
	if !l.Empty {
		c.Do |= kernels.CellSample
		n := int64(4 * r.Area())
		c.Before, c.After = m.sums[l.Before%2].From(4*at, n), m.sums[1-l.Before%2].From(4*at, n)
		return c, true
	}
	return c, l.Last && !(inPlace && l.Before > 0)
}

// queue queues the recorded work of the tile after the work that other workers queued.
func (w *deviceFuser) queue() error {
	return w.pass.order.queue(w.dev.Stream, w.queued, func() error {
		w.fill = 0
		for _, m := range w.columns {
			w.beginColumn(m)
		}
		t := kernels.Tile{
			At: w.planes, Type: w.Mosaic.DType, Planes: w.pass.Z1 - w.pass.Z0, NY: w.tile.To.Height(), NX: w.tile.To.Width(), Behind: w.tile.Behind,
		}
		if err := w.queueSeams(t); err != nil || len(w.cells) == 0 {
			return err
		}
		rows, at := w.row(len(w.cells) * kernels.CellBytes)
		for i := range w.cells {
			kernels.PutCell(rows, i, &w.cells[i])
		}
		w.dev.Stream.Upload(at, rows)
		return kernels.Fuse(w.dev.Stream, t, at, len(w.cells), w.most, w.own, w.Choose)
	})
}

// beginColumn queues the initialisation of a column, unless another tile has done so: zeros for holes, and the
// seam sums of the preceding planes.
func (w *deviceFuser) beginColumn(m *deviceColumn) {
	if m.begun {
		return
	}
	m.begun = true
	if m.HasHoles() {
		w.dev.Stream.Zero(m.voxels)
	}
	if len(m.ColumnMemory.sums) > 0 {
		rows, _ := w.row(len(m.ColumnMemory.sums) * kernels.SeamState)
		m.putSums(rows)
		w.dev.Stream.Upload(m.states, rows)
	}
}
