//go:build !nocuda

package kernels

import "testing"

func TestCountSet(t *testing.T) {
	b := open(t)
	count := b.alloc(8)
	for _, n := range []int{1, 15, 16, 17, 4096, 70_003} {
		for _, at := range []int{-1, 0, n / 2, n - 1} {
			v := make([]uint8, n)
			if at >= 0 {
				v[at] = 1
			}
			b.stream.Zero(count)
			b.check(CountSet(b.stream, count, upload(b, v)))
			if got := download[uint64](b, count)[0]; (got != 0) != (at >= 0) {
				t.Errorf("of %d bytes, of which %d is set, %d are counted", n, at, got)
			}
		}
	}
}
