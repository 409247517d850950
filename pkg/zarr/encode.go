package zarr

import (
	"fmt"
	"time"

	"strata/pkg/meter"
	"strata/pkg/zarr/box"
	"strata/pkg/zarr/meta"
	"strata/pkg/zarr/store"
)

// ChunkRegion returns the part of the array that the chunk with the given index in the grid of [Array.Chunks]
// holds. Chunks at the far edges are cut there.
func (a *Array) ChunkRegion(index []int) (Region, error) {
	return a.gridRegion("chunk", index, a.Chunks())
}

// ShardRegion returns the part of the array that a chunk file holds: a shard, or a chunk if the array is not
// sharded.
func (a *Array) ShardRegion(index []int) (Region, error) {
	return a.gridRegion("shard", index, a.meta.Chunks)
}

func (a *Array) gridRegion(what string, index, unit []int) (Region, error) {
	if len(index) != len(unit) {
		return Region{}, fmt.Errorf("%s: %s %v for %d dimensions", a.Location(), what, index, len(unit))
	}
	r := Region{Start: make([]int, len(unit)), Shape: make([]int, len(unit))}
	for d, i := range index {
		if n := box.CeilDiv(a.meta.Shape[d], unit[d]); i < 0 || i >= n {
			return Region{}, fmt.Errorf("%s: %s %v lies outside the grid: dimension %d has %d", a.Location(), what, index, d, n)
		}
		r.Start[d] = i * unit[d]
		r.Shape[d] = min(unit[d], a.meta.Shape[d]-r.Start[d])
	}
	return r, nil
}

// inFileUnlessNamed adds a file to errors about its content.
func inFileUnlessNamed(st store.Store, key string, err error) error {
	if fe, ok := err.(*FormatError); ok {
		return meta.InFile(st, key, fe)
	}
	return err
}

// covered reports whether a box of the array holds all elements of a chunk of the given shape at origin, up
// to the array's edge, and stores their number along each dimension in valid.
func (a *Array) covered(valid, origin, chunk, start, shape []int) bool {
	all := true
	for d := range chunk {
		valid[d] = min(chunk[d], a.meta.Shape[d]-origin[d])
		all = all && start[d] == origin[d] && shape[d] == valid[d]
	}
	return all
}

// permute returns a box's lengths and strides in stored order.
func (w *worker) permute(p *meta.Pipeline, valid, strides []int) ([]int, []int) {
	if p.Perm == nil {
		return valid, strides
	}
	pv, ps := w.vector(len(valid)), w.vector(len(valid))
	for i, d := range p.Perm {
		pv[i], ps[i] = valid[d], strides[d]
	}
	return pv, ps
}

// gather copies elements to the order and byte order of the file. Elements of the chunk beyond valid get the
// fill value.
func (a *Array) gather(b []byte, p *meta.Pipeline, src []byte, strides, valid, stored, pitch []int) {
	for d, n := range stored {
		if valid[d] != n {
			box.FillRun(b, a.meta.Fill)
			break
		}
	}
	box.Copy(b, pitch, src, strides, valid, p.Size)
}

// encode returns the stored form of a chunk, of which valid elements along each dimension are given; the rest
// lies outside the array. isFillOnly reports that the chunk holds only the fill value and is to be left out.
// The result may alias src.
func (a *Array) encode(w *worker, p *meta.Pipeline, src []byte, strides, valid []int) (enc []byte, isFillOnly bool, err error) {
	t := time.Now()
	defer func() { a.opts.meter.Since(meter.Encode, t) }()
	return a.encodeChunk(w, p, src, strides, valid)
}

func (a *Array) encodeChunk(w *worker, p *meta.Pipeline, src []byte, strides, valid []int) (enc []byte, isFillOnly bool, err error) {
	var raw []byte
	switch {
	case p.Shard != nil:
		v, s := w.permute(p, valid, strides)
		if raw, isFillOnly, err = a.encodeShard(w, p, src, s, v); err != nil || isFillOnly {
			return nil, isFillOnly, err
		}
	case p.AsStored(strides, valid):
		raw = src[:p.Bytes]
		if a.opts.omitFill && box.IsFill(raw, a.meta.Fill) {
			return nil, true, nil
		}
	default:
		if raw, err = w.buffer(p.Bytes); err != nil {
			return nil, false, err
		}
		v, s := w.permute(p, valid, strides)
		a.gather(raw, p, src, s, v, p.Stored, p.Strides)
		if a.opts.omitFill && box.IsFill(raw, a.meta.Fill) {
			return nil, true, nil
		}
		if p.BigEndian {
			box.SwapBytes(raw, p.DType.SwapSize())
		}
	}
	if len(p.Chain) == 0 {
		return raw, false, nil
	}
	enc, err = w.encodeChain(p.Chain, raw)
	return enc, false, err
}

// encodeShard encodes a shard in memory, for shards that lie in another shard, that other codecs process, or
// that are transposed. Lengths and strides are in stored order.
func (a *Array) encodeShard(w *worker, p *meta.Pipeline, src []byte, strides, valid []int) (enc []byte, isFillOnly bool, err error) {
	sh, rank := p.Shard, len(valid)
	entries := make([]meta.IndexEntry, sh.Count)
	at, part := w.vector(rank), w.vector(rank)
	clear(at)
	var out []byte
	if !sh.IndexAtEnd {
		out = make([]byte, sh.IndexSize)
	}
	isFillOnly = true
	for i := range entries {
		entries[i] = meta.NotStored
		off, inside := 0, true
		for d, n := range sh.Inner.Shape {
			part[d] = min(n, valid[d]-at[d]*n)
			inside = inside && part[d] > 0
			off += at[d] * n * strides[d]
		}
		if inside {
			m := w.mark()
			b, fillOnly, err := a.encodeChunk(w, sh.Inner, src[off:], strides, part)
			if err != nil {
				return nil, false, err
			}
			if !fillOnly {
				isFillOnly = false
				entries[i] = meta.IndexEntry{Offset: uint64(len(out)), Length: uint64(len(b))}
				out = append(out, b...)
			}
			w.release(m)
		}
		for d := rank - 1; d >= 0; d-- {
			if at[d]++; at[d] < sh.Grid[d] {
				break
			}
			at[d] = 0
		}
	}
	if isFillOnly && a.opts.omitFill {
		return nil, true, nil
	}
	index, err := sh.EncodeIndex(&w.codec, entries)
	if err != nil {
		return nil, false, fmt.Errorf("shard index: %w", err)
	}
	if sh.IndexAtEnd {
		return append(out, index...), false, nil
	}
	copy(out, index)
	return out, false, nil
}
