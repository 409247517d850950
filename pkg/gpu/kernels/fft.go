package kernels

import (
	"fmt"
	"math"

	"strata/pkg/dtype"
	"strata/pkg/gpu"
)

// fft is a plan for transforms of one length.
type fft struct {
	n       int
	factors []int
	table   *gpu.Buffer // exp(−2πi·k/n)
}

// newFFT plans transforms of n = 2^a·3^b·5^c elements.
func newFFT(s *gpu.Stream, n int) (*fft, error) {
	f := &fft{n: n}
	rest := n
	for _, r := range []int{4, 2, 3, 5} {
		for rest > 0 && rest%r == 0 {
			f.factors = append(f.factors, r)
			rest /= r
		}
	}
	if rest != 1 {
		return nil, fmt.Errorf("no Fourier transform of %d elements (must be 2^a·3^b·5^c)", n)
	}
	roots := make([]float64, 2*n)
	for k := range n {
		roots[2*k+1], roots[2*k] = math.Sincos(-2 * math.Pi * float64(k) / float64(n))
	}
	var err error
	f.table, err = bring(s, dtype.Bytes(roots))
	return f, err
}

// run queues the transform of the middle axis of v (outer, n, inner) of complex128; the
// inverse is not divided by n. free is as large as v. It returns where the result lies
// and what is free: v and free, or the other way round.
func (f *fft) run(s *gpu.Stream, v, free gpu.Span, outer, inner int64, inverse bool) (result, other gpu.Span, err error) {
	done := 1
	for _, r := range f.factors {
		k, err := get(s.Device(), "fft", fmt.Sprint("fft_", r))
		if err != nil {
			return v, free, err
		}
		count := outer * inner * int64(f.n/r)
		conj := int32(0)
		if inverse {
			conj = 1
		}
		grid, block := blocks(count)
		s.Launch(k, grid, block, v, free, f.table, count, int32(f.n), int32(done), inner, conj)
		done *= r
		v, free = free, v
	}
	return v, free, nil
}

func (f *fft) release() {
	if f != nil {
		f.table.Release()
	}
}
