//go:build !nocuda

package kernels

import (
	"fmt"
	"testing"

	"strata/pkg/dtype"
	"strata/pkg/gpu"
	"strata/pkg/ngff"
)

func TestHalving(t *testing.T) {
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
		h, err := HalvingOf(c.shape, c.z, dtype.Of[T]())
		b.check(err)
		if h.Out != [3]int(shape) {
			t.Fatalf("shape %v of %v, want %v", h.Out, c.shape, shape)
		}
		src := upload(b, v)
		halve[T](b, fmt.Sprint(c.shape), h, src, raw)

		// the same of a part, in a volume that has samples behind it
		for d := range h.Out {
			if n := h.Out[d]; h.Taps[d].Lo != nil && n > 2 {
				lo, hi := 1, n-1
				x := &h.Taps[d]
				h.Origin[d], h.Out[d] = int(x.Lo[lo]), hi-lo
				x.Lo, x.Hi, x.W0, x.W1 = x.Lo[lo:hi], x.Hi[lo:hi], x.W0[lo:hi], x.W1[lo:hi]
				h.In[d] = c.shape[d] - h.Origin[d]
			}
		}
		part, size := partOf(v, c.shape, h.Origin, h.In), dtype.Of[T]().Size()
		var want []byte
		for z := range h.Out[0] {
			for y := range h.Out[1] {
				from := [3]int{z, y, 0}
				for d := range from {
					if h.Out[d] < shape[d] {
						from[d]++
					}
				}
				at := ((from[0]*shape[1]+from[1])*shape[2] + from[2]) * size
				want = append(want, raw[at:at+h.Out[2]*size]...)
			}
		}
		halve[T](b, fmt.Sprint("part of ", c.shape), h, upload(b, part), want)
	}
	h, err := HalvingOf([3]int{4, 5, 6}, true, dtype.Of[T]())
	b.check(err)
	for what, f := range map[string]func(h *Halving){
		"taps":    func(h *Halving) { h.Out[2]++ },
		"outside": func(h *Halving) { h.In[1]-- },
		"before":  func(h *Halving) { h.Origin[1]++ },
		"table":   func(h *Halving) {},
	} {
		h := h
		f(&h)
		if err := h.Run(b.stream, b.alloc(4096), b.alloc(4096), nil, gpu.Span{}); err == nil {
			t.Errorf("%s: no error", what)
		}
	}
	if _, err := HalvingOf([3]int{1, 4, 4}, true, dtype.Of[T]()); err == nil {
		t.Error("an axis of one sample was halved")
	}
}

// partOf copies a box of a volume.
func partOf[T dtype.Element](v []T, shape, at, n [3]int) (out []T) {
	for z := range n[0] {
		for y := range n[1] {
			i := ((z+at[0])*shape[1]+y+at[1])*shape[2] + at[2]
			out = append(out, v[i:i+n[2]]...)
		}
	}
	return out
}

// halve compares what is made of src.
func halve[T dtype.Element](b *bench, what string, h Halving, src gpu.Span, want []byte) {
	b.t.Helper()
	var table []byte
	var onDevice gpu.Span
	if n := h.TableBytes(); n > 0 {
		host, err := b.stream.Device().Host(int(n))
		b.check(err)
		defer host.Release()
		table, onDevice = host.B, b.alloc(int(n))
	}
	dst := b.alloc(len(want))
	b.check(h.Run(b.stream, dst, src, table, onDevice))
	equal(b.t, what, download[T](b, dst), dtype.Slice[T](want))
}
