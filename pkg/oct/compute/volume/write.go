package volume

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"strata/pkg/dtype"
	"strata/pkg/gpu"
	"strata/pkg/mem"
	"strata/pkg/ngff"
	"strata/pkg/oct/compute/transfer"
	"strata/pkg/work"
)

// planeWriter downloads planes and stores them, on its own stream, while the device works on others. If level 0 of
// the pyramid is coarser than the canvas, the device computes it and only its planes are downloaded; the host
// computes the levels below.
type planeWriter struct {
	*device
	image  *ngff.PlaneWriter
	level  *level // nil: the canvas is stored
	stored [3]int // shape of what is stored

	stream *gpu.Stream
	planes [][]float32 // page-locked: planes written at a time
	zero   []byte      // a plane of zeros
	made   gpu.Span    // planes of the level written at a time
	came   int         // planes of the canvas taken so far
	first  int         // first plane of the level that is computed and not yet written
	have   int         // number of such planes

	running sync.WaitGroup
	batches chan []Plane
	ended   chan struct{} // closed when no more are taken
	err     error         // set before ended is closed
}

// newPlaneWriter creates the image, or continues the image begun, which the host has started, unless begun is nil. The
// host still owns begun until the writer starts.
func newPlaneWriter(d *device, c *Canvas, begun *ngff.PlaneWriter) (w *planeWriter, err error) {
	w = &planeWriter{device: d, stored: [3]int(c.Image.Shape), image: begun}
	create, makes := ngff.CreatePlanes, len(c.Levels) > 0 && !slices.Equal(c.Levels[0], c.Image.Shape)
	if begun != nil && makes {
		w.image, makes = begun.Made()
	}
	if makes {
		w.stored, create = [3]int(c.Levels[0]), ngff.CreateMadePlanes
	}
	if begun == nil {
		if w.image, err = create(d.ctx, c.Out, "", c.Image, c.Levels); err != nil {
			return nil, err
		}
	}
	if w.level, err = newLevel(d.worker.Stream, [3]int(c.Image.Shape), w.stored); err != nil {
		if begun == nil {
			w.image.Abort()
		}
		return nil, err
	}
	return w, nil
}

// plane returns the bytes of a stored plane.
func (w *planeWriter) plane() int64 { return 4 * int64(w.stored[1]) * int64(w.stored[2]) }

// beginHost allocates host memory. Other parts of the program use other bytes of the budget and locked bytes of the
// page-locked memory.
func (w *planeWriter) beginHost(other, locked int64) error {
	plane, batch, depth := w.plane(), w.image.Batch(), w.stored[0]
	available := transfer.PinnedFor(w.gpu)
	n := min(batch, depth)
	for n < depth && n < 8 && locked+int64(n+batch)*plane <= available/2 {
		n += batch
	}
	n = min(n, depth)
	what := fmt.Sprintf("writing %d planes of %d × %d pixels", n, w.stored[1], w.stored[2])
	if need := other + w.image.Bytes() + plane; need > w.res.Mem { // and a plane of zeros
		return transfer.NoHostMemory(w.res, need, what)
	}
	if need := locked + mem.Pooled(int64(n)*plane); need > available {
		return transfer.NoPinnedMemory(w.gpu, need, what)
	}
	b, err := w.worker.Pinned(n * int(plane))
	if err != nil {
		return err
	}
	for len(b) > 0 {
		w.planes = append(w.planes, dtype.Slice[float32](b[:plane]))
		b = b[plane:]
	}
	return nil
}

// madeBytes returns the device memory for the planes of a level that are written at a time.
func (w *planeWriter) madeBytes() int64 {
	if w.level == nil {
		return 0
	}
	return int64(len(w.planes)) * w.plane()
}

// begin takes ownership of device memory.
func (w *planeWriter) begin(rows, sums, made gpu.Span) {
	if w.level != nil {
		w.level.rows, w.level.acc, w.made = rows, sums, made
	}
}

// start starts the goroutine that stores planes. An error in it cancels the memory's context.
func (w *planeWriter) start() {
	w.batches, w.ended = make(chan []Plane, w.canvas.planes()+1), make(chan struct{})
	work.Go(&w.running, w.run, func(err error) {
		if w.err = err; err != nil {
			w.cancel()
		}
		close(w.ended)
	})
}

// run stores planes until batches is closed.
func (w *planeWriter) run() (err error) {
	ctx := w.ctx
	if w.stream, err = w.gpu.Stream(); err != nil {
		return err
	}
	defer func() {
		err = errors.Join(err, w.stream.Close())
		mem.Free(w.zero)
	}()
	take := w.storeCanvas
	if w.level != nil {
		take = w.storeLevel
	}
	for {
		select {
		case planes, more := <-w.batches:
			if !more {
				return nil
			}
			if err := take(ctx, planes); err != nil {
				return err
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// failed returns the error that ended the writing.
func (w *planeWriter) failed() error {
	if w.ended == nil {
		return nil
	}
	select {
	case <-w.ended:
		return w.err
	default:
		return nil
	}
}

// abandon waits for the goroutine, whose context must have ended, and aborts the image, unless the host keeps it.
func (w *planeWriter) abandon() {
	w.running.Wait()
	if w.image != nil {
		w.image.Abort()
	}
}

// storeCanvas stores planes of the canvas, as many at a time as fit into host memory.
func (w *planeWriter) storeCanvas(ctx context.Context, from []Plane) (err error) {
	for len(from) > 0 {
		n := min(len(w.planes), len(from))
		planes := make([][]float32, n)
		for i, p := range from[:n] {
			if !p.There() {
				if w.zero == nil {
					if w.zero, err = mem.Alloc(int(w.plane())); err != nil {
						return err
					}
				}
				planes[i] = dtype.Slice[float32](w.zero)
				continue
			}
			planes[i] = w.planes[i]
			w.stream.Download(dtype.Bytes(planes[i]), p.device)
		}
		if err := w.stream.Wait(); err != nil {
			return err
		}
		w.pool.giveBack(from[:n])
		from = from[n:]
		if err := w.image.Write(ctx, planes); err != nil {
			return err
		}
	}
	return nil
}

// mostWaiting is the maximum number of planes of the canvas that a level takes before they are given back.
const mostWaiting = 8

// storeLevel computes planes of the level from planes of the canvas and stores the complete ones, as many at a
// time as fit into host memory.
func (w *planeWriter) storeLevel(ctx context.Context, from []Plane) error {
	n := w.plane()
	place := func(int) (gpu.Span, error) {
		if w.have == len(w.planes) {
			if err := w.storeMade(ctx); err != nil {
				return gpu.Span{}, err
			}
		}
		w.have++
		return w.made.From(n*int64(w.have-1), n), nil
	}
	for some := range slices.Chunk(from, mostWaiting) {
		for _, p := range some {
			var plane gpu.Span
			if p.There() {
				plane = p.device.From(0, 4*int64(w.canvas.area()))
			}
			if err := w.level.add(w.stream, w.came, plane, place); err != nil {
				return err
			}
			w.came++
		}
		if err := w.stream.Wait(); err != nil {
			return err
		}
		w.pool.giveBack(some)
	}
	if w.have > 0 && w.first+w.have == w.stored[0] {
		return w.storeMade(ctx)
	}
	return nil
}

// storeMade stores the complete planes of the level.
func (w *planeWriter) storeMade(ctx context.Context) error {
	n := w.plane()
	for i := range w.have {
		w.stream.Download(dtype.Bytes(w.planes[i]), w.made.From(n*int64(i), n))
	}
	if err := w.stream.Wait(); err != nil {
		return err
	}
	planes := w.planes[:w.have]
	w.first, w.have = w.first+w.have, 0
	return w.image.Write(ctx, planes)
}

func (d *device) Batch() int {
	if d.writer == nil || d.writer.level != nil {
		return 1
	}
	return d.writer.image.Batch()
}

func (d *device) Write(planes []Plane) {
	d.try(func() error {
		if err := d.wait(); err != nil {
			return err
		}
		for _, p := range planes {
			if p.There() {
				d.pool.writing++
			}
		}
		d.writer.batches <- planes // there is room for all planes of the volume
		return nil
	})
}

func (d *device) Finish() {
	d.try(func() error {
		close(d.writer.batches)
		d.writer.running.Wait()
		if err := d.writer.err; err != nil {
			return err
		}
		return d.writer.image.Close(d.ctx)
	})
}

// devicePool holds the planes of a device. It hands out neighbouring planes together if they are free.
type devicePool struct {
	planes  []Plane
	taken   []bool
	next    int
	free    int
	writing int // planes being written
	back    chan Plane
}

func newDevicePool(planes []Plane) *devicePool {
	return &devicePool{planes: planes, taken: make([]bool, len(planes)), free: len(planes), back: make(chan Plane, len(planes))}
}

// giveBack returns written planes to the pool.
func (p *devicePool) giveBack(planes []Plane) {
	for _, v := range planes {
		if v.There() {
			p.back <- v // there is room for all
		}
	}
}

// give marks a plane as free.
func (p *devicePool) give(v Plane) {
	first := p.planes[0].device
	i := int(int64(v.device.Address()-first.Address()) / (first.Bytes() / int64(len(p.planes))))
	p.taken[i] = false
	p.free++
}

func (d *device) Take(n int) (out []Plane) {
	d.try(func() error {
		p := d.pool
		if n > p.free {
			return errors.New("internal error: no room for a plane")
		}
		for len(out) < n {
			if i := p.next; !p.taken[i] {
				p.taken[i] = true
				out = append(out, p.planes[i])
			}
			p.next = (p.next + 1) % len(p.planes)
		}
		p.free -= n
		return nil
	})
	return out
}

func (d *device) Give(planes []Plane) {
	for _, v := range planes {
		d.pool.give(v)
	}
}

func (d *device) Room(wanted int) (n int) {
	d.try(func() error {
		p := d.pool
		for p.free < min(wanted, p.free+p.writing) || len(p.back) > 0 {
			select {
			case v := <-p.back:
				p.writing--
				p.give(v)
			case <-d.ctx.Done():
				return d.ctx.Err()
			}
		}
		n = p.free
		return nil
	})
	return n
}
