package meta

import (
	"fmt"
	"slices"

	"strata/pkg/dtype"
	"strata/pkg/mem"
	"strata/pkg/zarr/box"
	"strata/pkg/zarr/codec"
)

// Pipeline converts chunks of one shape to bytes and back (v3 "codecs"): it permutes the dimensions, stores
// the elements in C order or as a shard of smaller chunks, and applies codecs to the bytes.
//
// Decoding first converts a box of the chunk to stored order, by permuting the box and the strides of its
// destination; everything after that is in C order.
type Pipeline struct {
	Shape     []int // of the decoded chunk
	Perm      []int // stored dimension i is dimension Perm[i] of Shape; nil for all in place
	Stored    []int // shape in stored order
	DType     dtype.Type
	Size      int         // bytes of an element
	BigEndian bool        // elements are stored most significant byte first
	Shard     *Sharding   // nil: plain elements
	Chain     codec.Chain // bytes → bytes
	Bytes     int         // of the decoded chunk

	Strides []int // of the decoded chunk in stored order
	Longest int64 // most bytes before the codecs: Bytes, of a shard what it can have
	MaxSize int64 // most bytes that the stored form is expected to have
}

// Sharding describes a chunk that is stored as smaller chunks and an index of them.
type Sharding struct {
	Inner      *Pipeline
	Grid       []int // number of inner chunks along each stored dimension
	Count      int
	indexBig   bool
	IndexChain codec.Chain
	IndexSize  int // bytes of the index as stored
	IndexAtEnd bool
}

// hugeSize replaces any size that exceeds all memory. Sums of such sizes do not overflow.
const hugeSize = 1 << 50

// newPipeline checks the rules that hold for every pipeline. Its errors do not name a metadata field.
func newPipeline(shape, perm []int, elem dtype.Type, big bool, chain codec.Chain, shard *Sharding) (*Pipeline, error) {
	p := &Pipeline{Shape: shape, Perm: perm, Stored: shape, DType: elem, Size: elem.Size(), BigEndian: big && elem.SwapSize() > 1, Shard: shard, Chain: chain}
	if perm != nil && slices.IsSorted(perm) {
		p.Perm = nil
	}
	if p.Perm != nil {
		p.Stored = permuted(shape, p.Perm)
	}
	var ok bool
	if p.Bytes, ok = box.Volume(shape, p.Size); !ok {
		return nil, FieldError("", "chunk of %v %s has more bytes than memory can hold", shape, elem)
	}
	p.Strides = box.Strides(make([]int, len(shape)), p.Stored, p.Size)
	p.Longest = int64(p.Bytes)
	if shard != nil {
		p.Longest = int64(mem.Sum(shard.IndexSize, mem.Product(shard.Count, int(shard.Inner.MaxSize))))
	}
	p.Longest = min(p.Longest, hugeSize)
	p.MaxSize = p.Longest
	if len(chain) > 0 {
		// readers allow for gaps and for codecs that do worse than ours
		_, hi := chain.EncodedSize(int(p.Longest))
		p.MaxSize = int64(min(mem.Sum(hi, hi/8, 4<<10), hugeSize))
	}
	return p, nil
}

func newSharding(shard []int, inner *Pipeline, indexBig bool, indexChain codec.Chain, atEnd bool) (*Sharding, error) {
	s := &Sharding{Inner: inner, Grid: make([]int, len(shard)), Count: 1, indexBig: indexBig, IndexChain: indexChain, IndexAtEnd: atEnd}
	ok := true
	for d, n := range shard {
		s.Grid[d] = n / inner.Shape[d]
		if s.Count, ok = mem.Mul(s.Count, s.Grid[d]); !ok {
			return nil, FieldError("chunk_shape", "makes more inner chunks than can be counted")
		}
	}
	if s.Count > mostInner {
		return nil, FieldError("chunk_shape", "makes %d inner chunks of a shard, at most %d are supported", s.Count, mostInner)
	}
	lo, hi := indexChain.EncodedSize(EntryBytes * s.Count)
	if lo != hi {
		return nil, FieldError("index_codecs", "must make an index of fixed size, without compression")
	}
	if s.Count > WholeIndex && !inPages(indexChain) {
		return nil, FieldError("index_codecs", "must be a checksum or none beside \"bytes\" where a shard has more than %d inner chunks", WholeIndex)
	}
	s.IndexSize = hi
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

// Plain reports whether elements are stored unencoded, so that any part of them can be read.
func (p *Pipeline) Plain() bool { return p.Shard == nil && len(p.Chain) == 0 }

// Summed returns the checksum behind the elements if it is all that the codecs add to them.
func (p *Pipeline) Summed() (sum codec.Checksum, ok bool) {
	if p.Shard != nil || len(p.Chain) != 1 {
		return sum, false
	}
	sum, ok = codec.ChecksumOf(p.Chain[0])
	return sum, ok && !sum.AtStart
}

// Addressable reports whether parts of the stored form can be read without the rest.
func (p *Pipeline) Addressable() bool { return len(p.Chain) == 0 }

// Unpermuted returns stored-order lengths in the order of shape.
func (p *Pipeline) Unpermuted(stored []int) []int {
	if p.Perm == nil {
		return stored
	}
	out := make([]int, len(stored))
	for i, d := range p.Perm {
		out[d] = stored[i]
	}
	return out
}

// PieceBytes is the size in which plain chunks are read: large enough that
// the system call does not show, small enough to stay in the cache of a core.
const PieceBytes = 1 << 20

// Unit returns the shape of the part of a chunk that one worker takes at a time, in the order of shape: an
// inner chunk, a piece of plain elements, or else the whole chunk.
func (p *Pipeline) Unit() []int {
	switch {
	case !p.Addressable():
		return p.Shape
	case p.Shard != nil:
		return p.Unpermuted(p.Shard.Inner.Shape)
	}
	return p.Unpermuted(p.Piece(make([]int, len(p.Stored))))
}

// Piece stores in its argument the shape of a part of about pieceBytes that is contiguous in a file of plain
// elements, in stored order.
func (p *Pipeline) Piece(piece []int) []int {
	copy(piece, p.Stored)
	n := p.Bytes
	for d := range piece {
		if n <= PieceBytes {
			break
		}
		row := n / piece[d]
		piece[d] = min(max(PieceBytes/row, 1), piece[d])
		n = row * piece[d]
	}
	return piece
}

// ScratchBytes returns the maximum memory that one worker needs to decode a unit, besides the destination:
// its stored form, intermediate results between codecs, and the decoded unit, unless whole units are read in
// stored order.
func (p *Pipeline) ScratchBytes(whole bool) int64 {
	switch {
	case p.Plain():
		return 256 << 10
	case p.Addressable():
		return p.Shard.Inner.ScratchBytes(whole && p.Perm == nil) + 2*EntryBytes*int64(min(p.Shard.Count, WholeIndex))
	}
	first := 1
	if p.Shard != nil {
		first = 0 // the shard itself lies there
	}
	between := p.Chain.Between(first, int(p.Longest))
	n := int64(min(mem.Sum(int(p.MaxSize), between[0], between[1]), hugeSize))
	switch {
	case p.Shard != nil:
		return n + p.Shard.Inner.ScratchBytes(whole && p.Perm == nil)
	case p.InBlocks():
		return n + 2*min(int64(p.Bytes), codec.BlockRoom)
	case !whole || p.Perm != nil:
		n += int64(p.Bytes)
	}
	return n
}

// InBlocks reports whether chunks are decoded block by block.
func (p *Pipeline) InBlocks() bool {
	_, blocks := p.Chain.Bare().Partial()
	return blocks && p.Perm == nil && !p.BigEndian && len(p.Shape) > 0
}

// Plausible refuses to allocate a chunk on the word of metadata alone: no codec shrinks a chunk by more than
// 2^16, except for runs of one value, which need little memory.
func (p *Pipeline) Plausible(stored int64) error {
	const (
		always = 256 << 20
		ratio  = 1 << 16
	)
	if n := int64(p.Bytes); n > always && n/ratio > stored {
		return fmt.Errorf("%d bytes cannot hold a chunk of %d bytes", stored, n)
	}
	return nil
}

// FetchBytes estimates the memory that a goroutine holds for a unit until it is decoded.
func (p *Pipeline) FetchBytes() int64 {
	switch {
	case p.Plain():
		return int64(min(p.Bytes, PieceBytes))
	case p.Addressable():
		return p.Shard.Inner.FetchBytes()
	case p.Shard != nil:
		return p.ScratchBytes(false)
	}
	return p.Eager()
}

// Cover returns the range of decoded bytes that holds a box, given in stored order.
func (p *Pipeline) Cover(start, shape []int) (first, end int) {
	end = p.Size
	for d, s := range p.Strides {
		first += start[d] * s
		end += (shape[d] - 1) * s
	}
	return first, first + end
}

// Eager returns how many bytes to allocate for the file of an encoded chunk before its size is known.
func (p *Pipeline) Eager() int64 { return min(int64(p.Bytes)+int64(p.Bytes)/64+4096, p.MaxSize) }

// Front reports whether a box, in stored order, consists of leading planes of a chunk.
func (p *Pipeline) Front(start, shape []int) bool {
	for d := range shape {
		if start[d] != 0 || d > 0 && shape[d] != p.Stored[d] {
			return false
		}
	}
	return true
}

// Streams reports whether chunk files are shards that can be written chunk by chunk.
func (p *Pipeline) Streams() bool { return p.Shard != nil && p.Addressable() && p.Perm == nil }

// ReadOnly returns an error for codecs that only decode, and for shards whose index is too long to hold.
func (p *Pipeline) ReadOnly() error {
	if err := p.Chain.ReadOnly(); err != nil || p.Shard == nil {
		return err
	}
	if p.Shard.Count > mostInnerWritten {
		return FieldError("chunk_shape", "makes %d inner chunks of a shard, at most %d are written", p.Shard.Count, mostInnerWritten)
	}
	return p.Shard.Inner.ReadOnly()
}

// AsStored reports whether elements lie in memory as they will in the file.
func (p *Pipeline) AsStored(strides, valid []int) bool {
	if p.BigEndian {
		return false
	}
	run := p.Size
	for i := len(p.Stored) - 1; i >= 0; i-- {
		d := i
		if p.Perm != nil {
			d = p.Perm[i]
		}
		if valid[d] != p.Stored[i] || valid[d] != 1 && strides[d] != run {
			return false
		}
		run *= valid[d]
	}
	return true
}
