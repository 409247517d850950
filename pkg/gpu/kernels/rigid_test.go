//go:build !nocuda

package kernels

import (
	"fmt"
	"math"
	"testing"

	"strata/pkg/filter"
)

func TestResampleRigid(t *testing.T) {
	b := open(t)
	for _, shape := range [][3]int{{2, 23, 41}, {3, 7, 300}, {1, 1, 5}, {1, 6, 1}} {
		nz, ny, nx := shape[0], shape[1], shape[2]
		v := sample[float32](nz * ny * nx)
		src, dst := upload(b, v), b.alloc(4*len(v))
		for _, r := range []filter.Rigid{{}, {Angle: 0.1, TX: 1.25, TY: -2.5, CX: 20, CY: 11}, {Angle: -2, TX: -3, CX: float64(nx-1) / 2, CY: float64(ny-1) / 2}, {TX: 0.5, TY: 0.5}, {TX: 1e6}} {
			for _, fill := range []float32{0, float32(math.NaN())} {
				b.check(ResampleRigid(b.stream, dst, src, r, nz, ny, nx, fill))
				want := make([]float32, len(v))
				for z := range nz {
					r.Resample(want[z*ny*nx:], v[z*ny*nx:][:ny*nx], ny, nx, 0, ny, fill)
				}
				equal(t, fmt.Sprint(shape, r), download[float32](b, dst), want)
			}
		}
	}
}
