//go:build !nocuda

package kernels

import (
	"testing"

	"strata/pkg/dtype"
	"strata/pkg/filter"
)

func TestApply(t *testing.T) {
	each(t, apply[uint8], apply[int8], apply[uint16], apply[int16], apply[uint32], apply[int32], apply[uint64], apply[int64], apply[float32], apply[float64])
}

func apply[T dtype.Element](t *testing.T) {
	b := open(t)
	for _, s := range []struct{ outer, in, out, inner int }{{3, 40, 9, 35}, {1, 7, 7, 300}, {2, 5, 12, 33}, {40, 60, 11, 1}} {
		w := filter.CornerAligned(s.in, s.out, filter.AntiAliasSigma(s.in, s.out), filter.Reflect)
		v := sample[T](s.outer * s.in * s.inner)
		f := make([]float32, len(v))
		filter.ToFloat32(f, v)
		want := make([]float32, s.outer*s.out*s.inner)
		if s.inner == 1 {
			w.ApplyRows(want, f, s.outer, make([]float32, w.RowScratch()))
		} else {
			w.Apply(want, f, s.outer, s.inner)
		}
		on, err := NewWeights(b.stream, w)
		b.check(err)
		dst := b.alloc(4 * len(want))
		b.check(on.Apply(b.stream, dst, upload(b, v), dtype.Of[T](), int64(s.outer), int64(s.inner)))
		equal(t, "apply", download[float32](b, dst), want)
		on.Release()
	}
}
