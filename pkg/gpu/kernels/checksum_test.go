//go:build !nocuda

package kernels

import (
	"fmt"
	"hash/adler32"
	"hash/crc32"
	"testing"

	"strata/pkg/gpu"
)

// Ranges of all lengths around those of a step, at odd addresses. The sums of XXH64 are of
// its reference implementation (xxhsum -H1) for the same bytes.
func TestChecksums(t *testing.T) {
	b := open(t)
	v := make([]uint8, 70000)
	for i := range v {
		v[i] = uint8(i*i>>3 + i>>9)
	}
	data := upload(b, v)
	lengths := []int{0, 1, 3, 4, 7, 8, 31, 32, 33, 63, 100, 4095, 4096, 4097, 8192, 12345, 65001}
	var ranges []gpu.Span
	for i, n := range lengths {
		ranges = append(ranges, data.From(int64(i*5), int64(n)))
	}
	for _, kind := range []Checksum{CRC32, Adler32, XXH64} {
		calls := 0
		b.check(Checksums(b.stream, kind, ranges, func(i int, sum uint64) error {
			bytes, want := v[i*5:i*5+lengths[i]], uint64(0)
			switch kind {
			case CRC32:
				want = uint64(crc32.ChecksumIEEE(bytes))
			case Adler32:
				want = uint64(adler32.Checksum(bytes))
			case XXH64:
				want = xxh64[i]
			}
			if sum != want {
				t.Errorf("%s of %d bytes: %#x, want %#x", kind, lengths[i], sum, want)
			}
			calls++
			return nil
		}))
		b.check(b.stream.Wait())
		if calls != len(lengths) {
			t.Errorf("%s: %d sums", kind, calls)
		}
	}
	b.check(Checksums(b.stream, CRC32, ranges[9:], func(int, uint64) error { return fmt.Errorf("not as it was") }))
	if err := b.stream.Wait(); err == nil || err.Error() != "not as it was" {
		t.Error(err)
	}
}

// xxh64 has the sums of the ranges of TestChecksums.
var xxh64 = []uint64{
	0xef46db3751d8e999, 0x1f25c8d0bc1f4bb6, 0xe8a12149e239c9ac, 0xa80a5a3bd04232fd,
	0xfed22251f5ce2f9c, 0xd46bcf86fc603075, 0xde416ad69389408b, 0xcc5801386da7f9a1,
	0xb5007f3e785308a2, 0xeed539e30ecca195, 0x41e6f55bbeebd929, 0xbe4130517e9df7c7,
	0x57cbdb24dda8e140, 0x9832e62d4b60092d, 0x6dd7428052919bf1, 0x96da2d5cda256e29,
	0x4de54aa20764dfb8,
}
