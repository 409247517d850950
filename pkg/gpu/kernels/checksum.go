package kernels

import (
	"encoding/binary"
	"fmt"

	"strata/pkg/gpu"
)

// Checksum is a kind of checksum.
type Checksum int

// CRC-32 of RFC 1952, Adler-32 of RFC 1950, and XXH64 with seed 0.
const (
	CRC32 Checksum = iota
	Adler32
	XXH64
)

// segment is the length of the parts of CRC-32 and Adler-32 that a warp makes.
const segment = 16384

// Checksums queues the computation of checksums of byte ranges. got is called for each once the stream has
// been waited for; Wait returns its error. Until then it holds device and page-locked memory of 24 bytes per
// range and 8 bytes per 16384 bytes of data; for XXH64, 8 bytes per range.
func Checksums(s *gpu.Stream, kind Checksum, ranges []gpu.Span, got func(i int, sum uint64) error) error {
	if len(ranges) == 0 {
		return nil
	}
	name, results := [...]string{"crc32_segments", "adler32_segments", "xxh64_ranges"}[kind], 0
	parts := func(n int64) int {
		if kind == XXH64 {
			return 1
		}
		return int((n + segment - 1) / segment)
	}
	most := 1
	for _, r := range ranges {
		results += parts(r.Bytes())
		most = max(most, parts(r.Bytes()))
	}
	rows := 24 * len(ranges)
	host, err := s.Device().Host(rows + 8*results)
	if err != nil {
		return err
	}
	s.After(host.Release)
	table, err := s.Device().Memory().Get(int64(rows + 8*results))
	if err != nil {
		return err
	}
	s.Release(table)
	first := 0
	for i, r := range ranges {
		row := host.B[24*i:]
		binary.LittleEndian.PutUint64(row, r.Address()-table.Address())
		binary.LittleEndian.PutUint64(row[8:], uint64(r.Bytes()))
		binary.LittleEndian.PutUint64(row[16:], uint64(first))
		first += parts(r.Bytes())
	}
	s.Upload(table.Span, host.B[:rows])
	g := blocks(32 * int64(most))
	g.grid[1] = upTo(len(ranges))
	if kind == XXH64 {
		g = shape{gpu.Dim{(4*len(ranges) + 31) / 32, 1, 1}, gpu.Dim{32, 1, 1}}
	}
	out := table.From(int64(rows), int64(8*results))
	if results > 0 {
		if err := queue(s, "checksum", name, g, table, table, out, int64(len(ranges))); err != nil {
			return err
		}
		s.Download(host.B[rows:], out)
	}
	s.Check(func() error {
		at := host.B[rows:]
		for i, r := range ranges {
			n := parts(r.Bytes())
			if err := got(i, together(kind, at[:8*n], r.Bytes())); err != nil {
				return err
			}
			at = at[8*n:]
		}
		return nil
	})
	return nil
}

// together combines the checksums of segments into the checksum of all n bytes.
func together(kind Checksum, parts []byte, n int64) uint64 {
	const base = 65521 // of Adler-32
	crc := ^uint32(0)
	a, b := uint64(1), uint64(0)
	for at := int64(0); len(parts) > 0; parts, at = parts[8:], at+segment {
		x, y := binary.LittleEndian.Uint32(parts), binary.LittleEndian.Uint32(parts[4:])
		length := min(segment, n-at)
		switch kind {
		case XXH64:
			return uint64(y)<<32 | uint64(x)
		case CRC32:
			crc = shiftCRC(crc, length) ^ x
		case Adler32:
			b = (b + uint64(length)*a + uint64(y)) % base
			a = (a + uint64(x)) % base
		}
	}
	if kind == Adler32 {
		return b<<16 | a
	}
	return uint64(^crc)
}

// A CRC-32 is a polynomial over the field of two elements, modulo that of the CRC; the
// highest bit of a word is the coefficient of x⁰. That of bytes with n more behind them is
// that of the bytes times x⁸ⁿ.

const polynomial = 0xedb88320

func timesCRC(a, b uint32) (product uint32) {
	for ; a != 0; a <<= 1 {
		if a>>31 != 0 {
			product ^= b
		}
		b = b>>1 ^ b&1*polynomial
	}
	return product
}

// powers are x⁸, x¹⁶, x³², …
var powers = func() (p [40]uint32) {
	p[0] = 1 << (31 - 8)
	for i := range p[1:] {
		p[i+1] = timesCRC(p[i], p[i])
	}
	return p
}()

// bySegment is x to eight times the length of a segment.
var bySegment = powers[14]

func shiftCRC(c uint32, n int64) uint32 {
	if n == segment {
		return timesCRC(c, bySegment)
	}
	for i := 0; n > 0; i, n = i+1, n>>1 {
		if n&1 != 0 {
			c = timesCRC(c, powers[i])
		}
	}
	return c
}

func (k Checksum) String() string {
	if k < CRC32 || k > XXH64 {
		return fmt.Sprintf("checksum %d", int(k))
	}
	return [...]string{"CRC-32", "Adler-32", "XXH64"}[k]
}
