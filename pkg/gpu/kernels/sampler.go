package kernels

import (
	"fmt"

	"strata/pkg/filter"
	"strata/pkg/gpu"
)

// sampledAxes is the largest number of axes of an image that is sampled here.
const sampledAxes = 3

// Sampler is a filter.Sampler whose image, of one to three axes, lies on a device.
type Sampler struct {
	image  gpu.Span
	axes   int
	shape  [sampledAxes]int
	border filter.Border
	fill   float32
}

// NewSampler prepares an image of float32 in C order. fill is its value beyond a
// constant border.
func NewSampler(image gpu.Span, shape []int, border filter.Border, fill float32) (*Sampler, error) {
	if len(shape) < 1 || len(shape) > sampledAxes {
		return nil, fmt.Errorf("an image of %d axes (must be 1 to %d)", len(shape), sampledAxes)
	}
	return &Sampler{image, len(shape), inFront(shape), border, fill}, nil
}

// inFront gives a shape axes of one sample in front.
func inFront(shape []int) [sampledAxes]int {
	out := [sampledAxes]int{1, 1, 1}
	copy(out[sampledAxes-len(shape):], shape)
	return out
}

func (p *Sampler) nearest() int32 {
	if p.border == filter.BorderNearest {
		return 1
	}
	return 0
}

// MapCoordinates queues filter.MapCoordinates, bit by bit: dst, n float32, is the
// image at points, float64, n for each axis.
func MapCoordinates(s *gpu.Stream, dst gpu.Span, p *Sampler, points gpu.Span, n int64) error {
	k, err := get(s.Device(), "sampler", "map_coordinates")
	if err != nil {
		return err
	}
	grid, block := blocks(n)
	s.Launch(k, grid, block, p.image, dst, points, n, int32(p.axes), int32(p.shape[0]), int32(p.shape[1]), int32(p.shape[2]), p.nearest(), p.fill)
	return nil
}

// Affine queues filter.Affine, bit by bit, to dst of float32 of one to three axes.
func Affine(s *gpu.Stream, dst gpu.Span, shape []int, p *Sampler, matrix [][]float64, offset []float64) error {
	if len(shape) < 1 || len(shape) > sampledAxes || len(matrix) != p.axes || len(offset) != p.axes {
		return fmt.Errorf("an affine map of %d rows and %d offsets from %d axes to %d (up to %d)", len(matrix), len(offset), len(shape), p.axes, sampledAxes)
	}
	k, err := get(s.Device(), "sampler", "affine")
	if err != nil {
		return err
	}
	// axes in front of the image are at 0, those in front of dst do not move it
	var m [sampledAxes][sampledAxes]float64
	var c [sampledAxes]float64
	for d, row := range matrix {
		to := sampledAxes - p.axes + d
		copy(m[to][sampledAxes-len(shape):], row[:len(shape)])
		c[to] = offset[d]
	}
	n := inFront(shape)
	grid, block := threads(n[0], n[1], n[2])
	s.Launch(k, grid, block, p.image, dst, int32(n[0]), int32(n[1]), int32(n[2]), int32(p.shape[0]), int32(p.shape[1]), int32(p.shape[2]), p.nearest(), p.fill,
		m[0][0], m[0][1], m[0][2], m[1][0], m[1][1], m[1][2], m[2][0], m[2][1], m[2][2], c[0], c[1], c[2])
	return nil
}
