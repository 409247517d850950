package zarr

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"strata/pkg/mem"
	"strata/pkg/meter"
	"strata/pkg/zarr/store"
)

// Read fills dst with the elements of a region, in C order and native byte order. dst must have exactly the
// region's size in bytes. Elements of chunks that are not stored get the fill value. After an error, the
// content of dst is undefined.
func (a *Array) Read(ctx context.Context, r Region, dst []byte) error {
	n, err := a.regionBytes(r)
	if err != nil {
		return err
	}
	if n != len(dst) {
		return fmt.Errorf("%s: region %v of %s has %d bytes, the buffer %d", a.Location(), r, a.meta.elem, n, len(dst))
	}
	return a.read(ctx, r, dst, nil)
}

// ReadStrided reads like [Array.Read] into a strided layout: neighbouring elements along dimension d lie
// strides[d] ≥ 0 bytes apart in dst. It leaves the bytes between elements unchanged.
func (a *Array) ReadStrided(ctx context.Context, r Region, dst []byte, strides []int) error {
	if err := a.checkStrided(r, len(dst), strides); err != nil {
		return err
	}
	return a.read(ctx, r, dst, strides)
}

// regionBytes checks a region and returns its size in bytes.
func (a *Array) regionBytes(r Region) (int, error) {
	if err := r.check(a.meta.shape); err != nil {
		return 0, fmt.Errorf("%s: %w", a.Location(), err)
	}
	n, ok := volume(r.Shape, a.meta.pipe.size)
	if !ok {
		return 0, fmt.Errorf("%s: region %v of %s has more bytes than memory can hold", a.Location(), r, a.meta.elem)
	}
	return n, nil
}

func (a *Array) checkStrided(r Region, have int, strides []int) error {
	n, err := a.regionBytes(r)
	if err != nil || n == 0 {
		return err
	}
	if len(strides) != len(r.Shape) {
		return fmt.Errorf("%s: %d strides for %d dimensions", a.Location(), len(strides), len(r.Shape))
	}
	end := a.meta.pipe.size
	for d, s := range strides {
		span, ok := mem.Mul(s, r.Shape[d]-1)
		if !ok || span > have-end {
			return fmt.Errorf("%s: region %v with strides %v does not fit into a buffer of %d bytes", a.Location(), r, strides, have)
		}
		end += span
	}
	if end > have {
		return fmt.Errorf("%s: region %v with strides %v does not fit into a buffer of %d bytes", a.Location(), r, strides, have)
	}
	return nil
}

// read reads a checked region; nil strides mean C order.
func (a *Array) read(ctx context.Context, r Region, dst []byte, strides []int) error {
	w := takeWorker()
	defer w.giveBack()
	if strides == nil {
		strides = cStrides(w.vector(len(r.Shape)), r.Shape, a.meta.pipe.size)
	}
	c := w.readCursor(r, a)
	if contiguous(strides, r.Shape, a.meta.pipe.size) {
		c.dst = dst
	}
	return a.run(ctx, w, c, func(w *worker, t *task) error {
		off := 0
		for d, s := range t.start {
			off += (s - r.Start[d]) * strides[d]
		}
		return a.readTask(ctx, w, t, dst[off:], strides)
	})
}

// readTask reads one unit.
func (a *Array) readTask(ctx context.Context, w *worker, t *task, dst []byte, strides []int) error {
	p := a.meta.pipe
	w.key = a.appendKey(w.key[:0], t.file)
	// from here on the box is relative to the chunk file
	start := w.vector(len(t.start))
	for d, s := range t.start {
		start[d] = s - t.file[d]*p.shape[d]
	}
	rd := reader{a: a, w: w, ctx: ctx, t: t}
	err := rd.file(p, start, t.shape, dst, strides)
	if err == nil || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	var fe *FormatError
	if errors.As(err, &fe) {
		if fe.Path != "" {
			return err
		}
		fe.Path, fe.Field = a.st.Location(string(w.key)), a.chunkName(t)
		return fe
	}
	return err
}

// chunkName names the chunk of a task for messages, or returns "" where the file name already does.
func (a *Array) chunkName(t *task) string {
	if a.meta.pipe.shard == nil {
		return ""
	}
	unit := a.Chunks()
	index := make([]int, len(unit))
	for d := range index {
		index[d] = t.start[d] / unit[d]
	}
	return fmt.Sprintf("chunk %v", index)
}

// file reads a box of the chunk file w.key.
func (rd reader) file(p *pipeline, start, shape []int, dst []byte, strides []int) error {
	a, w := rd.a, rd.w
	if p.addressable() {
		if !p.plain() || a.far == 0 {
			return rd.open(p, -1, start, shape, dst, strides)
		}
		err := rd.open(p, int64(p.nbytes), start, shape, dst, strides)
		if errors.Is(err, store.ErrSize) { // whoever looks at it says what is wrong
			a.objects.drop(string(w.key))
			err = rd.open(p, -1, start, shape, dst, strides)
		}
		return err
	}
	if a.far == 0 && p.perm == nil && rd.partly(p, start, shape) {
		if done, err := rd.part(p, start, shape, dst, strides); done {
			return err
		}
	}
	// more than this is not taken from a file, however large it is
	buf, err := w.buffer(int(p.eager()))
	if err != nil || p.nbytes > maxEager {
		// the chunk is huge, or claims to be: see how large the file is first
		buf = nil
	}
	t := time.Now()
	b, err := a.st.Get(rd.ctx, string(w.key), buf[:0], p.maxSize)
	a.opts.meter.Since(meter.Read, t)
	if errors.Is(err, fs.ErrNotExist) {
		return rd.missingFile(dst, strides, shape)
	}
	if errors.Is(err, store.ErrTooLarge) {
		return &FormatError{Path: a.st.Location(string(w.key)), Err: fmt.Errorf("too long for a chunk of %d bytes: %w", p.nbytes, store.ErrTooLarge)}
	}
	if err != nil {
		return err
	}
	a.opts.meter.AddRead(int64(len(b)))
	rd.w.turns.arrived()
	return rd.decode(p, inMemory(b), start, shape, dst, strides)
}

// open reads a box of the chunk file w.key, of which parts can be read. It opens the file first, unless the
// store is remote and the size is known (size ≥ 0).
func (rd reader) open(p *pipeline, size int64, start, shape []int, dst []byte, strides []int) error {
	f, err := rd.a.objects.open(rd.ctx, rd.a.st, rd.w.key, size)
	if err == nil {
		defer rd.a.objects.release(f)
		err = rd.decode(p, span{f: f, n: f.size}, start, shape, dst, strides)
		if size >= 0 && errors.Is(err, fs.ErrNotExist) {
			rd.a.objects.drop(f.key)
		}
	}
	if errors.Is(err, fs.ErrNotExist) {
		return rd.missingFile(dst, strides, shape)
	}
	return err
}

// missingFile handles a whole chunk file that is not stored: it records it and fills the box.
func (rd reader) missingFile(dst []byte, strides, shape []int) error {
	if m := rd.a.opts.missing; m != nil && rd.t != nil {
		if err := m.noteBox(rd.a, rd.t.start, rd.t.shape); err != nil {
			return err
		}
	}
	return rd.missing(dst, strides, shape)
}

// missingInner handles inner chunk at, in stored order, of a shard of p that is not stored: it records it and
// fills the box.
func (rd reader) missingInner(p *pipeline, at []int, dst []byte, strides, shape []int) error {
	if m := rd.a.opts.missing; m != nil && rd.t != nil {
		start, box := rd.t.start, rd.t.shape // of an inner chunk in an inner chunk
		if p == rd.a.meta.pipe {
			start, box = p.unpermuted(at), make([]int, len(at))
			start = slices.Clone(start)
			for d, n := range p.unpermuted(p.shard.inner.shape) {
				start[d], box[d] = rd.t.file[d]*p.shape[d]+start[d]*n, 1
			}
		}
		if err := m.noteBox(rd.a, start, box); err != nil {
			return err
		}
	}
	return rd.missing(dst, strides, shape)
}

// missing fills a box of a chunk that is not stored with the fill value.
func (rd reader) missing(dst []byte, strides, shape []int) error {
	if s := rd.w.planes; s != nil {
		return s.fill(rd.a.meta.fill)
	}
	fillBox(dst, strides, shape, rd.a.meta.fill)
	return nil
}

// maxEager is the chunk size up to which a buffer is set aside for a file
// before it is seen.
const maxEager = 1 << 30

// part reads a box of the chunk file w.key, of which it needs little. done is false if the file has to be looked at as a whole.
func (rd reader) part(p *pipeline, start, shape []int, dst []byte, strides []int) (done bool, err error) {
	key := string(rd.w.key)
	object, err := rd.a.st.Open(rd.ctx, key)
	if err != nil {
		return false, nil
	}
	defer object.Close()
	n := object.Size()
	if n > p.maxSize || n > maxEager {
		return false, nil
	}
	return true, rd.decode(p, span{f: &file{object: object, key: key, size: n}, n: n}, start, shape, dst, strides)
}
