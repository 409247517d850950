//go:build !noasm

package jpegxr

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// scalar runs f without assembly.
func scalar(f func()) {
	avx2 := haveAVX2
	haveAVX2 = false
	defer func() { haveAVX2 = avx2 }()
	f()
}

// TestScalar: the scalar forms give the library's pixels, too.
func TestScalar(t *testing.T) {
	scalar(func() { TestGolden(t) })
}

// TestKernels: the vector forms give what the scalar ones give, of any values, and touch nothing else.
func TestKernels(t *testing.T) {
	if !haveAVX2 {
		t.Skip("no AVX2")
	}
	r := rand.New(rand.NewPCG(3, 4))
	for i := range 300 {
		n, stride := 1+r.IntN(40), 48
		values := make([]int32, 64*stride)
		for k := range values {
			values[k] = int32(r.Uint32()) >> (r.IntN(32) * (i & 1))
		}
		for name, f := range map[string]func([]int32){
			"inverse": func(v []int32) { inverse(v[3:], stride, n) },
			"overlap": func(v []int32) {
				overlap(v[12*stride:], v[24*stride+1:], v[36*stride:], v[48*stride+1:], stride, n)
			},
		} {
			got, want := slices.Clone(values), slices.Clone(values)
			f(got)
			scalar(func() { f(want) })
			if !slices.Equal(got, want) {
				t.Fatalf("%s of %d blocks differs", name, n)
			}
		}
	}
}
