package kernels

import "strata/pkg/gpu"

// DividePlanes queues filter.DividePlane for planes of n float32 without gaps: by holds a float64 for each.
func DividePlanes(s *gpu.Stream, v, by gpu.Span, planes int, n int64) error {
	k, err := get(s.Device(), "correct", "divide_planes")
	if err != nil {
		return err
	}
	grid, block := planewise(planes, n)
	s.Launch(k, grid, block, v, by, int32(planes), n)
	return nil
}

// ScalePlanes queues filter.ScalePlane for planes of n float32 without gaps: limits holds two float32 for each, the
// lower limit first.
func ScalePlanes(s *gpu.Stream, v, limits gpu.Span, divisor float32, planes int, n int64) error {
	k, err := get(s.Device(), "correct", "scale_planes")
	if err != nil {
		return err
	}
	grid, block := planewise(planes, n)
	s.Launch(k, grid, block, v, limits, divisor, int32(planes), n)
	return nil
}

// planewise returns a grid with a thread for each of n elements of a plane, and planes along z.
func planewise(planes int, n int64) (grid, block gpu.Dim) {
	grid, block = blocks(n)
	grid[2] = upTo(planes)
	return grid, block
}

// FlatField holds the fields that DivideField corrects by. It repeats every Height rows and Width columns.
type FlatField struct {
	Gain, Dark    gpu.Span // Height × Width float32; Dark may be empty
	Height, Width int
	Epsilon       float32 // added to Gain
	Keep          bool    // what is not finite stays; else it becomes 0
}

// DivideField queues filter.FlatField.Divide for planes of ny × nx float32 without gaps, whose first voxel is pixel (y, x) of a field,
// below Height and Width. counts, three uint64, grow by the numbers of the filter.Census.
func DivideField(s *gpu.Stream, v, counts gpu.Span, f FlatField, planes, ny, nx, y, x int) error {
	k, err := get(s.Device(), "correct", "divide_field")
	if err != nil {
		return err
	}
	keep := int32(0)
	if f.Keep {
		keep = 1
	}
	grid, block := threads(planes, ny, nx)
	s.Launch(k, grid, block, v, f.Gain, f.Dark, counts, int32(planes), int32(ny), int32(nx), int32(y), int32(x), int32(f.Height), int32(f.Width), f.Epsilon, keep)
	return nil
}
