package unzstd

import (
	"encoding/binary"
	"math/bits"
)

// entry is one state of a sequence code: what the symbol stands for, and how to get to the next state. From the low
// end:
//
//	8 bits   number of bits of both, at most 39
//	8 bits   number of bits to be added to the next state
//	16 bits  base of the next state, as its place in bytes in sequencer.entries
//	24 bits  base of the value, of lengths; that of an offset is a one in front of its bits
//	8 bits   number of bits to be added to the value
//
// The sum of three entries has the sum of their numbers of bits at its low end, that of two lengths the sum of the last
// numbers at its top.
type entry uint64

// makeEntry returns the entry of a symbol of code k whose next state is the first.
func makeEntry(k int, base uint32, extra uint8) entry {
	return entry(extra)<<56 | entry(base&0xffffff)<<32 | entry(k*tableSize*8)<<16 | entry(extra)
}

func (e entry) base() int    { return int(e >> 32 & 0xffffff) }
func (e entry) next() uint64 { return uint64(e >> 19 % tableSize) }
func (e entry) extra() uint  { return uint(e >> 56) }
func (e entry) bits() uint   { return uint(e >> 8 & 0xff) }

// tableSize is the greatest number of states.
const tableSize = 512

// fseTable describes a decoding table: whether the frame has defined it, whether it is that of the predefined
// distribution, and its 1<<log states.
type fseTable struct {
	defined, standard bool
	log               uint
}

// code is one of the three kinds of symbols of a sequence.
type code struct {
	name     string
	base     []uint32
	extra    []uint8
	maxLog   uint
	standard []int16 // predefined distribution (RFC 8878, 3.1.1.3.2.2)
	stdLog   uint
}

const (
	literalLengths = iota
	offsets
	matchLengths
)

var codes = [3]code{
	{
		name: "literal length", maxLog: 9, stdLog: 6,
		base: []uint32{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 18, 20, 22, 24, 28, 32, 40, 48, 64,
			128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768, 65536},
		extra: []uint8{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 3, 3, 4, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16},
		standard: []int16{4, 3, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2, 2, 2, 3, 2, 1, 1, 1, 1, 1,
			-1, -1, -1, -1},
	},
	{
		name: "offset", maxLog: 8, stdLog: 5,
		base: make([]uint32, 32),
		extra: []uint8{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29,
			30, 31},
		standard: []int16{1, 1, 1, 1, 1, 1, 2, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, -1, -1, -1, -1, -1},
	},
	{
		name: "match length", maxLog: 9, stdLog: 6,
		base: []uint32{3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32,
			33, 34, 35, 37, 39, 41, 43, 47, 51, 59, 67, 83, 99, 131, 259, 515, 1027, 2051, 4099, 8195, 16387, 32771, 65539},
		extra: []uint8{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
			1, 1, 1, 1, 2, 2, 3, 3, 4, 4, 5, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16},
		standard: []int16{1, 4, 3, 2, 2, 2, 2, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
			1, 1, 1, 1, 1, 1, 1, 1, 1, 1, -1, -1, -1, -1, -1, -1, -1},
	},
}

// readTable prepares table i according to the two bits of mode, with the description at src[at:], and returns
// where that ends.
func (d *Decoder) readTable(i int, mode byte, src []byte, at int) (int, error) {
	c, t := &codes[i], &d.tables[i]
	switch mode {
	case 0: // predefined
		if !t.standard {
			d.build(i, c.standard, c.stdLog)
		}
		t.defined, t.standard = true, true
	case 1: // a single symbol
		if at == len(src) {
			return 0, corrupt(at, "%s symbol is missing", c.name)
		}
		s := int(src[at])
		if s >= len(c.base) {
			return 0, corrupt(at, "%s symbol %d (at most %d)", c.name, s, len(c.base)-1)
		}
		d.entries[i][0] = values[i][s]
		*t = fseTable{defined: true}
		at++
	case 2:
		counts, log, read, err := d.readCounts(src[at:], len(c.base), c.maxLog)
		if err != "" {
			return 0, corrupt(at, "%s table: %s", c.name, err)
		}
		d.build(i, counts, log)
		at += read
	default:
		if !t.defined {
			return 0, corrupt(at, "no %s table to use again", c.name)
		}
	}
	return at, nil
}

// readCounts reads a table description (RFC 8878, 4.1.1).
func (d *Decoder) readCounts(in []byte, symbols int, maxLog uint) (counts []int16, log uint, read int, err string) {
	position := 0 // in bits
	// peek returns the next bits, zeros behind the end
	peek := func() uint32 {
		k := position >> 3
		if k+4 <= len(in) {
			return binary.LittleEndian.Uint32(in[k:]) >> (position & 7)
		}
		v := uint32(0)
		for i := range 4 {
			if k+i < len(in) {
				v |= uint32(in[k+i]) << (8 * i)
			}
		}
		return v >> (position & 7)
	}
	log = uint(peek()&15) + 5
	position = 4
	if log > maxLog {
		return nil, 0, 0, "too many states"
	}
	remaining, width := 1<<log+1, log+1
	symbol := 0
	clear(d.counts[:])
	for remaining > 1 {
		if symbol >= symbols || position > 8*len(in) {
			return nil, 0, 0, "too many symbols, or truncated"
		}
		threshold := 1 << (width - 1)
		short := 2*threshold - 1 - remaining
		v := int(peek())
		count := v & (threshold - 1)
		if count < short {
			position += int(width - 1)
		} else {
			if count = v & (2*threshold - 1); count >= threshold {
				count -= short
			}
			position += int(width)
		}
		count-- // -1 stands for a probability below one state
		d.counts[symbol] = int16(count)
		symbol++
		remaining -= max(count, -count)
		for count == 0 {
			zeros := int(peek() & 3)
			position += 2
			symbol += zeros
			if zeros < 3 || symbol > symbols {
				break
			}
		}
		for remaining > 1 && remaining < 1<<(width-1) {
			width--
		}
	}
	read = (position + 7) / 8
	if remaining != 1 || symbol > symbols || read > len(in) {
		return nil, 0, 0, "counts do not add up, or truncated"
	}
	return d.counts[:symbol], log, read, ""
}

// values has, by kind of symbol, the parts of entries that are the same in all tables. widths has the number of bits of
// numbers, less one.
var values, widths = func() (v [3][64]entry, w [2 * tableSize]uint8) {
	for i, c := range codes {
		for s := range c.extra {
			v[i][s] = makeEntry(i, c.base[s], c.extra[s])
		}
	}
	for i := range w {
		w[i] = uint8(max(1, bits.Len(uint(i))) - 1)
	}
	return v, w
}()

// build makes table k of the counts of its symbols.
func (d *Decoder) build(k int, counts []int16, log uint) {
	var symbols [tableSize]uint8
	d.tables[k] = fseTable{defined: true, log: log}
	spread(d.entries[k][:1<<log], &symbols, counts, log, &values[k])
}

// spread spreads symbols over entries, which are all states, in the order that the format wants (RFC 8878, 4.1.1).
// values has the parts of the entries of a symbol that are the same in all its states. symbols gets the symbol of each
// state.
func spread(entries []entry, symbols *[tableSize]uint8, counts []int16, log uint, values *[64]entry) {
	size := len(entries)
	var (
		next [64]uint16
		list [tableSize + 8]uint8 // symbols as often as they are to be spread
		n    int
	)
	high := size - 1
	for s, count := range counts {
		next[s] = uint16(max(count, 1))
		for k := 0; k < int(count); k += 8 {
			binary.LittleEndian.PutUint64(list[n+k:], uint64(s)*0x0101010101010101)
		}
		n += max(int(count), 0)
		high -= int(uint16(count) >> 15) // -1, a state at the end
	}
	step, at, k := size>>1+size>>3+3, 0, 0
	for range size { // without branches: a symbol that is put behind high is put again
		symbols[at%tableSize] = list[k%tableSize]
		k += int(uint(at-high-1) >> 63)
		at = (at + step) & (size - 1)
	}
	for s, last := 0, size-1; last > high; s++ {
		if counts[s] == -1 {
			symbols[last] = uint8(s)
			last--
		}
	}
	for i := range entries {
		s := symbols[i%tableSize] % 64
		x := next[s]
		next[s] = x + 1
		width := uint8(log) - widths[x%(2*tableSize)]
		entries[i] = values[s] + entry(x<<(width&15)-uint16(size))<<19 + entry(width)*0x101
	}
}
