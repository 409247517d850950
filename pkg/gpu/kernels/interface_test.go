//go:build !nocuda

package kernels

import (
	"math"
	"testing"

	"strata/pkg/dtype"
	"strata/pkg/filter"
)

func TestInterface(t *testing.T) {
	each(t, search[uint8], search[int8], search[uint16], search[int16], search[uint32], search[int32], search[uint64], search[int64], search[float32], search[float64])
}

func search[T dtype.Element](t *testing.T) {
	b := open(t)
	for _, c := range []struct {
		shape  [3]int
		search filter.InterfaceSearch
	}{
		{[3]int{25, 13, 40}, filter.InterfaceSearch{SigmaXY: 3, SigmaZ: 2}},
		{[3]int{25, 6, 40}, filter.InterfaceSearch{SigmaXY: 4.5, SigmaZ: 1, Log: true, Planes: 11}},
		{[3]int{3, 2, 40}, filter.InterfaceSearch{SigmaXY: 8, SigmaZ: 2, Clip: 100}},
		{[3]int{9, 4, 40}, filter.InterfaceSearch{SigmaZ: 0.5}},
	} {
		nz, ny, nx := c.shape[0], c.shape[1], c.shape[2]
		v := sample[T](nz * ny * nx)
		depth, peak := make([]int32, ny*nx), make([]float32, ny*nx)
		filter.Interfaces(&c.search, &filter.Workspace{}, depth, peak, filter.Slab[T]{Data: v, Planes: nz, PlaneStride: ny * nx, RowStride: nx},
			c.search.Windows(0, ny, ny), c.search.Windows(0, nx, nx))

		n := int64(len(v))
		planes, half := b.alloc(4*len(v)), b.alloc(4*len(v))
		arg, top := b.alloc(4*ny*nx), b.alloc(4*ny*nx)
		derivative := c.search.Derivative()
		limit := nz
		if c.search.Planes > 0 {
			limit = c.search.Planes
		}
		b.check(Magnitudes(b.stream, planes, upload(b, v), dtype.Of[T](), n, &c.search))
		if w := c.search.Window(); w > 1 {
			b.check(WindowMean(b.stream, half, planes, int64(nz), ny, int64(nx), w))
			b.check(WindowMean(b.stream, planes, half, int64(nz*ny), nx, 1, w))
		}
		b.check(Steepest(b.stream, arg, top, planes, nz, int64(ny*nx), limit, upload(b, derivative), len(derivative)))
		equal(t, "peak", download[float32](b, top), peak)
		for i, z := range download[int32](b, arg) {
			if want := depth[i]; int32(math.Ceil(float64(z)+0.5*c.search.SigmaZ)) != want {
				t.Fatalf("A-line %d: plane %d, the CPU's depth is %d", i, z, want)
			}
		}
	}
}
