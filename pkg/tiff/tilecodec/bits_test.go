package tilecodec

import (
	"math"
	"testing"

	"strata/pkg/dtype"
)

// Numbers of three bytes are in the file's byte order, as libtiff has them; floats of them are those of Technical Notes
// 3.
func TestThreeBytes(t *testing.T) {
	little := []byte{0x01, 0x02, 0x03, 0xfe, 0xff, 0xff, 0x00, 0x00, 0x80}
	big := []byte{0x03, 0x02, 0x01, 0xff, 0xff, 0xfe, 0x80, 0x00, 0x00}
	floats := []struct {
		bits uint32
		want float64
	}{
		{0, 0}, {0x3f0000, 1}, {0xbf8000, -1.5}, {0x7effff, math.Ldexp(2-math.Ldexp(1, -16), 63)}, {0x010000, math.Ldexp(1, -62)}, {1, math.Ldexp(1, -78)},
		{0x7f0000, math.Inf(1)}, {0xff0000, math.Inf(-1)},
	}
	decode := func(typ dtype.Type, src []byte, bigEndian bool) []byte {
		f := &Format{Compression: None, Type: typ, Bits: 24, Width: len(src) / 3, Height: 1, BigEndian: bigEndian, Photometric: 1}
		if err := f.Check(); err != nil {
			t.Fatal(err)
		}
		dst := make([]byte, f.Bytes())
		if err := f.Decode(t.Context(), &Scratch{}, dst, src, 1); err != nil {
			t.Fatal(err)
		}
		return dst
	}
	for _, order := range []bool{false, true} {
		src := map[bool][]byte{false: little, true: big}[order]
		if v := dtype.Slice[uint32](decode(dtype.Uint32, src, order)); v[0] != 0x030201 || v[1] != 0xfffffe || v[2] != 0x800000 {
			t.Errorf("%x", v)
		}
		if v := dtype.Slice[int32](decode(dtype.Int32, src, order)); v[0] != 0x030201 || v[1] != -2 || v[2] != -1<<23 {
			t.Errorf("%d", v)
		}
		for _, c := range floats {
			b := []byte{byte(c.bits), byte(c.bits >> 8), byte(c.bits >> 16)}
			if order {
				b[0], b[2] = b[2], b[0]
			}
			if v := dtype.Slice[float32](decode(dtype.Float32, b, order)); float64(v[0]) != c.want {
				t.Errorf("%06x is %g, want %g", c.bits, v[0], c.want)
			}
		}
	}
	if v := dtype.Slice[float32](decode(dtype.Float32, []byte{1, 0, 0x7f}, false)); !math.IsNaN(float64(v[0])) {
		t.Error(v)
	}
}
