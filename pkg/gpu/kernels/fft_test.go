//go:build !nocuda

package kernels

import (
	"math"
	"math/cmplx"
	"math/rand/v2"
	"testing"
)

func TestFFT(t *testing.T) {
	b := open(t)
	rng := rand.New(rand.NewPCG(1, 2))
	for _, c := range []struct{ outer, n, inner int }{{3, 1, 4}, {2, 2, 1}, {1, 8, 3}, {2, 60, 7}, {3, 75, 1}, {1, 144, 2}, {1, 256, 1}} {
		v := make([]float64, 2*c.outer*c.n*c.inner)
		for i := range v {
			v[i] = rng.NormFloat64()
		}
		f, err := newFFT(b.stream, c.n)
		b.check(err)
		for _, inverse := range []bool{false, true} {
			got, _, err := f.run(b.stream, upload(b, v), b.alloc(8*len(v)), int64(c.outer), int64(c.inner), inverse)
			b.check(err)
			out := download[float64](b, got)
			sign := -1.0
			if inverse {
				sign = 1
			}
			for o := range c.outer {
				for i := range c.inner {
					for k := range c.n {
						var want complex128 // by the definition
						for j := range c.n {
							e := 2 * ((o*c.n+j)*c.inner + i)
							want += complex(v[e], v[e+1]) * cmplx.Rect(1, sign*2*math.Pi*float64(j*k%c.n)/float64(c.n))
						}
						e := 2 * ((o*c.n+k)*c.inner + i)
						if d := cmplx.Abs(complex(out[e], out[e+1]) - want); d > 1e-12*math.Sqrt(float64(c.n)) {
							t.Fatalf("%+v, inverse %v: element %d is off by %g", c, inverse, k, d)
						}
					}
				}
			}
		}
		f.release()
	}
	if _, err := newFFT(b.stream, 14); err == nil {
		t.Error("a transform of 14 elements was planned")
	}
}
