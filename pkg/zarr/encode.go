package zarr

import (
	"context"
	"fmt"
	"strata/pkg/meter"
	"strata/pkg/zarr/store"
	"time"
)

// ChunkRegion returns the part of the array that the chunk with the given index in the grid of [Array.Chunks]
// holds. Chunks at the far edges are cut there.
func (a *Array) ChunkRegion(index []int) (Region, error) {
	return a.gridRegion("chunk", index, a.Chunks())
}

// ShardRegion returns the part of the array that a chunk file holds: a shard, or a chunk if the array is not
// sharded.
func (a *Array) ShardRegion(index []int) (Region, error) {
	return a.gridRegion("shard", index, a.meta.chunks)
}

func (a *Array) gridRegion(what string, index, unit []int) (Region, error) {
	if len(index) != len(unit) {
		return Region{}, fmt.Errorf("%s: %s %v for %d dimensions", a.Location(), what, index, len(unit))
	}
	r := Region{Start: make([]int, len(unit)), Shape: make([]int, len(unit))}
	for d, i := range index {
		if n := ceilDiv(a.meta.shape[d], unit[d]); i < 0 || i >= n {
			return Region{}, fmt.Errorf("%s: %s %v lies outside the grid: dimension %d has %d", a.Location(), what, index, d, n)
		}
		r.Start[d] = i * unit[d]
		r.Shape[d] = min(unit[d], a.meta.shape[d]-r.Start[d])
	}
	return r, nil
}

// inFileUnlessNamed adds a file to errors about its content.
func inFileUnlessNamed(st store.Store, key string, err error) error {
	if fe, ok := err.(*FormatError); ok {
		return inFile(st, key, fe)
	}
	return err
}

// covered reports whether a box of the array holds all elements of a chunk of the given shape at origin, up
// to the array's edge, and stores their number along each dimension in valid.
func (a *Array) covered(valid, origin, chunk, start, shape []int) bool {
	all := true
	for d := range chunk {
		valid[d] = min(chunk[d], a.meta.shape[d]-origin[d])
		all = all && start[d] == origin[d] && shape[d] == valid[d]
	}
	return all
}

// merge returns a whole chunk in C order: the stored one overlaid with the task's box. It reads the stored
// chunk from old, or from the file w.key if old is nil.
func (a *Array) merge(ctx context.Context, w *worker, p *pipeline, old *span, origin []int, t *task, src []byte, strides []int) ([]byte, []int, error) {
	rank := len(origin)
	b, err := w.buffer(p.nbytes)
	if err != nil {
		return nil, nil, err
	}
	bs, zero := cStrides(w.vector(rank), p.shape, p.size), w.vector(rank)
	clear(zero)
	rd := reader{a: a, w: w, ctx: ctx}
	switch {
	case old == nil:
		err = rd.file(p, zero, p.shape, b, bs)
	case old.n < 0:
		fillRun(b, a.meta.fill)
	default:
		err = rd.decode(p, *old, zero, p.shape, b, bs)
	}
	if err != nil {
		return nil, nil, err
	}
	off := 0
	for d := range rank {
		off += (t.start[d] - origin[d]) * bs[d]
	}
	copyBox(b[off:], bs, src, strides, t.shape, p.size)
	return b, bs, nil
}

// permute returns a box's lengths and strides in stored order.
func (w *worker) permute(p *pipeline, valid, strides []int) ([]int, []int) {
	if p.perm == nil {
		return valid, strides
	}
	pv, ps := w.vector(len(valid)), w.vector(len(valid))
	for i, d := range p.perm {
		pv[i], ps[i] = valid[d], strides[d]
	}
	return pv, ps
}

// gather copies elements to the order and byte order of the file. Elements of the chunk beyond valid get the
// fill value.
func (a *Array) gather(b []byte, p *pipeline, src []byte, strides, valid, stored, pitch []int) {
	for d, n := range stored {
		if valid[d] != n {
			fillRun(b, a.meta.fill)
			break
		}
	}
	copyBox(b, pitch, src, strides, valid, p.size)
}

// encode returns the stored form of a chunk, of which valid elements along each dimension are given; the rest
// lies outside the array. isFillOnly reports that the chunk holds only the fill value and is to be left out.
// The result may alias src.
func (a *Array) encode(w *worker, p *pipeline, src []byte, strides, valid []int) (enc []byte, isFillOnly bool, err error) {
	t := time.Now()
	defer func() { a.opts.meter.Since(meter.Encode, t) }()
	return a.encodeChunk(w, p, src, strides, valid)
}

func (a *Array) encodeChunk(w *worker, p *pipeline, src []byte, strides, valid []int) (enc []byte, isFillOnly bool, err error) {
	var raw []byte
	switch {
	case p.shard != nil:
		v, s := w.permute(p, valid, strides)
		if raw, isFillOnly, err = a.encodeShard(w, p, src, s, v); err != nil || isFillOnly {
			return nil, isFillOnly, err
		}
	case p.asStored(strides, valid):
		raw = src[:p.nbytes]
		if a.opts.omitFill && isFill(raw, a.meta.fill) {
			return nil, true, nil
		}
	default:
		if raw, err = w.buffer(p.nbytes); err != nil {
			return nil, false, err
		}
		v, s := w.permute(p, valid, strides)
		a.gather(raw, p, src, s, v, p.stored, p.strides)
		if a.opts.omitFill && isFill(raw, a.meta.fill) {
			return nil, true, nil
		}
		if p.big {
			swapBytes(raw, p.elem.SwapSize())
		}
	}
	if len(p.chain) == 0 {
		return raw, false, nil
	}
	enc, err = w.encodeChain(p.chain, raw)
	return enc, false, err
}
