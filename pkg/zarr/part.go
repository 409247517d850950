package zarr

import (
	"time"

	"strata/pkg/meter"
)

// leastSpared is the number of decoded bytes that need not be fetched from which on parts of a stored chunk are read: about what another
// system call costs.
const leastSpared = 256 << 10

// partly reports whether a box, in stored order, needs so little of a chunk that decodeChunk decodes only a range of it.
func (rd reader) partly(p *pipeline, start, shape []int) bool {
	if _, ok := p.chain.Partial(); !ok || p.shard != nil || rd.w.planes != nil || rd.w.front {
		return false
	}
	first, end := p.cover(start, shape)
	return end-first <= p.nbytes/2 && p.nbytes-(end-first) >= leastSpared
}

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

// encoded returns the stored form of a chunk in scratch memory, or only as much of it as a box needs.
func (rd reader) encoded(p *pipeline, s span, start, shape []int) ([]byte, error) {
	if s.f == nil || rd.a.far > 0 || !rd.partly(p, start, shape) {
		return rd.bytes(s)
	}
	b, err := rd.w.buffer(int(s.n))
	if err != nil {
		return nil, err
	}
	t := time.Now()
	defer func() { rd.a.opts.meter.Since(meter.Read, t) }()
	first, end := p.cover(start, shape)
	pd, _ := p.chain.Partial() // partly has asked
	return b, pd.FetchRange(b, first, end-first, p.nbytes, func(from, to int) error { return rd.readAt(s, b[from:to], int64(from)) })
}
