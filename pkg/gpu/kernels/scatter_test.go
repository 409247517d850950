//go:build !nocuda

package kernels

import (
	"bytes"
	"encoding/binary"
	"slices"
	"strings"
	"testing"
)

// Boxes of 1 to 5 dimensions, of all element sizes, copied and filled, against element
// by element.
func TestScatter(t *testing.T) {
	b := open(t)
	type box struct{ start, at, shape []int } // in the source (nil: filled), in the region
	cases := []struct {
		from, to []int
		boxes    []box
	}{
		{[]int{100}, []int{70}, []box{{[]int{3}, []int{0}, []int{33}}, {[]int{64}, []int{40}, []int{16}}, {nil, []int{60}, []int{10}}}},
		{[]int{4, 32}, []int{6, 32}, []box{{[]int{0, 0}, []int{1, 0}, []int{4, 32}}, {nil, []int{5, 0}, []int{1, 32}}, {nil, []int{0, 0}, []int{1, 0}}}},
		{[]int{3, 8, 16}, []int{5, 9, 40}, []box{{[]int{0, 0, 0}, []int{0, 0, 8}, []int{3, 8, 16}}, {[]int{1, 2, 3}, []int{3, 1, 30}, []int{2, 5, 9}}, {nil, []int{4, 0, 1}, []int{1, 9, 20}}}},
		{[]int{2, 3, 2, 5}, []int{2, 3, 3, 5}, []box{{[]int{0, 0, 0, 0}, []int{0, 0, 1, 0}, []int{2, 3, 2, 5}}}},
		{[]int{2, 2, 3, 4, 6}, []int{3, 3, 4, 5, 7}, []box{{[]int{0, 1, 0, 1, 0}, []int{1, 0, 1, 0, 1}, []int{2, 1, 2, 3, 6}}, {nil, []int{0, 0, 0, 0, 0}, []int{1, 2, 2, 2, 2}}}},
	}
	for _, c := range cases {
		for _, size := range []int{1, 2, 4, 8, 16} {
			volume := func(shape []int) []byte {
				n := size
				for _, s := range shape {
					n *= s
				}
				v := make([]byte, n)
				for i := range v {
					v[i] = byte(i*7 + i>>8 + 1)
				}
				return v
			}
			src, want := volume(c.from), bytes.Repeat([]byte{0xee}, len(volume(c.to)))
			fill := volume([]int{1})
			in, out := upload(b, src), upload(b, want)
			fs, ts := Strides(c.from, size), Strides(c.to, size)
			var list []Part
			for _, x := range c.boxes {
				k := Part{Shape: x.shape, Src: -1, To: ts}
				if x.start != nil {
					k.Src, k.From = 0, fs
				}
				for d := range x.shape {
					k.Dst += int64(x.at[d]) * ts[d]
					if x.start != nil {
						k.Src += int64(x.start[d]) * fs[d]
					}
				}
				list = append(list, k)
				copyElements(want, src, fill, k, 0, k.Dst, k.Src)
			}
			host, err := b.device.Host(int(ScatterTable(len(list))))
			if err != nil {
				t.Fatal(err)
			}
			table := b.alloc(int(ScatterTable(len(list))))
			b.check(Scatter(b.stream, out, in, list, fill, host.B, table))
			if got := download[uint8](b, out); !slices.Equal(got, want) {
				t.Errorf("%v, elements of %d bytes: wrong", c.boxes, size)
			}
			host.Release()
		}
	}
}

// A source can be gone through backwards, and be one row or one element for all.
func TestScatterReversed(t *testing.T) {
	b := open(t)
	src := make([]uint16, 4*6)
	for i := range src {
		src[i] = uint16(i * 777)
	}
	want := make([]uint16, 5*6*2)
	for y := range 4 {
		for x := range 6 {
			want[y*6+x] = src[(3-y)*6+x]              // rows from the last one on
			want[30+y*6+x] = src[y*6+5-x]             // columns from the last one on
			want[24+x], want[54+x] = src[6+x], src[9] // a row again, an element for all
		}
	}
	in, out := upload(b, src), b.alloc(2*len(want))
	parts := []Part{
		{Shape: []int{4, 6}, Src: 36, From: []int64{-12, 2}, To: []int64{12, 2}},
		{Shape: []int{4, 6, 1}, Src: 10, Dst: 60, From: []int64{12, -2, 0}, To: []int64{12, 2, 0}},
		{Shape: []int{1, 6}, Src: 12, Dst: 48, From: []int64{0, 2}, To: []int64{12, 2}},
		{Shape: []int{6, 1}, Src: 18, Dst: 108, From: []int64{0, 0}, To: []int64{2, 0}},
	}
	host, err := b.device.Host(int(ScatterTable(len(parts))))
	if err != nil {
		t.Fatal(err)
	}
	defer host.Release()
	b.check(Scatter(b.stream, out, in, parts, make([]byte, 2), host.B, b.alloc(int(ScatterTable(len(parts))))))
	if got := download[uint16](b, out); !slices.Equal(got, want) {
		t.Errorf("%d, want %d", got, want)
	}
	parts[0].Src = 34
	parts[0].From[0] = -14
	if err := Scatter(b.stream, out, in, parts[:1], make([]byte, 2), host.B, b.alloc(256)); err == nil {
		t.Error("a source that begins before its memory")
	}
	b.check(b.stream.Wait())
}

// copyElements does a box from dimension d on.
func copyElements(dst, src, fill []byte, b Part, d int, to, from int64) {
	if d == len(b.Shape) {
		if b.Src < 0 {
			copy(dst[to:], fill)
		} else {
			copy(dst[to:to+int64(len(fill))], src[from:])
		}
		return
	}
	for i := range b.Shape[d] {
		f := from
		if b.Src >= 0 {
			f += int64(i) * b.From[d]
		}
		copyElements(dst, src, fill, b, d+1, to+int64(i)*b.To[d], f)
	}
}

// Boxes that do not lie where they should are refused.
func TestScatterRefuses(t *testing.T) {
	b := open(t)
	in, out, table := b.alloc(64), b.alloc(64), b.alloc(256)
	host := binary.LittleEndian.AppendUint64(nil, 0)
	for want, k := range map[string]Part{
		"ends at byte 72":            {Shape: []int{4, 2}, Src: 0, From: []int64{8, 8}, To: []int64{20, 4}},
		"its source at 66":           {Shape: []int{2}, Src: 50, From: []int64{8}, To: []int64{8}},
		"more than 5 dimensions":     {Shape: []int{2, 2, 2, 2, 2, 2}, Src: -1, To: []int64{13, 11, 9, 5, 3, 1}},
		"1 dimensions with 0 and 1 ": {Shape: []int{1}, To: []int64{1}},
		"a table of 8 bytes":         {Shape: []int{1}, Src: -1, To: []int64{1}},
	} {
		size := 8
		if strings.HasPrefix(want, "more") {
			size = 1
		}
		err := Scatter(b.stream, out, in, []Part{k}, make([]byte, size), host, table)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
