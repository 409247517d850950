//go:build !nocuda

package kernels

import (
	"fmt"
	"hash/adler32"
	"hash/crc32"
	"testing"

	"github.com/cespare/xxhash/v2"

	"strata/pkg/gpu"
)

// Ranges of all lengths around those of a word, a row of words, a stripe, a batch of them and a segment, at odd
// addresses; some end where the memory ends.
func TestChecksums(t *testing.T) {
	b := open(t)
	v := make([]uint8, 70001)
	for i := range v {
		v[i] = uint8(i*i>>3 + i>>9)
	}
	data := upload(b, v)
	type part struct{ from, length int }
	var parts []part
	for i, n := range []int{0, 1, 3, 4, 7, 8, 31, 32, 33, 63, 100, 127, 128, 129, 255, 256, 257, 288, 320, 544, 545, 4095, 12345, 16383, 16384, 16385, 16387, 32769, 65001} {
		parts = append(parts, part{i * 5, n}, part{len(v) - n, n})
	}
	for n := range 8 {
		parts = append(parts, part{n, 2}, part{n, 300}, part{n, 16384 - n})
	}
	var ranges []gpu.Span
	for _, p := range parts {
		ranges = append(ranges, data.From(int64(p.from), int64(p.length)))
	}
	for _, kind := range []Checksum{CRC32, Adler32, XXH64} {
		calls := 0
		b.check(Checksums(b.stream, kind, ranges, func(i int, sum uint64) error {
			bytes, want := v[parts[i].from:][:parts[i].length], uint64(0)
			switch kind {
			case CRC32:
				want = uint64(crc32.ChecksumIEEE(bytes))
			case Adler32:
				want = uint64(adler32.Checksum(bytes))
			case XXH64:
				want = xxhash.Sum64(bytes)
			}
			if sum != want {
				t.Errorf("%s of %v: %#x, want %#x", kind, parts[i], sum, want)
			}
			calls++
			return nil
		}))
		b.check(b.stream.Wait())
		if calls != len(parts) {
			t.Errorf("%s: %d sums", kind, calls)
		}
	}
	b.check(Checksums(b.stream, CRC32, ranges[9:], func(int, uint64) error { return fmt.Errorf("not as it was") }))
	if err := b.stream.Wait(); err == nil || err.Error() != "not as it was" {
		t.Error(err)
	}
}
