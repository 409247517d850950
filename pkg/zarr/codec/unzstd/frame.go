// Package unzstd decodes Zstandard frames (RFC 8878) from one byte slice into another whose size the caller knows.
//
// It exists for shuffled image data. There, whole byte planes are constant, or nearly, and decode to a few very long matches that
// repeat a single byte; the decoder of klauspost/compress copies these byte by byte. This one copies every match in large pieces, writes
// literals that stand alone straight to their place, and decodes sequences with one or two loads each. Literals are Huffman-decoded by
// klauspost's huff0.
//
// It reads what compressors of arrays write: frames without a dictionary.
package unzstd

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/cespare/xxhash/v2"
	"github.com/klauspost/compress/huff0"
)

// Errors that Decode wraps.
var (
	// ErrTooLong means that the frames hold more than len(dst) bytes.
	ErrTooLong = errors.New("zstd frame has more data than expected")
	// ErrCorrupt means that the input breaks the rules of the format or ends early.
	ErrCorrupt = errors.New("zstd frame is corrupt")
	// ErrUnsupported means that a frame needs a dictionary.
	ErrUnsupported = errors.New("zstd frame needs a dictionary")
)

const (
	magic         = 0xfd2fb528
	skipMagic     = 0x184d2a50 // to …5f
	blockMax      = 128 << 10
	maxWindow     = 512 << 20 // a frame that claims more is refused
	literalsSlack = 32        // room behind the literals for copies in whole words
)

// Decoder holds the tables and buffers of decoding (about 150 KiB once used). The zero value is ready; one goroutine at a time may use it.
type Decoder struct {
	huffman  *huff0.Scratch // the last Huffman table of the frame
	hasTable bool
	tables   [3]fseTable // of sequencer.entries
	counts   [64]int16
	buffer   [blockMax + literalsSlack]byte // literals of a block
	sequencer

	ctx context.Context
}

// Bind makes later decoding stop with the error of ctx when ctx ends.
func (d *Decoder) Bind(ctx context.Context) { d.ctx = ctx }

// Decode decodes all frames in src to dst and returns the number of bytes. Nothing is written behind len(dst).
func (d *Decoder) Decode(dst, src []byte) (n int, err error) {
	return d.Prefix(dst, src, math.MaxInt)
}

// Prefix decodes at least the first need bytes of a frame and returns how many it decoded. It ignores the
// rest of src and never writes beyond len(dst), which should have room for all.
func (d *Decoder) Prefix(dst, src []byte, need int) (n int, err error) {
	for at := 0; at < len(src) && n < need; {
		if len(src)-at < 4 {
			return n, corrupt(at, "%d bytes are too few for a frame", len(src)-at)
		}
		m := binary.LittleEndian.Uint32(src[at:])
		if m&^0xf == skipMagic {
			if len(src)-at < 8 || int64(binary.LittleEndian.Uint32(src[at+4:])) > int64(len(src)-at-8) {
				return n, corrupt(at, "skippable frame is longer than the data")
			}
			at += 8 + int(binary.LittleEndian.Uint32(src[at+4:]))
			continue
		}
		if m != magic {
			return n, corrupt(at, "magic number is %08x, must be %08x", m, uint32(magic))
		}
		k, read, err := d.frame(dst[n:], src, at, need-n)
		if err != nil {
			return n, err
		}
		n += k
		at += read
	}
	return n, nil
}

func corrupt(at int, format string, args ...any) error {
	return fmt.Errorf("%w at byte %d: %s", ErrCorrupt, at, fmt.Sprintf(format, args...))
}

// frame decodes the frame that begins at src[start:], or blocks of it until there are need bytes.
func (d *Decoder) frame(dst, src []byte, start, need int) (n, read int, err error) {
	at := start + 4
	if at == len(src) {
		return 0, 0, corrupt(at, "frame header is truncated")
	}
	flags := src[at]
	at++
	single, checked := flags&0x20 != 0, flags&0x04 != 0
	if flags&3 != 0 {
		return 0, 0, fmt.Errorf("%w at byte %d", ErrUnsupported, start)
	}
	if checked {
		need = math.MaxInt // else the checksum would say nothing
	}
	if flags&0x08 != 0 {
		return 0, 0, corrupt(at-1, "reserved bit is set")
	}
	sizeBytes := [...]int{0, 2, 4, 8}[flags>>6]
	if single && sizeBytes == 0 {
		sizeBytes = 1
	}
	window := uint64(0)
	if !single {
		if at == len(src) {
			return 0, 0, corrupt(at, "frame header is truncated")
		}
		window = 1 << (10 + src[at]>>3)
		window += window / 8 * uint64(src[at]&7)
		at++
	}
	if len(src)-at < sizeBytes {
		return 0, 0, corrupt(len(src), "frame header is truncated")
	}
	size, known := uint64(0), sizeBytes > 0
	for i := sizeBytes - 1; i >= 0; i-- {
		size = size<<8 | uint64(src[at+i])
	}
	if sizeBytes == 2 {
		size += 256
	}
	at += sizeBytes
	if single {
		window = size
	}
	if known && size > uint64(len(dst)) {
		return 0, 0, fmt.Errorf("%w: it says %d bytes at byte %d, there is room for %d", ErrTooLong, size, start, len(dst))
	}
	if window > maxWindow {
		return 0, 0, corrupt(start, "window of %d bytes (at most %d are accepted)", window, maxWindow)
	}
	d.hasTable = false
	for i := range d.tables {
		d.tables[i].defined = false
	}
	d.repeats = [3]int{1, 4, 8}
	limit := int(min(max(window, 1<<10), blockMax))
	for last := false; !last; {
		if n >= need {
			return n, at - start, nil
		}
		if len(src)-at < 3 {
			return 0, 0, corrupt(len(src), "block header is truncated")
		}
		if d.ctx != nil && d.ctx.Err() != nil {
			return 0, 0, d.ctx.Err()
		}
		header := int(src[at]) | int(src[at+1])<<8 | int(src[at+2])<<16
		last = header&1 != 0
		length := header >> 3
		if length > limit {
			return 0, 0, corrupt(at, "block of %d bytes (at most %d)", length, limit)
		}
		at += 3
		switch header >> 1 & 3 {
		case 0: // raw
			if length > len(src)-at {
				return 0, 0, corrupt(len(src), "raw block is truncated")
			}
			if length > len(dst)-n {
				return 0, 0, tooLong(len(dst))
			}
			n += copy(dst[n:], src[at:at+length])
			at += length
		case 1: // one byte, repeated
			if at == len(src) {
				return 0, 0, corrupt(at, "block is truncated")
			}
			if length > len(dst)-n {
				return 0, 0, tooLong(len(dst))
			}
			fill(dst[n:n+length], src[at])
			n += length
			at++
		case 2:
			if length > len(src)-at {
				return 0, 0, corrupt(len(src), "block is truncated")
			}
			if n, err = d.block(dst, n, src[:at+length], at, limit); err != nil {
				return 0, 0, err
			}
			at += length
		default:
			return 0, 0, corrupt(at-3, "reserved block type")
		}
	}
	if known && size != uint64(n) {
		return 0, 0, corrupt(start, "frame says it has %d bytes, it has %d", size, n)
	}
	if checked {
		if len(src)-at < 4 {
			return 0, 0, corrupt(len(src), "checksum is truncated")
		}
		if got, want := uint32(xxhash.Sum64(dst[:n])), binary.LittleEndian.Uint32(src[at:]); got != want {
			return 0, 0, corrupt(at, "checksum is %08x, of the data %08x", want, got)
		}
		at += 4
	}
	return n, at - start, nil
}

func tooLong(room int) error { return fmt.Errorf("%w (%d)", ErrTooLong, room) }

func fill(b []byte, v byte) {
	if len(b) == 0 {
		return
	}
	b[0] = v
	for n := 1; n < len(b); n *= 2 {
		copy(b[n:], b[:n])
	}
}

// block decodes the compressed block src[at:] behind the n bytes of the frame that dst has already, and returns the new n. limit is the
// most that a block may decode to.
func (d *Decoder) block(dst []byte, n int, src []byte, at, limit int) (int, error) {
	if at == len(src) {
		return 0, corrupt(at, "empty block")
	}
	kind, format := src[at]&3, src[at]>>2&3
	// the header: the two low bits are the kind, the next the format of the sizes
	var header, size, stored int
	streams := 4
	switch {
	case kind < 2 && format&1 == 0:
		header = 1
	case kind < 2:
		header = 2 + int(format>>1)
	default:
		header = 3 + max(0, int(format)-1)
	}
	if len(src)-at < header {
		return 0, corrupt(len(src), "literals header is truncated")
	}
	bits := uint64(0)
	for i := header - 1; i >= 0; i-- {
		bits = bits<<8 | uint64(src[at+i])
	}
	switch {
	case kind < 2 && header == 1:
		size = int(bits >> 3)
	case kind < 2:
		size = int(bits >> 4)
	default:
		width := [...]uint{10, 10, 14, 18}[format]
		size, stored = int(bits>>4&(1<<width-1)), int(bits>>(4+width))
		if format == 0 {
			streams = 1
		}
	}
	switch kind {
	case 0:
		stored = size
	case 1:
		stored = 1
	}
	begin := at + header
	if size > limit || stored > len(src)-begin {
		return 0, corrupt(at, "%d literals in %d bytes (at most %d in %d)", size, stored, limit, len(src)-begin)
	}
	rest := begin + stored
	if rest == len(src) {
		return 0, corrupt(rest, "no sequences section")
	}
	alone := src[rest] == 0 // no sequences: the literals are the block
	if alone && rest+1 != len(src) {
		return 0, corrupt(rest+1, "bytes behind the literals")
	}
	if alone && size > len(dst)-n {
		return 0, tooLong(len(dst))
	}
	in := src[begin:rest]
	out := d.buffer[:size]
	if alone {
		out = dst[n : n+size]
	}
	literals := d.buffer[:size+literalsSlack]
	switch kind {
	case 0:
		if !alone && len(src)-begin >= size+literalsSlack {
			literals = src[begin : begin+size+literalsSlack]
		} else {
			copy(out, in)
		}
	case 1:
		fill(out, in[0])
	default:
		var err error
		if kind == 2 {
			if d.huffman == nil {
				d.huffman = new(huff0.Scratch)
			}
			var table *huff0.Scratch
			table, in, err = huff0.ReadTable(in, d.huffman)
			if err != nil {
				d.hasTable = false
				return 0, corrupt(begin, "Huffman table: %v", err)
			}
			d.huffman, d.hasTable = table, true
		}
		if !d.hasTable {
			return 0, corrupt(at, "no Huffman table to use again")
		}
		d.huffman.MaxDecodedSize = size
		var decoded []byte
		if streams == 4 {
			decoded, err = d.huffman.Decoder().Decompress4X(out[:0:size], in)
		} else {
			decoded, err = d.huffman.Decoder().Decompress1X(out[:0:size], in)
		}
		if err == nil && len(decoded) != size {
			err = fmt.Errorf("%d literals instead of %d", len(decoded), size)
		}
		if err != nil {
			return 0, corrupt(begin, "Huffman coded literals: %v", err)
		}
	}
	if alone {
		return n + size, nil
	}
	return d.sequences(dst, n, src, rest, literals, limit)
}
