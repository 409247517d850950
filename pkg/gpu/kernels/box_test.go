//go:build !nocuda

package kernels

import (
	"slices"
	"testing"
)

// Boxes of all alignments come where they belong, and nothing else changes.
func TestCopyBox(t *testing.T) {
	b := open(t)
	for _, c := range []struct{ x, width, pitch, toX, toPitch int }{
		{0, 64, 64, 0, 64}, {16, 32, 64, 0, 32}, {8, 24, 64, 16, 40}, {4, 4, 60, 0, 4}, {2, 6, 64, 4, 12}, {3, 5, 61, 1, 7}, {0, 300, 301, 1, 302},
	} {
		const planes, rows, more = 3, 4, 2 // rows that are not copied
		from := make([]uint8, planes*(rows+more)*c.pitch)
		for i := range from {
			from[i] = byte(i*7 + 1)
		}
		to := make([]uint8, planes*rows*c.toPitch)
		src, dst := upload(b, from), upload(b, to)
		stride := (rows + more) * c.pitch
		n := int64(len(from) - c.x)
		b.check(CopyBox(b.stream, Brick{dst.From(int64(c.toX), int64(len(to)-c.toX)), int64(c.toPitch), int64(rows * c.toPitch)},
			Brick{src.From(int64(c.x), n), int64(c.pitch), int64(stride)}, planes, rows, int64(c.width)))
		for z := range planes {
			for y := range rows {
				copy(to[(z*rows+y)*c.toPitch+c.toX:][:c.width], from[z*stride+y*c.pitch+c.x:])
			}
		}
		if !slices.Equal(download[uint8](b, dst), to) {
			t.Errorf("%+v: wrong copy", c)
		}
	}
}
