//go:build !nocuda

package kernels

import (
	"fmt"
	"testing"

	"strata/pkg/dtype"
	"strata/pkg/ngff"
)

func TestDownsampler(t *testing.T) {
	each(t, downsample[uint8], downsample[int8], downsample[uint16], downsample[int16], downsample[uint32], downsample[int32],
		downsample[uint64], downsample[int64], downsample[float32], downsample[float64])
}

func downsample[T dtype.Element](t *testing.T) {
	b := open(t)
	axes := []ngff.Axis{{Name: "z", Type: ngff.TypeSpace}, {Name: "y", Type: ngff.TypeSpace}, {Name: "x", Type: ngff.TypeSpace}}
	for _, c := range []struct {
		shape [3]int
		z     bool
	}{
		{[3]int{4, 6, 64}, true}, {[3]int{2, 4, 1044}, true}, {[3]int{6, 2, 38}, true}, // even, with rows that divide into 16 bytes and others
		{[3]int{5, 7, 9}, true}, {[3]int{4, 9, 70}, true}, {[3]int{7, 4, 64}, true}, {[3]int{3, 3, 3}, true}, {[3]int{2, 40, 71}, true},
		{[3]int{3, 6, 32}, false}, {[3]int{1, 7, 30}, false}, {[3]int{2, 2, 2}, false},
	} {
		v := sample[T](c.shape[0] * c.shape[1] * c.shape[2])
		as := axes
		if !c.z {
			as = append([]ngff.Axis{{Name: "c", Type: ngff.TypeChannel}}, axes[1:]...)
		}
		raw, shape, err := ngff.Downsample(dtype.Of[T](), dtype.Bytes(v), c.shape[:], as)
		b.check(err)
		d, err := NewDownsampler(b.stream, c.shape, c.z, dtype.Of[T]())
		b.check(err)
		if d.Out() != [3]int(shape) {
			t.Fatalf("shape %v of %v, want %v", d.Out(), c.shape, shape)
		}
		if got, want := DownsamplerBytes(c.shape, c.z, dtype.Of[T]()), int64(0); d.buffer != nil {
			if want = d.buffer.Bytes(); got != want {
				t.Errorf("%v: %d bytes of taps, announced were %d", c.shape, want, got)
			}
		} else if got != want {
			t.Errorf("%v: no taps, announced were %d bytes", c.shape, got)
		}
		dst := b.alloc(len(raw))
		b.check(d.Run(b.stream, dst, upload(b, v)))
		equal(t, fmt.Sprint(c.shape), download[T](b, dst), dtype.Slice[T](raw))
		d.Release()
	}
	if _, err := NewDownsampler(b.stream, [3]int{1, 4, 4}, true, dtype.Of[T]()); err == nil {
		t.Error("an axis of one sample was halved")
	}
}
