// Package unzstd decodes Zstandard frames (RFC 8878) from one byte slice into another whose size the caller knows.
//
// It decodes images faster than libzstd: sequences and Huffman coded literals each wait for one load and a few
// operations a step, in loops that are written in assembly for BMI2 (amd64) and, in the same way, in Go. In shuffled
// data, whole byte planes are constant, or nearly, and decode to a few very long matches that repeat a single byte;
// these are copied in large pieces. Literals that stand alone are written straight to their place. docs/zstd-levels.md
// has speeds beside libzstd's; go run ./lab/zstdlevels -decode 3 measures them.
//
// The loops look at the ends of buffers once for many steps: loop.go and huffman.go say what the margins are, and why
// they are enough.
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

// Decoder holds the tables and buffers of decoding (about 150 KiB once used). The zero value is ready; one goroutine at
// a time may use it.
type Decoder struct {
	tables  [3]fseTable // of sequencer.entries
	counts  [64]int16
	buffer  [blockMax + literalsSlack]byte // literals of a block
	huffman huffman                        // the last table of the frame
	sequencer

	ctx context.Context
	sum xxhash.Digest // of the frame
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

// header is what the header of a frame says.
type header struct {
	blocks  int // where they begin
	checked bool
	known   bool // size is
	size    uint64
	limit   int // the most that a block may decode to
}

// readHeader reads the header of the frame that begins at src[start:].
func readHeader(src []byte, start int) (h header, err error) {
	at := start + 4
	if at == len(src) {
		return h, corrupt(at, "frame header is truncated")
	}
	flags := src[at]
	at++
	single := flags&0x20 != 0
	h.checked = flags&0x04 != 0
	if flags&3 != 0 {
		return h, fmt.Errorf("%w at byte %d", ErrUnsupported, start)
	}
	if flags&0x08 != 0 {
		return h, corrupt(at-1, "reserved bit is set")
	}
	sizeBytes := [...]int{0, 2, 4, 8}[flags>>6]
	if single && sizeBytes == 0 {
		sizeBytes = 1
	}
	window := uint64(0)
	if !single {
		if at == len(src) {
			return h, corrupt(at, "frame header is truncated")
		}
		window = 1 << (10 + src[at]>>3)
		window += window / 8 * uint64(src[at]&7)
		at++
	}
	if len(src)-at < sizeBytes {
		return h, corrupt(len(src), "frame header is truncated")
	}
	h.known = sizeBytes > 0
	for i := sizeBytes - 1; i >= 0; i-- {
		h.size = h.size<<8 | uint64(src[at+i])
	}
	if sizeBytes == 2 {
		h.size += 256
	}
	if single {
		window = h.size
	}
	if window > maxWindow {
		return h, corrupt(start, "window of %d bytes (at most %d are accepted)", window, maxWindow)
	}
	h.blocks = at + sizeBytes
	h.limit = int(min(max(window, 1<<10), blockMax))
	return h, nil
}

// frame decodes the frame that begins at src[start:], or blocks of it until there are need bytes.
func (d *Decoder) frame(dst, src []byte, start, need int) (n, read int, err error) {
	h, err := readHeader(src, start)
	if err != nil {
		return 0, 0, err
	}
	if h.known && h.size > uint64(len(dst)) {
		return 0, 0, fmt.Errorf("%w: it says %d bytes at byte %d, there is room for %d", ErrTooLong, h.size, start, len(dst))
	}
	if h.checked {
		need = math.MaxInt // else the checksum would say nothing
		d.sum.Reset()
	}
	d.huffman.defined = false
	for i := range d.tables {
		d.tables[i].defined = false
	}
	d.repeats = [3]int{1, 4, 8}
	at := h.blocks
	for last := false; !last; {
		if n >= need {
			return n, at - start, nil
		}
		if d.ctx != nil && d.ctx.Err() != nil {
			return 0, 0, d.ctx.Err()
		}
		before := n
		if n, at, last, err = d.anyBlock(dst, n, src, at, h.limit); err != nil {
			return 0, 0, err
		}
		if h.checked { // while the block is in the cache
			_, _ = d.sum.Write(dst[before:n]) // never fails
		}
	}
	if h.known && h.size != uint64(n) {
		return 0, 0, corrupt(start, "frame says it has %d bytes, it has %d", h.size, n)
	}
	if h.checked {
		if len(src)-at < 4 {
			return 0, 0, corrupt(len(src), "checksum is truncated")
		}
		if got, want := uint32(d.sum.Sum64()), binary.LittleEndian.Uint32(src[at:]); got != want {
			return 0, 0, corrupt(at, "checksum is %08x, of the data %08x", want, got)
		}
		at += 4
	}
	return n, at - start, nil
}

// anyBlock decodes the block of any kind at src[at:] behind the n bytes of the frame that dst has already. It returns
// the new n, where the block ends and whether it is the last.
func (d *Decoder) anyBlock(dst []byte, n int, src []byte, at, limit int) (_, end int, last bool, err error) {
	if len(src)-at < 3 {
		return 0, 0, false, corrupt(len(src), "block header is truncated")
	}
	header := int(src[at]) | int(src[at+1])<<8 | int(src[at+2])<<16
	last = header&1 != 0
	length := header >> 3
	if length > limit {
		return 0, 0, false, corrupt(at, "block of %d bytes (at most %d)", length, limit)
	}
	at += 3
	kind, stored := header>>1&3, length
	switch kind {
	case 1:
		stored = 1
	case 3:
		return 0, 0, false, corrupt(at-3, "reserved block type")
	}
	if stored > len(src)-at {
		return 0, 0, false, corrupt(len(src), "block is truncated")
	}
	end = at + stored
	if kind == 2 {
		n, err = d.block(dst, n, src[:end], at, limit)
		return n, end, last, err
	}
	if length > len(dst)-n {
		return 0, 0, false, tooLong(len(dst))
	}
	if kind == 0 {
		copy(dst[n:], src[at:end])
	} else {
		fill(dst[n:n+length], src[at])
	}
	return n + length, end, last, nil
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
