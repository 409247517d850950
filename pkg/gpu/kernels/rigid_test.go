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
		src := upload(b, v)
		fill := []float64{0, math.NaN(), 2.5}[:nz]
		fills := upload(b, fill)
		box := Box{Y: ny / 3, X: nx / 4, Height: (ny + 1) / 2, Width: (nx + 1) / 2}
		pitch, stride := box.Width+3, (box.Width+3)*(box.Height+1)
		for _, r := range []filter.Rigid{{}, {Angle: 0.1, TX: 1.25, TY: -2.5, CX: 20, CY: 11}, {Angle: -2, TX: -3, CX: float64(nx-1) / 2, CY: float64(ny-1) / 2}, {TX: 0.5, TY: 0.5}, {TX: 1e6}} {
			want := sample[float32](nz * stride)
			dst := upload(b, want)
			b.check(ResampleRigid(b.stream, Planes{dst, pitch, int64(stride)}, src, r, nz, ny, nx, box, fills))
			plane := make([]float32, ny*nx)
			for z := range nz {
				r.Resample(plane, v[z*ny*nx:][:ny*nx], ny, nx, 0, ny, float32(fill[z]))
				for y := range box.Height {
					copy(want[z*stride+y*pitch:][:box.Width], plane[(box.Y+y)*nx+box.X:])
				}
			}
			equal(t, fmt.Sprint(shape, r), download[float32](b, dst), want)
		}
	}
}
