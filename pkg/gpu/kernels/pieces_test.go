//go:build !nocuda

package kernels

import (
	"testing"
)

func TestCopyPieces(t *testing.T) {
	b := open(t)
	v := sample[uint8](3000)
	src, dst := upload(b, v), b.alloc(9000)
	b.stream.Zero(dst)
	want := make([]uint8, 9000)
	var ranges []Range
	to := 0
	for i := range 150 {
		n, from := []int{0, 1, 15, 16, 17, 31, 33, 100, 203}[i%9], i*7%64+i%5*500
		copy(want[to:], v[from:from+n])
		ranges = append(ranges, Range{dst.From(int64(to), int64(n)), src.From(int64(from), int64(n))})
		to += n + i/9%16
	}
	// at the ends of the allocation: nothing beside the range is read
	whole := upload(b, v[:77])
	copy(want[8000:], v[:77])
	copy(want[8101:], v[1:77])
	ranges = append(ranges, Range{dst.From(8000, 77), whole}, Range{dst.From(8101, 76), whole.From(1, 76)})
	b.check(CopyPieces(b.stream, ranges))
	b.check(CopyPieces(b.stream, nil))
	equal(t, "ranges", download[uint8](b, dst), want)
	if err := CopyPieces(b.stream, []Range{{dst.From(0, 3), src.From(0, 4)}}); err == nil {
		t.Error("four bytes were copied to three")
	}
}
