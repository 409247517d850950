// Package transform moves the slices of a specimen in their plane by transforms that were found before, each slice on
// its own grid.
package transform

import (
	"context"
	"math"

	"strata/pkg/dtype"
	"strata/pkg/filter"
	"strata/pkg/filter/bspline"
	"strata/pkg/mem"
	"strata/pkg/ngff"
	"strata/pkg/oct"
	"strata/pkg/oct/blocks"
	"strata/pkg/zarr/store"
)

// Motion is a transform of a slice: pixel p of the output shows the slice at Rigid(p) and, with a Warp, displaced
// there.
type Motion struct {
	Rigid filter.Rigid
	Warp  *bspline.Warp // may be nil
}

// places returns where pixels x0 … of row y sample the slice.
func (m *Motion) places(xs, ys []float64, y, x0 int) {
	if m.Warp != nil {
		m.Warp.Places(xs, ys, m.Rigid, y, x0)
		return
	}
	for i := range xs {
		xs[i], ys[i] = m.Rigid.Apply(float64(x0+i), float64(y))
	}
}

// Run writes the slice in, moved, with its pyramid. Pixels between others are linear between them, in every plane;
// those that lie outside of the slice become fill. The output has the slice's grid, type and voxel size. Errors wrap
// [oct.ErrInput] where the slice is the cause.
func Run(ctx context.Context, in *ngff.Image, out store.Writer, m Motion, fill float32, layout oct.Layout, res oct.Resources) (*ngff.Image, error) {
	v, err := blocks.Open(in)
	if err != nil {
		return nil, err
	}
	moved := v.From(&source{v, m, fill}, v.Shape)
	cut, err := moved.Fit(blocks.Plan{Work: "moving blocks"}, layout, res)
	if err != nil {
		return nil, err
	}
	return cut.Map(ctx, out, layout, v.Spec(v.DType), func(context.Context, *blocks.Block) error { return nil })
}

// source computes the voxels of a moved slice.
type source struct {
	v      *blocks.Volume
	motion Motion
	fill   float32
}

// reach returns how many rows and columns of the slice a box of the output may need at most.
func (s *source) reach(ny, nx int) (rows, columns int) {
	sin, cos := math.Sincos(s.motion.Rigid.Angle)
	sin, cos = math.Abs(sin), math.Abs(cos)
	more := 4.0
	if s.motion.Warp != nil {
		more += 2 * s.motion.Warp.Bound()
	}
	most := func(v float64, n int) int { return int(min(math.Ceil(v+more), float64(n))) }
	return most(cos*float64(ny)+sin*float64(nx), s.v.Shape[1]), most(cos*float64(nx)+sin*float64(ny), s.v.Shape[2])
}

// Scratch returns the bytes for the places of the pixels of a box, and for the box of the slice, as float32 and as
// stored.
func (s *source) Scratch(shape [3]int) int {
	rows, columns := s.reach(shape[1], shape[2])
	box := [3]int{shape[0], rows, columns}
	return mem.Sum(mem.Product(16, shape[1], shape[2]), mem.Product(4, box[0], box[1], box[2]), s.v.Scratch(box), 8)
}

// Read computes a box of the moved slice.
func (s *source) Read(ctx context.Context, dst []float32, scratch []byte, start, shape [3]int) error {
	area := shape[1] * shape[2]
	places := dtype.Slice[float64](scratch[:16*area])
	xs, ys := places[:area], places[area:]
	low, high := [2]float64{math.Inf(1), math.Inf(1)}, [2]float64{math.Inf(-1), math.Inf(-1)}
	for y := range shape[1] {
		rowX, rowY := xs[y*shape[2]:][:shape[2]], ys[y*shape[2]:][:shape[2]]
		s.motion.places(rowX, rowY, start[1]+y, start[2])
		for i, x := range rowX {
			low[0], high[0] = min(low[0], rowY[i]), max(high[0], rowY[i])
			low[1], high[1] = min(low[1], x), max(high[1], x)
		}
	}
	at, box := [3]int{start[0], 0, 0}, [3]int{shape[0], 0, 0}
	for d := range 2 {
		n := float64(s.v.Shape[d+1])
		from, to := min(max(math.Floor(low[d])-1, 0), n), min(max(math.Floor(high[d])+3, 0), n)
		at[d+1], box[d+1] = int(from), int(max(to-from, 0))
	}
	dst = dst[:shape[0]*area]
	if box[1] == 0 || box[2] == 0 {
		for i := range dst {
			dst[i] = s.fill
		}
		return nil
	}
	n := box[1] * box[2]
	floats := dtype.Slice[float32](scratch[16*area:][:4*shape[0]*n])
	raw := scratch[(16*area+4*shape[0]*n+7)&^7:]
	if err := s.v.Read(ctx, floats, raw, at, box); err != nil {
		return err
	}
	for z := range shape[0] {
		plane := floats[z*n:][:n]
		for i, x := range xs {
			dst[z*area+i] = filter.Linear(plane, box[1], box[2], x-float64(at[2]), ys[i]-float64(at[1]), s.fill)
		}
	}
	return nil
}
