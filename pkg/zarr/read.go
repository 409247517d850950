package zarr

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"strata/pkg/dtype"
	"strata/pkg/mem"
	"strata/pkg/meter"
	"strata/pkg/zarr/box"
	"strata/pkg/zarr/meta"
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
		return fmt.Errorf("%s: region %v of %s has %d bytes, the buffer %d", a.Location(), r, a.meta.DType, n, len(dst))
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
	if err := r.Check(a.meta.Shape); err != nil {
		return 0, fmt.Errorf("%s: %w", a.Location(), err)
	}
	n, ok := box.Volume(r.Shape, a.meta.Pipeline.Size)
	if !ok {
		return 0, fmt.Errorf("%s: region %v of %s has more bytes than memory can hold", a.Location(), r, a.meta.DType)
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
	end := a.meta.Pipeline.Size
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
		strides = box.Strides(w.vector(len(r.Shape)), r.Shape, a.meta.Pipeline.Size)
	}
	c := w.readCursor(r, a)
	if box.Contiguous(strides, r.Shape, a.meta.Pipeline.Size) {
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
	p := a.meta.Pipeline
	w.key = a.appendKey(w.key[:0], t.file)
	// from here on the box is relative to the chunk file
	start := w.vector(len(t.start))
	for d, s := range t.start {
		start[d] = s - t.file[d]*p.Shape[d]
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
	if a.meta.Pipeline.Shard == nil {
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
func (rd reader) file(p *meta.Pipeline, start, shape []int, dst []byte, strides []int) error {
	a, w := rd.a, rd.w
	if p.Addressable() {
		if !p.Plain() || a.far == 0 {
			return rd.open(p, -1, start, shape, dst, strides)
		}
		err := rd.open(p, int64(p.Bytes), start, shape, dst, strides)
		if errors.Is(err, store.ErrSize) { // whoever looks at it says what is wrong
			a.objects.drop(string(w.key))
			err = rd.open(p, -1, start, shape, dst, strides)
		}
		return err
	}
	if a.far == 0 && p.Perm == nil && rd.partly(p, start, shape) {
		if done, err := rd.part(p, start, shape, dst, strides); done {
			return err
		}
	}
	// more than this is not taken from a file, however large it is
	buf, err := w.buffer(int(p.Eager()))
	if err != nil || p.Bytes > maxEager {
		// the chunk is huge, or claims to be: see how large the file is first
		buf = nil
	}
	t := time.Now()
	b, err := a.st.Get(rd.ctx, string(w.key), buf[:0], p.MaxSize)
	a.opts.meter.Since(meter.Read, t)
	if errors.Is(err, fs.ErrNotExist) {
		return rd.missingFile(dst, strides, shape)
	}
	if errors.Is(err, store.ErrTooLarge) {
		return &FormatError{Path: a.st.Location(string(w.key)), Err: fmt.Errorf("too long for a chunk of %d bytes: %w", p.Bytes, store.ErrTooLarge)}
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
func (rd reader) open(p *meta.Pipeline, size int64, start, shape []int, dst []byte, strides []int) error {
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

// maxEager is the chunk size up to which a buffer is set aside for a file
// before it is seen.
const maxEager = 1 << 30

// part reads a box of the chunk file w.key, of which it needs little. done is false if the file has to be looked at as
// a whole.
func (rd reader) part(p *meta.Pipeline, start, shape []int, dst []byte, strides []int) (done bool, err error) {
	key := string(rd.w.key)
	object, err := rd.a.st.Open(rd.ctx, key)
	if err != nil {
		return false, nil
	}
	defer object.Close()
	n := object.Size()
	if n > p.MaxSize || n > maxEager {
		return false, nil
	}
	return true, rd.decode(p, span{f: &file{object: object, key: key, size: n}, n: n}, start, shape, dst, strides)
}

// ReadSlice reads a region into a slice of numbers, like [Array.Read]. T must be the array's element type;
// nothing is converted.
func ReadSlice[T dtype.Element](ctx context.Context, a *Array, r Region, dst []T) error {
	if err := checkElement[T](a); err != nil {
		return err
	}
	return a.Read(ctx, r, dtype.Bytes(dst))
}
