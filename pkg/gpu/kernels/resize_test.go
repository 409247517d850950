//go:build !nocuda

package kernels

import (
	"testing"

	"strata/pkg/dtype"
	"strata/pkg/filter"
)

func TestResizer(t *testing.T) {
	b := open(t)
	for _, s := range []struct{ in, out [3]int }{
		{[3]int{9, 33, 40}, [3]int{3, 7, 8}}, {[3]int{20, 12, 11}, [3]int{4, 12, 11}}, {[3]int{5, 6, 7}, [3]int{5, 6, 7}}, {[3]int{4, 9, 8}, [3]int{8, 5, 16}},
	} {
		var w [3]*filter.Weights
		for d := range w {
			w[d] = filter.CornerAligned(s.in[d], s.out[d], filter.AntiAliasSigma(s.in[d], s.out[d]), filter.Reflect)
		}
		v := sample[uint16](s.in[0] * s.in[1] * s.in[2])
		f := make([]float32, len(v))
		filter.ToFloat32(f, v)
		want := make([]float32, s.out[0]*s.out[1]*s.out[2])
		filter.Resize(want, f, w[0], w[1], w[2])
		r, err := NewResizer(b.stream, w[0], w[1], w[2])
		b.check(err)
		for range 2 {
			got, err := r.Run(b.stream, upload(b, v), dtype.Uint16)
			b.check(err)
			equal(t, "resized", download[float32](b, got), want)
		}
		r.Release()
	}
}
