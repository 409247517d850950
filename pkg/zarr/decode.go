package zarr

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"strata/pkg/meter"
	"strata/pkg/zarr/box"
	"strata/pkg/zarr/codec"
	"strata/pkg/zarr/meta"
	"strata/pkg/zarr/store"
)

// decode reads a box of the chunk that s stores. Box and strides are in the order of p.shape.
func (rd reader) decode(p *meta.Pipeline, s span, start, shape []int, dst []byte, strides []int) error {
	w := rd.w
	if p.Perm != nil {
		v := w.vector(3 * len(p.Perm))
		n := len(p.Perm)
		ps, pn, pt := v[:n], v[n:2*n], v[2*n:]
		for i, d := range p.Perm {
			ps[i], pn[i], pt[i] = start[d], shape[d], strides[d]
		}
		start, shape, strides = ps, pn, pt
	}
	switch {
	case p.Plain():
		t := time.Now()
		err := rd.plain(p, s, start, shape, dst, strides)
		rd.w.turns.arrived()
		rd.a.opts.meter.Since(meter.Read, t)
		return err
	case p.Addressable():
		return rd.decodeShard(p, s, start, shape, dst, strides)
	case p.Shard != nil:
		return rd.decodeCodedShard(p, s, start, shape, dst, strides)
	}
	return rd.decodeChunk(p, s, start, shape, dst, strides)
}

// decodeChunk reads a box of a chunk of encoded elements.
func (rd reader) decodeChunk(p *meta.Pipeline, s span, start, shape []int, dst []byte, strides []int) error {
	if err := p.Plausible(s.n); err != nil {
		return &FormatError{Err: err}
	}
	if s.n > p.MaxSize {
		return &FormatError{Err: fmt.Errorf("%d bytes are too many for a chunk of %d bytes", s.n, p.Bytes)}
	}
	enc, err := rd.encoded(p, s, start, shape)
	if err != nil {
		return err
	}
	name := rd.w.key
	rd, done := rd.decoder()
	defer done()
	w := rd.w
	w.codec.Bind(rd.ctx)
	t := time.Now()
	defer func() { rd.a.opts.meter.Since(meter.Decode, t) }()

	chain, enc, err := p.Chain.Verify(enc) // all of it, however little is decoded
	if err != nil {
		return asFormatError(err)
	}
	if s := w.planes; s != nil {
		s.begin(w, p, start, shape, strides)
		pd, _ := chain.Partial() // ReadPlanes has asked
		err := pd.DecodeBlocks(&w.codec, enc, p.Bytes, s.emit)
		t = t.Add(s.busy)
		if err != nil && !errors.Is(err, errTaken) {
			return asFormatError(fmt.Errorf("%s: %w", pd.Name(), err))
		}
		return err
	}
	return rd.decodeBox(p, chain, name, enc, start, shape, dst, strides)
}

// decodeBox decodes a box of the chunk that key names from its stored form, which the codecs of chain made: in
// place where the box is the chunk or its front, else as much of the chunk as it needs, which it copies.
func (rd reader) decodeBox(p *meta.Pipeline, chain codec.Chain, key, enc []byte, start, shape []int, dst []byte, strides []int) error {
	first, end := p.Cover(start, shape)
	direct := 0 // bytes of the chunk to decode to dst
	if box.Contiguous(strides, shape, p.Size) {
		switch {
		case slices.Equal(shape, p.Stored):
			direct = p.Bytes
		case rd.w.front && len(dst) >= p.Bytes && p.Front(start, shape):
			direct = end
		}
	}
	if direct > 0 {
		err := rd.decodeAll(chain, key, dst[:p.Bytes], enc, direct)
		if err == nil && p.BigEndian {
			box.SwapBytes(dst[:direct], p.DType.SwapSize())
		}
		return err
	}
	if len(chain) == 0 && len(enc) == p.Bytes && !p.BigEndian {
		box.Copy(dst, strides, enc[first:end], p.Strides, shape, p.Size)
		return nil
	}
	if pd, ok := chain.Partial(); ok {
		if done, err := rd.decodePart(p, pd, enc, start, shape, dst, strides); done || err != nil {
			return err
		}
	}
	b, err := rd.w.buffer(p.Bytes)
	if err != nil {
		return err
	}
	if err := rd.decodeAll(chain, key, b, enc, end); err != nil {
		return err
	}
	b = b[first:end]
	if p.BigEndian {
		box.SwapBytes(b, p.DType.SwapSize())
	}
	box.Copy(dst, strides, b, p.Strides, shape, p.Size)
	return nil
}

// decodePart decodes a box without the rest of its chunk, if that is less work or needs less memory.
func (rd reader) decodePart(p *meta.Pipeline, pd codec.PartialDecoder, enc []byte, start, shape []int, dst []byte, strides []int) (done bool, err error) {
	w := rd.w
	first, end := p.Cover(start, shape)
	if n := end - first; n <= p.Bytes/2 {
		b, err := w.buffer(n)
		if err != nil {
			return false, err
		}
		if err := pd.DecodeRange(&w.codec, b, enc, first, p.Bytes); err != nil {
			return false, asFormatError(fmt.Errorf("%s: %w", pd.Name(), err))
		}
		if p.BigEndian {
			box.SwapBytes(b, p.DType.SwapSize())
		}
		box.Copy(dst, strides, b, p.Strides, shape, p.Size)
		return true, nil
	}
	last := len(shape) - 1
	if p.BigEndian || last < 0 || strides[last] != p.Size {
		return false, nil
	}
	w.scatter.begin(w, p, start, shape, dst, strides)
	if err := pd.DecodeBlocks(&w.codec, enc, p.Bytes, w.emit); err != nil {
		return false, asFormatError(fmt.Errorf("%s: %w", pd.Name(), err))
	}
	return true, nil
}

// decodeAll decodes the chunk that key names, or only as much as its first n bytes need.
func (rd reader) decodeAll(chain codec.Chain, key, dst, enc []byte, n int) error {
	if !chain.IsOfStore() {
		return rd.w.decodeFront(chain, dst, enc, n)
	}
	own, ok := rd.a.st.(store.Decoder)
	if !ok {
		return rd.w.decodeChain(chain, dst, enc) // which says so
	}
	return asFormatError(own.Decode(rd.ctx, string(key), dst, enc))
}

// decodeFront decodes a chunk of len(dst) bytes, or only as much as its first n bytes need.
func (w *worker) decodeFront(c codec.Chain, dst, enc []byte, n int) error {
	if pre, ok := c.Prefix(); ok && n < len(dst) {
		if err := pre.DecodePrefix(&w.codec, dst, enc, n); err != nil {
			return asFormatError(fmt.Errorf("%s: %w", pre.Name(), err))
		}
		return nil
	}
	return w.decodeChain(c, dst, enc)
}

// decodeCodedShard reads a box of a shard that is encoded as a whole.
func (rd reader) decodeCodedShard(p *meta.Pipeline, s span, start, shape []int, dst []byte, strides []int) error {
	w := rd.w
	if s.n > p.MaxSize {
		return &FormatError{Err: fmt.Errorf("%d bytes are too many for a shard of %d bytes", s.n, p.Bytes)}
	}
	if err := p.Plausible(s.n); err != nil {
		return &FormatError{Err: err}
	}
	b, err := rd.bytes(s)
	if err != nil {
		return err
	}
	t := time.Now()
	// how long a shard is follows only from its index: the codecs get room for
	// the longest, of which memory is taken as they fill it
	if b, err = w.decodeTail(p.Chain, 0, int(min(p.Longest, int64(len(b))<<16)), b); err != nil {
		return err
	}
	rd.a.opts.meter.Since(meter.Decode, t)
	return rd.decodeShard(p, inMemory(b), start, shape, dst, strides)
}

// index returns the index of the shard s, from the file's cache if it was read before.
func (rd reader) index(sh *meta.Sharding, s span) (*shardIndex, error) {
	if s.f != nil {
		if x := s.f.index(place{s.off, s.n}); x != nil {
			return x, nil
		}
		// who comes while another reads it waits for that
		select {
		case s.f.reading <- struct{}{}:
			defer func() { <-s.f.reading }()
		case <-rd.ctx.Done():
			return nil, rd.ctx.Err()
		}
		if x := s.f.index(place{s.off, s.n}); x != nil {
			return x, nil
		}
	}
	x, err := rd.readIndex(sh, s)
	if err != nil {
		return nil, err
	}
	if s.f != nil {
		s.f.mu.Lock()
		if s.f.indices == nil {
			s.f.indices = make(map[place]*shardIndex, 1)
		}
		s.f.indices[place{s.off, s.n}] = x
		s.f.mu.Unlock()
		rd.a.objects.account(s.f, x.bytes())
	}
	return x, nil
}

// decodeShard reads a box of a shard from each inner chunk that it touches. All arguments are in stored
// order.
func (rd reader) decodeShard(p *meta.Pipeline, s span, start, shape []int, dst []byte, strides []int) error {
	w, sh := rd.w, p.Shard
	x, err := rd.index(sh, s)
	if err != nil {
		return err
	}
	rank := len(shape)
	v := w.vector(3 * rank)
	inner, at, istart, ishape := sh.Inner.Shape, v[:rank], v[rank:2*rank], v[2*rank:]
	for d := range rank {
		at[d] = start[d] / inner[d]
	}
	for {
		i, off := 0, 0
		for d := range rank {
			i = i*sh.Grid[d] + at[d]
			origin := at[d] * inner[d]
			lo, hi := max(start[d], origin), min(start[d]+shape[d], origin+inner[d])
			istart[d], ishape[d] = lo-origin, hi-lo
			off += (lo - start[d]) * strides[d]
		}
		o, n, ok, err := rd.lookup(sh, x, s, i)
		switch {
		case err != nil:
			return err
		case !ok:
			if err := rd.missingInner(p, at, dst[off:], strides, ishape); err != nil {
				return err
			}
		default:
			m := w.mark()
			if err := rd.decode(sh.Inner, s.sub(o, n), istart, ishape, dst[off:], strides); err != nil {
				return err
			}
			w.release(m)
		}
		d := rank - 1
		for ; d >= 0; d-- {
			if at[d]++; at[d] <= (start[d]+shape[d]-1)/inner[d] {
				break
			}
			at[d] = start[d] / inner[d]
		}
		if d < 0 {
			return nil
		}
	}
}

// encoded returns the stored form of a chunk in scratch memory, or only as much of it as a box needs.
func (rd reader) encoded(p *meta.Pipeline, s span, start, shape []int) ([]byte, error) {
	if s.f == nil || rd.a.far > 0 || !rd.partly(p, start, shape) {
		return rd.bytes(s)
	}
	b, err := rd.w.buffer(int(s.n))
	if err != nil {
		return nil, err
	}
	t := time.Now()
	defer func() { rd.a.opts.meter.Since(meter.Read, t) }()
	first, end := p.Cover(start, shape)
	pd, _ := p.Chain.Partial() // partly has asked
	return b, pd.FetchRange(b, first, end-first, p.Bytes, func(from, to int) error { return rd.readAt(s, b[from:to], int64(from)) })
}

// leastSpared is the number of decoded bytes that need not be fetched from which on parts of a stored chunk are read:
// about what another system call costs.
const leastSpared = 256 << 10

// partly reports whether a box, in stored order, needs so little of a chunk that decodeChunk decodes only a range of
// it.
func (rd reader) partly(p *meta.Pipeline, start, shape []int) bool {
	if _, ok := p.Chain.Partial(); !ok || p.Shard != nil || rd.w.planes != nil || rd.w.front {
		return false
	}
	first, end := p.Cover(start, shape)
	return end-first <= p.Bytes/2 && p.Bytes-(end-first) >= leastSpared
}
