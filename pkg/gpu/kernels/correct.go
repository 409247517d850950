package kernels

import "strata/pkg/gpu"

// DividePlanes queues filter.DividePlane for planes of n float32 without gaps: by holds a float64 for each.
func DividePlanes(s *gpu.Stream, v, by gpu.Span, planes int, n int64) error {
	return queue(s, "correct", "divide_planes", planewise(planes, n), v, by, int32(planes), n)
}

// ScalePlanes queues filter.ScalePlane for planes of n float32 without gaps: limits holds two float32 for each, the
// lower limit first.
func ScalePlanes(s *gpu.Stream, v, limits gpu.Span, divisor float32, planes int, n int64) error {
	return queue(s, "correct", "scale_planes", planewise(planes, n), v, limits, divisor, int32(planes), n)
}

// planewise returns a grid with a thread for each of n elements of a plane, and planes along z.
func planewise(planes int, n int64) shape {
	g := blocks(n)
	g.grid[2] = upTo(planes)
	return g
}

// FlatField holds the fields that DivideField corrects by. It repeats every Height rows and Width columns.
type FlatField struct {
	Gain, Dark    gpu.Span // Height × Width float32; Dark may be empty
	Height, Width int
	Epsilon       float32 // added to Gain
	Keep          bool    // what is not finite stays; else it becomes 0
}

// DivideField queues filter.FlatField.Divide for planes of ny × nx float32 without gaps, whose first voxel is pixel (y,
// x) of a field, below Height and Width. counts, three uint64, grow by the numbers of the filter.Census.
func DivideField(s *gpu.Stream, v, counts gpu.Span, f FlatField, planes, ny, nx, y, x int) error {
	keep := bit(f.Keep)
	return queue(s, "correct", "divide_field", threads(planes, ny, nx),
		v, f.Gain, f.Dark, counts, int32(planes), int32(ny), int32(nx), int32(y), int32(x), int32(f.Height), int32(f.Width), f.Epsilon, keep)
}
