package enzstd

import (
	"encoding/binary"
	"math"
	"sync/atomic"

	"github.com/cespare/xxhash/v2"

	"strata/pkg/zarr/codec/internal/match"
)

// SegmentLength is the length of segments that costs next to nothing in size.
const SegmentLength = 4 << 20

// A Frame is a frame whose blocks are encoded in segments, in any order and at the same time: each begins with new
// codes, and with distances that no decoder is expected to remember, but its matches reach back into the segments
// before it. What the segments are, and thus the bytes, depends on the fields alone.
//
// AppendHeader, all segments in order and AppendEnd make the frame. Encoder.Encode makes a slightly smaller one, alone.
type Frame struct {
	Src      []byte
	Level    int  // one of libzstd's
	Checksum bool // of the content, at the end
	Length   int  // of all segments but the last, in bytes: a multiple of 128 KiB

	farthest atomic.Int64 // distance of a match
	sum      xxhash.Digest
}

// Segments returns the number of segments.
func (f *Frame) Segments() int { return 1 + max(len(f.Src)-1, 0)/f.Length }

// segment returns the range of segment i of the source.
func (f *Frame) segment(i int) (from, to int) {
	return i * f.Length, min((i+1)*f.Length, len(f.Src))
}

// Bound returns the most bytes that the header and the first i segments can have.
func (f *Frame) Bound(i int) int {
	const header, blockHeader = 14, 3
	n := 0
	if i > 0 {
		_, n = f.segment(i - 1)
	}
	return header + n + blockHeader*((n+blockMax-1)/blockMax)
}

// AppendHeader appends what is in front of the segments.
func (f *Frame) AppendHeader(dst []byte) []byte {
	f.farthest.Store(0)
	f.sum.Reset()
	return appendFrameHeader(dst, len(f.Src), f.Checksum)
}

// AppendSegment appends segment i. It may be called for several segments at the same time, each time with another
// encoder.
func (f *Frame) AppendSegment(e *Encoder, dst []byte, i int) []byte {
	from, to := f.segment(i)
	e.begin(len(f.Src), f.Level)
	first := max(0, from-e.params.window)
	e.reserve(first, to)
	var trend Trend
	if from > 0 {
		e.repeats = [3]uint32{} // no match has these distances
		e.prime(f.Src, first, from)
	}
	dst = e.appendBlocks(&trend, dst, f.Src, from, to, false)
	e.base += to
	for far := int64(e.farthest); ; {
		most := f.farthest.Load()
		if far <= most || f.farthest.CompareAndSwap(most, far) {
			return dst
		}
	}
}

// Sum adds the content of segment i to the checksum, if there is one. It is called for one segment after the other, in
// order.
func (f *Frame) Sum(i int) {
	if f.Checksum {
		from, to := f.segment(i)
		_, _ = f.sum.Write(f.Src[from:to]) // never fails
	}
}

// AppendEnd completes the frame, which has its header and all segments.
func (f *Frame) AppendEnd(frame []byte) []byte {
	if len(f.Src) > blockMax {
		setWindow(frame, int(f.farthest.Load()))
	}
	if f.Checksum {
		frame = binary.LittleEndian.AppendUint32(frame, uint32(f.sum.Sum64()))
	}
	return frame
}

// reserve makes sure that the positions from first to end can be told from all that are in the tables.
func (e *Encoder) reserve(first, end int) {
	if e.base == 0 || e.base+end-first > math.MaxInt32 {
		e.clear()
		e.base = 1
	}
	if e.base == first { // 0 means that tables are not clear
		e.base++
	}
	e.base -= first
}

// Distances of the positions that are entered in tables for matches with what is before a segment.
const (
	sparsePrime = 2 * sparseStep
	coarsePrime = 1 << 10 // enough to notice long matches, and cheap, even beside the encoding of noise
	nearPrime   = 16
	nearBytes   = 32 << 10
	nearWords   = 64 << 10 // bytes of which all words are entered
)

// searchPrime is for what is worth a search, by finder: it takes a few hundredths of the time of that.
var searchPrime = [...]int{fast: 16, double: 8, lazy: 4}

// prime enters some positions from first to end, and leaves the others to primeSearch.
func (e *Encoder) prime(src []byte, first, end int) {
	e.inserted, e.unprimed = end, end
	last := end - 8 // that has 8 bytes
	sparse := (*[1 << sparseLog]uint32)(sized(&e.sparse, 1<<sparseLog))
	for i := (first + sparsePrime - 1) &^ (sparsePrime - 1); i <= last; i += sparsePrime {
		sparse[hash(match.Load64(src, i), 8, sparseLog)] = uint32(i + e.base)
		if i%coarsePrime == 0 {
			e.enter(src, i)
		}
	}
	for i := max(first, end-nearBytes); i <= last; i += nearPrime {
		e.enter(src, i)
	}
	words := (*[1 << wordsLog]uint32)(sized(&e.words, 1<<wordsLog))
	for i := (max(first, end-nearWords) + 3) &^ 3; i <= last; i += 4 {
		words[hash(match.Load64(src, i), 4, wordsLog)] = uint32(i + e.base)
	}
}

// primeSearch enters more positions before the segment, when its block that ends at end turns out to be worth a search.
func (e *Encoder) primeSearch(src []byte, end int) {
	for i := max(0, end-e.params.window); i <= e.unprimed-8; i += searchPrime[e.params.find] {
		e.enter(src, i)
	}
	e.unprimed = 0
}

// enter enters position i in the tables of the level's finder, unless there are later ones in its place. Rows take any.
func (e *Encoder) enter(src []byte, i int) {
	p, v, at := &e.params, match.Load64(src, i), uint32(i+e.base)
	later := func(table []uint32, h uint64) { table[h] = max(table[h], at) }
	switch p.find {
	case fast:
		later(e.table, hash(v, p.minMatch, p.log))
	case double:
		later(e.table, hash(v, 8, p.log))
		later(e.short, hash(v, p.minMatch, p.shortLog))
	default:
		e.insert(src, i, i+1)
	}
}

// Memory returns the bytes that an encoder holds, at most, once it has encoded sources of n bytes at a level.
func Memory(level, n int) int {
	p := choose(level, n)
	m := 4<<p.log + 4<<wordsLog + 4<<sparseLog + 12*blockMax/minMatch + 3*blockMax + 64<<10
	switch p.find {
	case double:
		m += 4 << p.shortLog
	case lazy:
		m += 1<<p.log + 1<<(p.log-rowLog)
	}
	return m
}
