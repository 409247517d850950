package inflate

import (
	"bytes"
	"context"
	"encoding/binary"
	"sync"
)

// decoder is the state between two symbols, and the tables of a dynamic block.
type decoder struct {
	ctx      context.Context
	src, dst []byte
	in, out  int    // next byte of src to go into buf, next byte of dst
	start    int    // of the current stream in dst: no distance reaches back beyond it
	buf      uint64 // the bits between the last symbol and in, lowest first; above them 0, or what follows
	count    uint   // how many they are
	dynamic  tables
	lens     [288 + 32]uint8
}

var pool = sync.Pool{New: func() any { return new(decoder) }}

// newDecoder takes a decoder from the pool; release gives it back.
func newDecoder(ctx context.Context, dst, src []byte) *decoder {
	d := pool.Get().(*decoder)
	d.ctx, d.src, d.dst = ctx, src, dst
	d.in, d.out, d.start, d.buf, d.count = 0, 0, 0, 0, 0
	return d
}

func (d *decoder) release() {
	d.ctx, d.src, d.dst = nil, nil, nil
	pool.Put(d)
}

// refill fills buf to 56 bits or more, or with all that is left.
func (d *decoder) refill() {
	if len(d.src)-d.in >= 8 {
		d.buf |= binary.LittleEndian.Uint64(d.src[d.in:]) << (d.count & 63)
		d.in += int((63 - d.count) >> 3)
		d.count |= 56
		return
	}
	for d.count <= 56 && d.in < len(d.src) {
		d.buf |= uint64(d.src[d.in]) << d.count
		d.in++
		d.count += 8
	}
}

// take drops n bits and reports whether they existed.
func (d *decoder) take(n uint) bool {
	if n > d.count {
		return false
	}
	d.buf >>= n
	d.count -= n
	return true
}

// bits reads an n-bit number, n ≤ 16.
func (d *decoder) bits(n uint) (int, error) {
	d.refill()
	v := int(d.buf & (1<<n - 1))
	if !d.take(n) {
		return 0, d.truncated()
	}
	return v, nil
}

// align drops the rest of the current byte and empties buf.
func (d *decoder) align() {
	d.in -= int(d.count / 8)
	d.buf, d.count = 0, 0
}

// stream decodes blocks up to the final one and leaves in at the first byte after it.
func (d *decoder) stream() error {
	for {
		if err := d.ctx.Err(); err != nil {
			return err
		}
		head, err := d.bits(3)
		if err != nil {
			return err
		}
		switch head >> 1 {
		case 0:
			err = d.stored()
		case 1:
			err = d.symbols(fixed())
		case 2:
			if err = d.readTables(); err == nil {
				err = d.symbols(&d.dynamic)
			}
		default:
			err = d.corrupt("block type 3, of 0, 1 and 2")
		}
		if err != nil {
			return err
		}
		if head&1 != 0 {
			d.align()
			return nil
		}
	}
}

// stored copies a block without compression (RFC 1951, 3.2.4).
func (d *decoder) stored() error {
	d.align()
	if len(d.src)-d.in < 4 {
		return d.truncated()
	}
	n, not := binary.LittleEndian.Uint16(d.src[d.in:]), binary.LittleEndian.Uint16(d.src[d.in+2:])
	d.in += 4
	if n != ^not {
		return d.corrupt("length %#04x of a stored block and its complement %#04x do not match", n, not)
	}
	if len(d.src)-d.in < int(n) {
		return d.truncated()
	}
	if room := len(d.dst) - d.out; room < int(n) {
		d.out += copy(d.dst[d.out:], d.src[d.in:d.in+room])
		return d.tooLong()
	}
	copy(d.dst[d.out:], d.src[d.in:d.in+int(n)])
	d.in += int(n)
	d.out += int(n)
	return nil
}

// fixed returns the tables of RFC 1951, 3.2.6.
var fixed = sync.OnceValue(func() *tables {
	var lens [288]uint8
	for i := range lens {
		switch {
		case i < 144:
			lens[i] = 8
		case i < 256:
			lens[i] = 9
		case i < 280:
			lens[i] = 7
		default:
			lens[i] = 8
		}
	}
	t := new(tables)
	var words, unused [288]uint16
	build(t.lit[:], litBits, lens[:], litSymbols[:], false, &words)
	build(t.dist[:], distBits, bytes.Repeat([]byte{5}, 32), distSymbols[:], false, &unused)
	t.joinMatches(lens[:], &words)
	return t
})

// The order in which the lengths of the code for lengths are stored (RFC 1951, 3.2.7).
var lenOrder = [19]uint8{16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15}

// readTables reads the codes of a dynamic block (RFC 1951, 3.2.7).
func (d *decoder) readTables() error {
	head, err := d.bits(14)
	if err != nil {
		return err
	}
	nlit, ndist, nlen := head&31+257, head>>5&31+1, head>>10+4
	if nlit > 286 || ndist > 30 {
		return d.corrupt("%d literal and length codes and %d distance codes, of at most 286 and 30", nlit, ndist)
	}
	var lenLens [19]uint8
	for i := range nlen {
		l, err := d.bits(3)
		if err != nil {
			return err
		}
		lenLens[lenOrder[i]] = uint8(l)
	}
	var table [1 << 7]uint32
	var words [288]uint16
	if !build(table[:], 7, lenLens[:], lenSymbols[:], false, &words) {
		return d.corrupt("the code for code lengths is over-subscribed or incomplete")
	}
	lens := d.lens[:nlit+ndist]
	for i := 0; i < len(lens); {
		d.refill()
		e := table[d.buf&(1<<7-1)]
		n := uint(e & entryBits)
		symbol, repeat, value := e>>entryValue, 1, uint8(e>>entryValue)
		switch symbol {
		case 16:
			if i == 0 {
				d.take(n)
				return d.corrupt("the first code length repeats the one before it")
			}
			repeat, value = 3+int(d.buf>>n&3), lens[i-1]
			n += 2
		case 17:
			repeat, value = 3+int(d.buf>>n&7), 0
			n += 3
		case 18:
			repeat, value = 11+int(d.buf>>n&127), 0
			n += 7
		}
		if !d.take(n) {
			return d.truncated()
		}
		if repeat > len(lens)-i {
			return d.corrupt("more code lengths than the %d announced", len(lens))
		}
		for range repeat {
			lens[i] = value
			i++
		}
	}
	lit, dist := lens[:nlit], lens[nlit:]
	if lit[256] == 0 {
		return d.corrupt("no code for the end of the block")
	}
	if !build(d.dynamic.dist[:], distBits, dist, distSymbols[:], true, &words) {
		return d.corrupt("the code for distances is over-subscribed or incomplete")
	}
	if !build(d.dynamic.lit[:], litBits, lit, litSymbols[:], true, &words) {
		return d.corrupt("the code for literals and lengths is over-subscribed or incomplete")
	}
	d.dynamic.joinMatches(lit, &words)
	return nil
}

// symbols decodes literals and matches up to the end of the block: fast while there is ample input and room,
// then with checks.
func (d *decoder) symbols(t *tables) error {
	for {
		done, err := d.fast(t)
		if done || err != nil {
			return err
		}
		if d.in > len(d.src)-fastIn || d.out > len(d.dst)-fastOut {
			break
		}
		if err := d.ctx.Err(); err != nil {
			return err
		}
	}
	for {
		if done, err := d.symbol(t); done || err != nil {
			return err
		}
	}
}

// symbol decodes one table entry, checking every step. Bits missing at the end of src read as 0.
func (d *decoder) symbol(t *tables) (done bool, err error) {
	d.refill()
	e := t.lit[d.buf&(1<<litBits-1)]
	if e&entryLink == entryLink {
		if !d.take(litBits) {
			return false, d.truncated()
		}
		e = t.lit[uint(e>>entryValue)+uint(d.buf)&(1<<(e>>entryWord&15)-1)]
	}
	bits := d.buf
	if !d.take(uint(e & entryBits)) {
		return false, d.truncated()
	}
	if e&entryLiteral != 0 {
		if d.out == len(d.dst) {
			return false, d.tooLong()
		}
		d.dst[d.out] = byte(e >> entryValue)
		d.out++
		return false, nil
	}
	if e&entryExcept != 0 {
		if e&entryEnd == entryEnd {
			return true, nil
		}
		return false, d.corrupt("no such literal or length code")
	}
	if e&entryMatch != 0 {
		return false, d.match(int(e>>entryValue&255)+3, distanceOf(e, bits))
	}
	length := int(e>>entryValue) + extraOf(e, bits)

	d.refill()
	e = t.dist[d.buf&(1<<distBits-1)]
	if e&entryLink == entryLink {
		if !d.take(distBits) {
			return false, d.truncated()
		}
		e = t.dist[uint(e>>entryValue)+uint(d.buf)&(1<<(e>>entryWord&15)-1)]
	}
	bits = d.buf
	if !d.take(uint(e & entryBits)) {
		return false, d.truncated()
	}
	if e&entryExcept != 0 {
		return false, d.corrupt("no such distance code")
	}
	return false, d.match(length, distanceOf(e, bits))
}

// match appends length bytes that lie distance bytes back, as far as there is room.
func (d *decoder) match(length, distance int) error {
	if distance > d.out-d.start {
		return d.tooFar(distance, d.out)
	}
	for range min(length, len(d.dst)-d.out) {
		d.dst[d.out] = d.dst[d.out-distance]
		d.out++
		length--
	}
	if length > 0 {
		return d.tooLong()
	}
	return nil
}

func (d *decoder) tooFar(distance, out int) error {
	return d.corrupt("distance %d with %d bytes decoded", distance, out-d.start)
}

// extraOf returns the extra bits of an entry; bits begins with the code word.
func extraOf(e uint32, bits uint64) int {
	return int(bits & (1<<(e&entryBits) - 1) >> (e >> entryWord & entryWordMask))
}

// distanceOf returns the distance of a distance or match entry.
func distanceOf(e uint32, bits uint64) int {
	return int(distBases[e>>entrySymbol&31]) + extraOf(e, bits)
}
