//go:build !nocuda

package kernels

import (
	"slices"
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
		{[3]int{3, 3, 40}, filter.InterfaceSearch{SigmaXY: 8, SigmaZ: 2, Clip: 100}},
		{[3]int{9, 4, 40}, filter.InterfaceSearch{SigmaZ: 0.5}},
		{[3]int{50, 4, 24}, filter.InterfaceSearch{SigmaXY: 2, SigmaZ: 2.1}},
		{[3]int{40, 4, 24}, filter.InterfaceSearch{SigmaXY: 2, SigmaZ: 0.1, Log: true}},
		{[3]int{31, 3, 21}, filter.InterfaceSearch{SigmaXY: 1, SigmaZ: 4, Planes: 5}},
		// more rows than a block makes, windows of more rows than it has at a time, and more columns
		{[3]int{3, 37, 24}, filter.InterfaceSearch{SigmaXY: 5, SigmaZ: 1, Log: true}},
		{[3]int{2, 90, 20}, filter.InterfaceSearch{SigmaXY: 70, SigmaZ: 1, Log: true}},
		{[3]int{2, 3, 132}, filter.InterfaceSearch{SigmaXY: 3, SigmaZ: 1, Log: true}},
	} {
		nz, ny, nx := c.shape[0], c.shape[1], c.shape[2]
		v := sample[T](nz * ny * nx)
		depth, peak := make([]int32, ny*nx), make([]float32, ny*nx)
		filter.Interfaces(&c.search, &filter.Workspace{}, depth, peak, filter.Slab[T]{Data: v, Planes: nz, PlaneStride: ny * nx, RowStride: nx},
			c.search.Windows(0, ny, ny), c.search.Windows(0, nx, nx))

		arg, top := b.alloc(4*ny*nx), b.alloc(4*ny*nx)
		f, err := NewSearcher(b.stream, c.search)
		b.check(err)
		defer f.Release()
		for _, part := range []struct{ from, to [2]int }{{[2]int{0, 0}, [2]int{ny, nx}}, {[2]int{1, 5}, [2]int{ny - 1, 19}}} {
			box, field := cut(b, v, c.shape, &c.search, part.from, part.to)
			h, w := part.to[0]-part.from[0], part.to[1]-part.from[1]
			b.check(f.Run(b.stream, arg, top, field, part.from, part.to, b.alloc(int(SearchScratch(field.Planes, field.Shape[1], h, w)))))
			args, peaks := download[int32](b, arg), download[float32](b, top)
			for i := range h * w {
				at := (part.from[0]+i/w)*nx + part.from[1] + i%w
				if peaks[i] != peak[at] || c.search.Depth(args[i]) != depth[at] {
					t.Fatalf("%v of %v: A-line %d: plane %d, gradient %v; the CPU's depth is %d, %v", box, c.shape, i, args[i], peaks[i], depth[at], peak[at])
				}
			}
		}
	}
}

// cut brings the voxels to the device that the windows of a rectangle cover, and what the
// search sees of the planes.
func cut[T dtype.Element](b *bench, v []T, shape [3]int, s *filter.InterfaceSearch, from, to [2]int) (box [4]int, f Field) {
	rows, columns := s.Windows(from[0], to[0], shape[1]), s.Windows(from[1], to[1], shape[2])
	box = [4]int{slices.Min(rows), slices.Max(rows) + 1, slices.Min(columns), slices.Max(columns) + 1}
	f = Field{Type: dtype.Of[T](), Planes: shape[0], Shape: [2]int{box[1] - box[0], box[3] - box[2]}, First: [2]int{box[0], box[2]}, Length: [2]int{shape[1], shape[2]}}
	if s.Planes > 0 {
		f.Planes = min(f.Planes, s.Planes+s.Reach())
	}
	f.Pitch = f.Shape[1] + 3
	f.Stride = int64(f.Pitch * f.Shape[0])
	if box[3]-box[2] == shape[2] {
		f.Pitch, f.Stride = shape[2], int64(shape[2]*f.Shape[0])
	}
	part := make([]T, int64(f.Planes)*f.Stride)
	for z := range f.Planes {
		for y := range f.Shape[0] {
			copy(part[z*int(f.Stride)+y*f.Pitch:][:f.Shape[1]], v[(z*shape[1]+box[0]+y)*shape[2]+box[2]:])
		}
	}
	f.At = upload(b, part)
	return box, f
}
