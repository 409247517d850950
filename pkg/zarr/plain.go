package zarr

import (
	"fmt"

	"strata/pkg/zarr/box"
	"strata/pkg/zarr/meta"
	"strata/pkg/zarr/store"
)

const (
	// slabBytes is the number of bytes read at once from a file of which only parts are needed.
	slabBytes = 256 << 10
	// gapBytes is the number of unneeded bytes that are cheaper to read or copy than to skip with another system call.
	gapBytes = 3 << 10

	// rowBytes is the minimum length of rows that are read straight to their destination instead of being copied there.
	rowBytes = 512

	// farSlab and farGap are the same where another read is another request.
	farSlab = 8 << 20
	farGap  = 64 << 10
)

// slab returns how many bytes to read at once and how many unneeded ones to read along, by distance of the
// store.
func (rd reader) slab() (slab, gap int) {
	if rd.a.far > 0 {
		return farSlab, farGap
	}
	return slabBytes, gapBytes
}

// plain reads a box of unencoded elements, in stored order. It reads runs that are contiguous in file and
// memory in place, and short runs together with the bytes between them.
func (rd reader) plain(p *meta.Pipeline, s span, start, shape []int, dst []byte, strides []int) error {
	if s.n != int64(p.Bytes) {
		return &FormatError{Err: fmt.Errorf("%d bytes stored, a chunk of %v %s has %d", s.n, p.Shape, p.DType, p.Bytes)}
	}
	first, _ := p.Cover(start, shape)
	run, d := p.Size, len(shape)-1 // d becomes the last dimension outside a run
	for ; d >= 0; d-- {
		if shape[d] == 1 {
			continue
		}
		if strides[d] != run || p.Strides[d] != run {
			break
		}
		run *= shape[d]
	}
	runs := plainRuns{reader: rd, p: p, s: s, bytes: run}
	if d >= 0 && run >= rowBytes && s.f != nil && p.Strides[d] == run {
		runs.rows, _ = s.f.object.(store.RowReader)
	}
	if _, gap := rd.slab(); runs.rows == nil && d >= 0 && (run+p.Strides[d] <= gap || run == p.Size) {
		return rd.plainSlabs(p, s, first, p.Strides, shape, dst, strides)
	}
	return runs.read(int64(first), p.Strides[:d+1], shape[:d+1], dst, strides[:d+1])
}

// plainRuns reads runs of elements that are contiguous in the file and in memory, each in place.
type plainRuns struct {
	reader
	p     *meta.Pipeline
	s     span
	bytes int             // of a run
	rows  store.RowReader // reads the runs along the last dimension together, which are adjacent in the file; nil: one by one
}

// read reads the runs of a box of the given shape, which begins in the file at off with the given pitch.
func (r plainRuns) read(off int64, pitch, shape []int, dst []byte, strides []int) error {
	switch {
	case len(shape) == 0:
		if err := r.readAt(r.s, dst[:r.bytes], off); err != nil {
			return err
		}
		r.swap(dst)
		return nil
	case len(shape) == 1 && r.rows != nil:
		return r.readRows(off, shape[0], dst, strides[0])
	}
	for i := range shape[0] {
		if err := r.read(off+int64(i)*int64(pitch[0]), pitch[1:], shape[1:], dst[i*strides[0]:], strides[1:]); err != nil {
			return err
		}
	}
	return nil
}

// readRows reads n runs that are adjacent in the file but separate in memory.
func (r plainRuns) readRows(off int64, n int, dst []byte, stride int) error {
	got, err := r.rows.ReadRows(r.ctx, dst, store.Rows{Count: n, Length: r.bytes, Pitch: stride}, r.s.off+off)
	r.a.opts.meter.AddRead(int64(got))
	if err := r.checkRead(r.s, off, n*r.bytes, got, err); err != nil {
		return err
	}
	for i := range n {
		r.swap(dst[i*stride:])
	}
	return nil
}

// swap brings the bytes of a run's elements into the host's order.
func (r plainRuns) swap(dst []byte) {
	if r.p.BigEndian {
		box.SwapBytes(dst[:r.bytes], r.p.DType.SwapSize())
	}
}

// plainSlabs reads the bytes that cover a box, in pieces through scratch memory.
func (rd reader) plainSlabs(p *meta.Pipeline, s span, off int, pitch, shape []int, dst []byte, strides []int) error {
	cover := p.Size
	for d, n := range shape {
		cover += (n - 1) * pitch[d]
	}
	slab, _ := rd.slab()
	if cover <= slab || len(shape) == 0 {
		m := rd.w.mark()
		defer rd.w.release(m)
		b, err := rd.w.buffer(cover)
		if err != nil {
			return err
		}
		if err := rd.readAt(s, b, int64(off)); err != nil {
			return err
		}
		if p.BigEndian {
			box.SwapBytes(b, p.DType.SwapSize())
		}
		box.Copy(dst, strides, b, pitch, shape, p.Size)
		return nil
	}
	// as many along the first dimension at once as a slab holds
	row := cover - (shape[0]-1)*pitch[0]
	step := 1
	if row <= slab && pitch[0] <= slab {
		step = max((slab-row)/max(pitch[0], 1)+1, 1)
	}
	for i := 0; i < shape[0]; i += step {
		var err error
		if n := min(step, shape[0]-i); n == 1 {
			err = rd.plainSlabs(p, s, off+i*pitch[0], pitch[1:], shape[1:], dst[i*strides[0]:], strides[1:])
		} else {
			m := rd.w.mark()
			part := rd.w.vector(len(shape))
			copy(part, shape)
			part[0] = n
			err = rd.plainSlabs(p, s, off+i*pitch[0], pitch, part, dst[i*strides[0]:], strides)
			rd.w.release(m)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
