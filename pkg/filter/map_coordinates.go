package filter

import "fmt"

// Border says what an image is beyond its outermost samples.
type Border int

// The borders.
const (
	// BorderConstant is a value, as soon as a coordinate is outside [0, n−1].
	BorderConstant Border = iota
	// BorderNearest is the nearest sample: coordinates are clamped.
	BorderNearest
)

// maxAxes is the largest number of axes of an image that is sampled.
const maxAxes = 8

// Sampler reads an image between its samples, by linear interpolation along every
// axis.
type Sampler struct {
	src    []float32
	shape  []int
	stride []int
	border Border
	fill   float32
}

// NewSampler prepares an image of up to eight axes in C order. fill is its value
// beyond a constant border.
func NewSampler(src []float32, shape []int, border Border, fill float32) *Sampler {
	if len(shape) > maxAxes {
		panic(fmt.Sprintf("filter: %d axes, at most %d", len(shape), maxAxes))
	}
	s := &Sampler{src: src, shape: shape, stride: make([]int, len(shape)), border: border, fill: fill}
	n := 1
	for d := len(shape) - 1; d >= 0; d-- {
		s.stride[d] = n
		n *= shape[d]
	}
	if n != len(src) {
		panic(fmt.Sprintf("filter: %d samples for shape %v", len(src), shape))
	}
	return s
}

// At is the image at a point, one coordinate per axis: float64 products and sums,
// rounded once. Coordinates that are NaN lie outside; with a nearest border they
// count as 0. An image without samples is fill everywhere.
func (s *Sampler) At(point []float64) float32 {
	var low [maxAxes]int
	var part [maxAxes]float64
	if len(s.src) == 0 {
		return s.fill
	}
	at := 0
	for d, n := range s.shape {
		c, last := point[d], float64(n-1)
		if !(c >= 0 && c <= last) {
			if s.border == BorderConstant {
				return s.fill
			}
			if c > last {
				c = last
			} else {
				c = 0
			}
		}
		k := int(c)
		if k == n-1 && k > 0 { // the last sample is the far end of the last interval
			k--
		}
		low[d], part[d] = k, c-float64(k)
		at += k * s.stride[d]
	}
	sum := 0.0
	for corner := range 1 << len(s.shape) {
		w, i := 1.0, at
		for d := range s.shape {
			if corner>>(len(s.shape)-1-d)&1 == 1 {
				w *= part[d]
				if part[d] != 0 {
					i += s.stride[d]
				}
			} else {
				w *= 1 - part[d]
			}
		}
		if w != 0 {
			sum += float64(w * float64(s.src[i]))
		}
	}
	return float32(sum)
}

// MapCoordinates samples an image at points: dst[i] is its value at coordinates
// points[d·len(dst) + i] along the axes d (as scipy.ndimage.map_coordinates with
// order 1 takes them).
func MapCoordinates(dst []float32, s *Sampler, points []float64) {
	if len(points) != len(dst)*len(s.shape) {
		panic(fmt.Sprintf("filter: %d coordinates for %d points of %d axes", len(points), len(dst), len(s.shape)))
	}
	var p [maxAxes]float64
	for i := range dst {
		for d := range s.shape {
			p[d] = points[d*len(dst)+i]
		}
		dst[i] = s.At(p[:len(s.shape)])
	}
}
