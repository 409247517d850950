// Package enzstd encodes Zstandard frames (RFC 8878).
//
// Levels mean what they mean to libzstd: at levels 1 to 9 a frame is at most 6 % larger than libzstd's, on the kinds of
// data that the tests list. Negative levels leave literals uncoded, 0 is 3, and those above 9 are 9.
// docs/zstd-levels.md has sizes and times.
//
// A frame consists of blocks of up to 128 KiB. Of each, a finder makes sequences, each some literals and a match with
// earlier bytes; then literals are written in a Huffman code and sequences in FSE codes. There is a finder for each
// group of levels, as in libzstd: findFast (1 and 2), findDouble (3 and 4) and findLazy (5 to 9). Two more are for
// images:
//
//   - findWords is for quantized measurements in a wider type, such as 12 bits in float32, of which whole words repeat.
//   - findSparse is for noise, in which nothing repeats; its literals are all there is to code.
//
// [Trend] decides which finder a block gets.
//
// A [Frame] is for long sources: several encoders work on its segments.
//
// The same input, level and trend make the same frame, whatever the encoder encoded before, with assembly and without.
package enzstd

import (
	"encoding/binary"
	"math"
	"math/bits"

	"github.com/cespare/xxhash/v2"
)

// Encoder holds the tables and buffers for encoding: about 1 MiB for levels up to 2, 2 MiB up to 4, 4 MiB up
// to 6 and 11 MiB at level 9, less for short frames. They are allocated on first use and kept. The zero value
// is ready; only one goroutine at a time may use it.
type Encoder struct {
	params    params
	base      int      // a table entry e stands for position e - base of the frame; 0: the tables are empty
	table     []uint32 // entries for hashes of long matches, or rows of entries
	short     []uint32 // entries for hashes of short matches
	tags      []uint8  // for each entry of a row, a byte of its hash
	heads     []uint8  // for each row, the place of its newest entry
	words     []uint32 // for each word, its last position
	sparse    []uint32 // entries made while blocks hardly compress
	inserted  int      // positions before it are in the rows
	unprimed  int      // positions before it belong to other segments and may be missing in the tables
	seqs      []sequence
	buffer    []byte // of literals
	lits      []byte
	repeats   [3]uint32 // last distances that decoders know
	recent    [2]int    // and that the finders used
	farthest  int       // distance of a match of the frame
	sequencer sequencer
	huff      literalCoder
	out       []byte // the block at hand, encoded
	sum       xxhash.Digest
}

const magic = "\x28\xb5\x2f\xfd"

// Encode appends a frame that holds src to dst and returns the result. level is one of libzstd's; checksum
// adds a checksum of the content.
func (e *Encoder) Encode(dst, src []byte, level int, checksum bool) []byte {
	var trend Trend
	return e.EncodeLike(&trend, dst, src, level, checksum)
}

// EncodeLike works like Encode for one of several frames with similar content: trend remembers from frame to
// frame which finder works best.
func (e *Encoder) EncodeLike(trend *Trend, dst, src []byte, level int, checksum bool) []byte {
	e.begin(len(src), level)
	start := len(dst)
	dst = appendFrameHeader(dst, len(src), checksum)
	if checksum {
		e.sum.Reset()
	}
	dst = e.appendBlocks(trend, dst, src, 0, len(src), checksum)
	if len(src) > blockMax {
		setWindow(dst[start:], e.farthest)
	}
	if checksum {
		dst = binary.LittleEndian.AppendUint32(dst, uint32(e.sum.Sum64()))
	}
	e.base += len(src)
	return dst
}

// appendBlocks appends the blocks of src from at to end, the last of a frame where src ends. With sum, they count in
// e.sum.
func (e *Encoder) appendBlocks(trend *Trend, dst, src []byte, at, end int, sum bool) []byte {
	for {
		next := min(at+blockMax, end)
		e.room(at, next)
		e.find(trend, src, at, next)
		dst = e.appendBlock(dst, src[at:next], next == len(src))
		if sum { // while the block is in the cache
			_, _ = e.sum.Write(src[at:next]) // never fails
		}
		if at = next; at == end {
			return dst
		}
	}
}

// setWindow writes the window of a frame of several blocks: decoders need not remember more than the distance of the
// farthest match.
func setWindow(frame []byte, farthest int) {
	frame[len(magic)+1] = byte(max(bits.Len(uint(max(farthest, 1)-1)), 17)-10) << 3
}

// begin prepares for a frame of n bytes.
func (e *Encoder) begin(n, level int) {
	p := choose(level, n)
	if e.params != p {
		e.params = p
		e.base = 0 // tables of other settings mean nothing
		e.resize()
	}
	if e.seqs == nil {
		e.seqs = make([]sequence, 0, blockMax/minMatch)
		e.buffer = make([]byte, 0, blockMax+64)
	}
	e.repeats, e.recent = [3]uint32{1, 4, 8}, [2]int{1, 4}
	e.farthest = 0
	e.inserted, e.unprimed = 0, 0
	clear(e.heads) // which entries of a row are compared depends on where it begins
	e.huff.last = nil
	e.sequencer.last = [kinds]*fseTable{}
}

// room makes sure that entries for positions up to end fit into the tables and differ from those of earlier frames.
func (e *Encoder) room(at, end int) {
	if e.base != 0 && e.base+end <= math.MaxInt32 {
		return
	}
	e.clear()
	e.base = 1 - at
	e.inserted = max(e.inserted, at)
}

// appendFrameHeader begins a frame that states its size. One of several blocks has a byte for its window.
func appendFrameHeader(dst []byte, size int, checksum bool) []byte {
	const singleSegment, hasChecksum = 1 << 5, 1 << 2
	descriptor := byte(0)
	if checksum {
		descriptor = hasChecksum
	}
	dst = append(dst, magic...)
	switch {
	case size < 256:
		return append(dst, descriptor|singleSegment, byte(size))
	case size < 256+1<<16 && size <= blockMax:
		return binary.LittleEndian.AppendUint16(append(dst, descriptor|1<<6|singleSegment), uint16(size-256))
	case size <= blockMax:
		return binary.LittleEndian.AppendUint32(append(dst, descriptor|2<<6|singleSegment), uint32(size))
	case size <= math.MaxUint32:
		return binary.LittleEndian.AppendUint32(append(dst, descriptor|2<<6, 0), uint32(size))
	}
	return binary.LittleEndian.AppendUint64(append(dst, descriptor|3<<6, 0), uint64(size))
}
