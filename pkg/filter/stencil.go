package filter

import (
	"fmt"
	"math"

	"strata/pkg/dtype"
)

// Stencil filters volumes (z, y, x) with the same taps everywhere, one axis after the other: it smooths, or
// takes the magnitude of the gradient. It does not handle edges: the input contains every sample that the
// taps cover, including those beyond an image. It computes in F: sums of rounded products in the order of the
// taps (see [Combine]), along Z, then Y, then X. The squares of a gradient are added in the order of their
// axes. A voxel results from the same operations wherever the volume is cut. It owns scratch memory and
// serves one goroutine.
type Stencil[F float32 | float64] struct {
	smooth, derivative [3][]F
	gradient           bool
	planes             [2][]F // filtered along Z, smoothed and derived
	tall               []F    // one of them filtered along Y
	parts              [3][]F // the gradient's components
}

// NewStencil returns a stencil with taps along (z, y, x): an odd number, the middle one for the voxel itself.
// Without derivatives it smooths. With some, it computes the gradient magnitude: the square root of the sum
// of squares, over the axes that have a derivative, of the result derived along that axis and smoothed along
// the others. A derivative has as many taps as its axis has for smoothing.
func NewStencil[F float32 | float64](smooth, derivative [3][]float64) *Stencil[F] {
	s := &Stencil[F]{}
	for d := range smooth {
		s.smooth[d], s.derivative[d] = taps[F](smooth[d]), taps[F](derivative[d])
		s.gradient = s.gradient || derivative[d] != nil
		if len(smooth[d])%2 == 0 || derivative[d] != nil && len(derivative[d]) != len(smooth[d]) {
			panic(fmt.Sprintf("filter: a stencil with %d taps to smooth and %d to derive along axis %d", len(smooth[d]), len(derivative[d]), d))
		}
	}
	return s
}

func taps[F float32 | float64](kernel []float64) (t []F) {
	for _, k := range kernel {
		t = append(t, F(k))
	}
	return t
}

// Radius returns how far the taps extend on either side of a voxel, along (z, y, x).
func (s *Stencil[F]) Radius() (r [3]int) {
	for d, t := range s.smooth {
		r[d] = len(t) / 2
	}
	return r
}

// scratch returns numbers of elements of a plane: wide with the margins that the taps need along Y and X, tall with the
// margins along X only, and plane without margins.
func (s *Stencil[F]) scratch(shape [3]int) (wide, tall, plane int) {
	r := s.Radius()
	width := shape[2] + 2*r[2]
	return (shape[1] + 2*r[1]) * width, shape[1] * width, shape[1] * shape[2]
}

// Bytes returns the scratch memory needed for volumes of the given shape.
func (s *Stencil[F]) Bytes(shape [3]int) int64 {
	wide, tall, plane := s.scratch(shape)
	n := wide + tall
	if s.gradient {
		n += wide + 3*plane
	}
	return int64(n) * int64(dtype.Of[F]().Size())
}

// Apply filters a volume: dst has shape (z, y, x), src the radius more on either side of each axis. Both are
// in C order and do not overlap.
func (s *Stencil[F]) Apply(dst, src []F, shape [3]int) {
	wide, tall, plane := s.scratch(shape)
	s.tall = room(s.tall, tall)
	for z := range shape[0] {
		out := dst[z*plane:][:plane]
		from := src[z*wide:]
		smooth := s.alongZ(0, from, wide, s.smooth[0])
		if !s.gradient {
			combinePlane(out, smooth, s.tall, shape[1], shape[2], s.smooth[1], s.smooth[2])
			continue
		}
		parts := make([][]F, 0, 3)
		for d, derivative := range s.derivative {
			if derivative == nil {
				continue
			}
			in, t := smooth, s.smooth
			if t[d] = derivative; d == 0 {
				in = s.alongZ(1, from, wide, derivative)
			}
			s.parts[d] = room(s.parts[d], plane)
			combinePlane(s.parts[d], in, s.tall, shape[1], shape[2], t[1], t[2])
			parts = append(parts, s.parts[d])
		}
		lengths(out, parts)
	}
}

// alongZ combines the planes that begin at src into one.
func (s *Stencil[F]) alongZ(k int, src []F, plane int, taps []F) []F {
	if one(taps) {
		return src[:plane]
	}
	s.planes[k] = room(s.planes[k], plane)
	Combine(s.planes[k], src, plane, taps)
	return s.planes[k]
}

// lengths computes the lengths of vectors from their components.
func lengths[F float32 | float64](dst []F, parts [][]F) {
	for i, v := range parts[0] {
		dst[i] = v * v
	}
	for _, p := range parts[1:] {
		for i, v := range p {
			dst[i] += F(v * v)
		}
	}
	for i, v := range dst {
		dst[i] = F(math.Sqrt(float64(v)))
	}
}

// room returns v with n elements, reallocated if it is too short.
func room[E any](v []E, n int) []E {
	if cap(v) < n {
		return make([]E, n)
	}
	return v[:n]
}
