package box

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestCopyBox puts every element where its strides say, whatever lies together on which side, and touches nothing else.
func TestCopyBox(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 3000 {
		size := 1 << r.IntN(4)
		shape := make([]int, 1+r.IntN(4))
		for d := range shape {
			shape[d] = []int{1, 2, 3, 4, 5, 33, 70}[r.IntN(7)]
			if len(shape) > 3 {
				shape[d] = min(shape[d], 5)
			}
		}
		side := func() (strides []int, b []byte) { // dimensions in any order, with gaps or without
			strides = make([]int, len(shape))
			step := size
			for _, d := range r.Perm(len(shape)) {
				strides[d] = step
				step = step*shape[d] + size*r.IntN(2)*r.IntN(5)
			}
			b = make([]byte, step)
			for i := range b {
				b[i] = byte(r.Uint32())
			}
			return strides, b
		}
		ds, dst := side()
		ss, src := side()
		want := slices.Clone(dst)
		at := make([]int, len(shape))
		for d := 0; d >= 0; {
			i, k := 0, 0
			for d, n := range at {
				i, k = i+n*ds[d], k+n*ss[d]
			}
			copy(want[i:i+size], src[k:k+size])
			for d = len(at) - 1; d >= 0; d-- {
				if at[d]++; at[d] < shape[d] {
					break
				}
				at[d] = 0
			}
		}
		Copy(dst, ds, src, ss, shape, size)
		if !bytes.Equal(dst, want) {
			t.Fatalf("%v elements of %d bytes from strides %v to %v are wrong", shape, size, ss, ds)
		}
	}
}

// Interleaved pixels become planes, and planes pixels.
func BenchmarkCopyBox(b *testing.B) {
	const w, h = 512, 512
	for _, size := range []int{1, 2} {
		for _, n := range []int{2, 3, 4} {
			shape := []int{h, w, n}
			pixels, planes := []int{w * n * size, n * size, size}, []int{w * size, size, w * h * size}
			x, y := make([]byte, w*h*n*size), make([]byte, w*h*n*size)
			b.Run(fmt.Sprintf("split/%dx%d", n, size), func(b *testing.B) {
				b.SetBytes(int64(len(x)))
				for b.Loop() {
					Copy(y, planes, x, pixels, shape, size)
				}
			})
			b.Run(fmt.Sprintf("join/%dx%d", n, size), func(b *testing.B) {
				b.SetBytes(int64(len(x)))
				for b.Loop() {
					Copy(x, pixels, y, planes, shape, size)
				}
			})
		}
	}
}
