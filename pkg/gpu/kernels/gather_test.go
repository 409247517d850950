//go:build !nocuda

package kernels

import (
	"fmt"
	"testing"

	"strata/pkg/dtype"
)

func TestGather(t *testing.T) {
	each(t, gather[uint8], gather[uint16], gather[float32], gather[int64])
	b := open(t)
	if err := Gather(b.stream, b.alloc(9), b.alloc(9), [3]int{1, 1, 3}, [3]int{1, 1, 3}, 0, 0, make([]byte, 3)); err == nil {
		t.Error("elements of three bytes were gathered")
	}
	if err := Gather(b.stream, b.alloc(9), b.alloc(9), [3]int{1, 1, 3}, [3]int{1, 1, 4}, 0, 0, make([]byte, 1)); err == nil {
		t.Error("a box was gathered that is larger than the volume")
	}
}

func gather[T dtype.Element](t *testing.T) {
	b := open(t)
	for _, c := range []struct{ src, at, box, out [3]int }{
		{[3]int{3, 8, 64}, [3]int{0, 0, 0}, [3]int{2, 4, 32}, [3]int{2, 4, 32}},
		{[3]int{3, 8, 64}, [3]int{1, 4, 32}, [3]int{2, 4, 32}, [3]int{4, 4, 48}}, // 16 bytes at a time, and behind the box
		{[3]int{3, 8, 64}, [3]int{1, 4, 33}, [3]int{2, 3, 31}, [3]int{3, 5, 33}},
		{[3]int{1, 5, 7}, [3]int{0, 3, 6}, [3]int{1, 2, 1}, [3]int{2, 2, 2}},
		{[3]int{1, 300, 2}, [3]int{0, 0, 0}, [3]int{1, 300, 2}, [3]int{1, 300, 300}},
	} {
		v, fill := sample[T](c.src[0]*c.src[1]*c.src[2]), T(42)
		want := make([]T, c.out[0]*c.out[1]*c.out[2])
		for i := range want {
			x, y, z := i%c.out[2], i/c.out[2]%c.out[1], i/c.out[2]/c.out[1]
			if want[i] = fill; z < c.box[0] && y < c.box[1] && x < c.box[2] {
				want[i] = v[((z+c.at[0])*c.src[1]+y+c.at[1])*c.src[2]+x+c.at[2]]
			}
		}
		size := int64(dtype.Of[T]().Size())
		src, dst := upload(b, v), b.alloc(len(want)*int(size))
		row, plane := int64(c.src[2]), int64(c.src[1])*int64(c.src[2])
		from := (int64(c.at[0])*plane + int64(c.at[1])*row + int64(c.at[2])) * size
		b.check(Gather(b.stream, dst, src.From(from, src.Bytes()-from), c.out, c.box, plane, row, dtype.Bytes([]T{fill})))
		equal(t, fmt.Sprint(c), download[T](b, dst), want)
	}
}
