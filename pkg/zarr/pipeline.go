package zarr

import (
	"fmt"
	"slices"

	"strata/pkg/dtype"
	"strata/pkg/mem"
	"strata/pkg/zarr/codec"
)

// pipeline converts chunks of one shape to bytes and back (v3 "codecs"): it permutes the dimensions, stores
// the elements in C order or as a shard of smaller chunks, and applies codecs to the bytes.
//
// Decoding first converts a box of the chunk to stored order, by permuting the box and the strides of its
// destination; everything after that is in C order.
type pipeline struct {
	shape  []int // of the decoded chunk
	perm   []int // stored dimension i is dimension perm[i] of shape; nil for all in place
	stored []int // shape in stored order
	elem   dtype.Type
	size   int         // bytes of an element
	big    bool        // elements are stored most significant byte first
	shard  *sharding   // nil: plain elements
	chain  codec.Chain // bytes → bytes
	nbytes int         // of the decoded chunk

	strides []int // of the decoded chunk in stored order
	longest int64 // most bytes before the codecs: nbytes, of a shard what it can have
	maxSize int64 // most bytes that the stored form is expected to have
}

// sharding describes a chunk that is stored as smaller chunks and an index of them.
type sharding struct {
	inner      *pipeline
	grid       []int // number of inner chunks along each stored dimension
	count      int
	indexBig   bool
	indexChain codec.Chain
	indexSize  int // bytes of the index as stored
	indexAtEnd bool
}

// hugeSize stands for any size that is out of reach; sums with it do not wrap.
const hugeSize = 1 << 50

// newPipeline checks what must hold for every pipeline. Errors name no field.
func newPipeline(shape, perm []int, elem dtype.Type, big bool, chain codec.Chain, shard *sharding) (*pipeline, error) {
	p := &pipeline{shape: shape, perm: perm, stored: shape, elem: elem, size: elem.Size(), big: big && elem.SwapSize() > 1, shard: shard, chain: chain}
	if perm != nil && slices.IsSorted(perm) {
		p.perm = nil
	}
	if p.perm != nil {
		p.stored = permuted(shape, p.perm)
	}
	var ok bool
	if p.nbytes, ok = volume(shape, p.size); !ok {
		return nil, fieldError("", "chunk of %v %s has more bytes than memory can hold", shape, elem)
	}
	p.strides = cStrides(make([]int, len(shape)), p.stored, p.size)
	p.longest = int64(p.nbytes)
	if shard != nil {
		p.longest = int64(mem.Sum(shard.indexSize, mem.Product(shard.count, int(shard.inner.maxSize))))
	}
	p.longest = min(p.longest, hugeSize)
	p.maxSize = p.longest
	if len(chain) > 0 {
		// readers allow for gaps and for codecs that do worse than ours
		_, hi := chain.EncodedSize(int(p.longest))
		p.maxSize = int64(min(mem.Sum(hi, hi/8, 4<<10), hugeSize))
	}
	return p, nil
}

func newSharding(shard []int, inner *pipeline, indexBig bool, indexChain codec.Chain, atEnd bool) (*sharding, error) {
	s := &sharding{inner: inner, grid: make([]int, len(shard)), count: 1, indexBig: indexBig, indexChain: indexChain, indexAtEnd: atEnd}
	ok := true
	for d, n := range shard {
		s.grid[d] = n / inner.shape[d]
		if s.count, ok = mem.Mul(s.count, s.grid[d]); !ok {
			return nil, fieldError("chunk_shape", "makes more inner chunks than can be counted")
		}
	}
	if s.count > mostInner {
		return nil, fieldError("chunk_shape", "makes %d inner chunks of a shard, at most %d are supported", s.count, mostInner)
	}
	lo, hi := indexChain.EncodedSize(entryBytes * s.count)
	if lo != hi {
		return nil, fieldError("index_codecs", "must make an index of fixed size, without compression")
	}
	if s.count > wholeIndex && !inPages(indexChain) {
		return nil, fieldError("index_codecs", "must be a checksum or none beside \"bytes\" where a shard has more than %d inner chunks", wholeIndex)
	}
	s.indexSize = hi
	return s, nil
}

// inPages reports whether an index with these codecs can be read in parts.
func inPages(index codec.Chain) bool {
	if len(index) == 0 {
		return true
	}
	_, ok := codec.ChecksumOf(index[0])
	return ok && len(index) == 1
}

// plain reports whether elements are stored unencoded, so that any part of them can be read.
func (p *pipeline) plain() bool { return p.shard == nil && len(p.chain) == 0 }

// summed returns the checksum behind the elements if it is all that the codecs add to them.
func (p *pipeline) summed() (sum codec.Checksum, ok bool) {
	if p.shard != nil || len(p.chain) != 1 {
		return sum, false
	}
	sum, ok = codec.ChecksumOf(p.chain[0])
	return sum, ok && !sum.AtStart
}

// addressable reports whether parts of the stored form can be read without the rest.
func (p *pipeline) addressable() bool { return len(p.chain) == 0 }

// unpermuted returns stored-order lengths in the order of shape.
func (p *pipeline) unpermuted(stored []int) []int {
	if p.perm == nil {
		return stored
	}
	out := make([]int, len(stored))
	for i, d := range p.perm {
		out[d] = stored[i]
	}
	return out
}

// pieceBytes is the size in which plain chunks are read: large enough that
// the system call does not show, small enough to stay in the cache of a core.
const pieceBytes = 1 << 20

// unit returns the shape of the part of a chunk that one worker takes at a time, in the order of shape: an
// inner chunk, a piece of plain elements, or else the whole chunk.
func (p *pipeline) unit() []int {
	switch {
	case !p.addressable():
		return p.shape
	case p.shard != nil:
		return p.unpermuted(p.shard.inner.shape)
	}
	return p.unpermuted(p.piece(make([]int, len(p.stored))))
}

// piece stores in its argument the shape of a part of about pieceBytes that is contiguous in a file of plain
// elements, in stored order.
func (p *pipeline) piece(piece []int) []int {
	copy(piece, p.stored)
	n := p.nbytes
	for d := range piece {
		if n <= pieceBytes {
			break
		}
		row := n / piece[d]
		piece[d] = min(max(pieceBytes/row, 1), piece[d])
		n = row * piece[d]
	}
	return piece
}

// scratchBytes returns the maximum memory that one worker needs to decode a unit, besides the destination:
// its stored form, intermediate results between codecs, and the decoded unit, unless whole units are read in
// stored order.
func (p *pipeline) scratchBytes(whole bool) int64 {
	switch {
	case p.plain():
		return 256 << 10
	case p.addressable():
		return p.shard.inner.scratchBytes(whole && p.perm == nil) + 2*entryBytes*int64(min(p.shard.count, wholeIndex))
	}
	first := 1
	if p.shard != nil {
		first = 0 // the shard itself lies there
	}
	between := p.chain.Between(first, int(p.longest))
	n := int64(min(mem.Sum(int(p.maxSize), between[0], between[1]), hugeSize))
	switch {
	case p.shard != nil:
		return n + p.shard.inner.scratchBytes(whole && p.perm == nil)
	case p.inBlocks():
		return n + 2*min(int64(p.nbytes), codec.BlockRoom)
	case !whole || p.perm != nil:
		n += int64(p.nbytes)
	}
	return n
}

// inBlocks reports whether chunks are decoded block by block.
func (p *pipeline) inBlocks() bool {
	_, blocks := p.chain.Bare().Partial()
	return blocks && p.perm == nil && !p.big && len(p.shape) > 0
}

// plausible refuses to allocate a chunk on the word of metadata alone: no codec shrinks a chunk by more than
// 2^16, except for runs of one value, which need little memory.
func (p *pipeline) plausible(stored int64) error {
	const (
		always = 256 << 20
		ratio  = 1 << 16
	)
	if n := int64(p.nbytes); n > always && n/ratio > stored {
		return fmt.Errorf("%d bytes cannot hold a chunk of %d bytes", stored, n)
	}
	return nil
}

// fetchBytes estimates the memory that a goroutine holds for a unit until it is decoded.
func (p *pipeline) fetchBytes() int64 {
	switch {
	case p.plain():
		return int64(min(p.nbytes, pieceBytes))
	case p.addressable():
		return p.shard.inner.fetchBytes()
	case p.shard != nil:
		return p.scratchBytes(false)
	}
	return p.eager()
}

// cover returns the range of decoded bytes that holds a box, given in stored order.
func (p *pipeline) cover(start, shape []int) (first, end int) {
	end = p.size
	for d, s := range p.strides {
		first += start[d] * s
		end += (shape[d] - 1) * s
	}
	return first, first + end
}

// eager returns how many bytes to allocate for the file of an encoded chunk before its size is known.
func (p *pipeline) eager() int64 { return min(int64(p.nbytes)+int64(p.nbytes)/64+4096, p.maxSize) }

// front reports whether a box, in stored order, consists of leading planes of a chunk.
func (p *pipeline) front(start, shape []int) bool {
	for d := range shape {
		if start[d] != 0 || d > 0 && shape[d] != p.stored[d] {
			return false
		}
	}
	return true
}

// streams reports whether chunk files are shards that can be written chunk by chunk.
func (p *pipeline) streams() bool { return p.shard != nil && p.addressable() && p.perm == nil }

// readOnly returns an error for codecs that only decode, and for shards whose index is too long to hold.
func (p *pipeline) readOnly() error {
	if err := p.chain.ReadOnly(); err != nil || p.shard == nil {
		return err
	}
	if p.shard.count > mostInnerWritten {
		return fieldError("chunk_shape", "makes %d inner chunks of a shard, at most %d are written", p.shard.count, mostInnerWritten)
	}
	return p.shard.inner.readOnly()
}

// asStored reports whether elements lie in memory as they will in the file.
func (p *pipeline) asStored(strides, valid []int) bool {
	if p.big {
		return false
	}
	run := p.size
	for i := len(p.stored) - 1; i >= 0; i-- {
		d := i
		if p.perm != nil {
			d = p.perm[i]
		}
		if valid[d] != p.stored[i] || valid[d] != 1 && strides[d] != run {
			return false
		}
		run *= valid[d]
	}
	return true
}
