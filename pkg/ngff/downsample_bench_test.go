package ngff

import (
	"testing"

	"strata/pkg/dtype"
)

// BenchmarkDownsample halves a chunk of 64³ that stays in cache.
func BenchmarkDownsample(b *testing.B) {
	for _, c := range []struct {
		name string
		t    dtype.Type
		n    int
	}{
		{"float32", dtype.Float32, 64}, {"float32/odd", dtype.Float32, 63},
		{"uint16", dtype.Uint16, 64}, {"uint16/odd", dtype.Uint16, 63}, {"uint8", dtype.Uint8, 64}, {"int16", dtype.Int16, 64},
		{"float64", dtype.Float64, 64}, {"float16", dtype.Float16, 64}, {"int32", dtype.Int32, 64},
	} {
		b.Run(c.name, func(b *testing.B) {
			in := padded([]int{c.n, c.n, c.n}, 1)
			l := newLattice(in, [rank]bool{axisZ: true, axisY: true, axisX: true})
			out := padded([]int{c.n / 2, c.n / 2, c.n / 2}, 1)
			src := make([]byte, in.volume()*c.t.Size())
			dst := make([]byte, out.volume()*c.t.Size())
			shrink, err := shrinkerOf(c.t, false)
			if err != nil {
				b.Fatal(err)
			}
			b.SetBytes(int64(len(src)))
			for b.Loop() {
				shrink(l, memory{data: dst, stride: contiguous(out)}, memory{data: src, stride: contiguous(in)}, box{hi: out})
			}
		})
	}
}
