//go:build !nocuda

package kernels

import (
	"fmt"
	"testing"

	"strata/pkg/dtype"
	"strata/pkg/filter"
)

func TestOverlapMoments(t *testing.T) {
	b := open(t)
	for _, c := range []struct{ lo, hi, ny, nx int }{{3, 9, 6, 70}, {1, 1, 3, 5}, {2, 80, 2, 9}, {4, 5, 1, 1027}} {
		const more = 3 // rows are longer than what is compared
		pitch, stride := c.nx+more, (c.nx+more)*c.ny
		fixed, moving := sample[float32](c.hi*stride), sample[float32](c.hi*stride + 1)[1:]
		for _, v := range [][]float32{fixed, moving} {
			for i, f := range v {
				if f-f != 0 {
					v[i] = 7
				}
			}
		}
		n := c.hi - c.lo + 1
		size, scratch := OverlapBytes(c.lo, c.hi, c.ny)
		dst := b.alloc(int(size))
		b.stream.Zero(dst)
		f, m := Planes{upload(b, fixed), pitch, int64(stride)}, Planes{upload(b, moving), pitch, int64(stride)}
		want := make([]filter.Moments, n)
		for range 2 { // the second pass is added to the first
			b.check(OverlapMoments(b.stream, dst, b.alloc(int(scratch)), f, m, c.lo, c.hi, c.ny, c.nx))
			for y := range c.ny {
				for k := range want {
					var row filter.Moments
					o := c.lo + k
					for s := range o {
						a, w := fixed[(c.hi-1-s)*stride+y*pitch:][:c.nx], moving[(o-1-s)*stride+y*pitch:][:c.nx]
						dot := make([]float64, 1)
						filter.Dots(dot, a, [][]float32{w})
						p := filter.Moments{N: int64(c.nx), AB: dot[0]}
						p.A, p.AA = filter.Sums(a)
						p.B, p.BB = filter.Sums(moving[s*stride+y*pitch:][:c.nx])
						row.Add(p)
					}
					want[k].Add(row)
				}
			}
		}
		got := Moments(dtype.Bytes(download[float64](b, dst)), c.lo, 2*c.ny*c.nx)
		for k, w := range want {
			if got[k] != w {
				t.Errorf("%s: overlap %d has %+v, the CPU %+v", fmt.Sprint(c), c.lo+k, got[k], w)
			}
		}
	}
}
