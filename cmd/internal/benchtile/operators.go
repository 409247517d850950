package benchtile

import (
	"encoding/binary"
	"math"

	"strata/pkg/dtype"
	"strata/pkg/tile"
)

// operator computes with views, one after another. Its results are kept, so that the compiler cannot remove the
// work.
type operator[T dtype.Element] struct {
	name   string
	radius []int
	result float64
	out    []float32 // the central tile's plane
	sums   []float64
}

func (o *operator[T]) apply(v *tile.View[T]) {
	switch o.name {
	case opSum:
		var sum float64
		for _, x := range v.Data() {
			sum += float64(x)
		}
		o.result += sum
	case opMean:
		o.planes(v, o.mean)
	case opSobel:
		o.planes(v, o.sobel)
	}
}

// planes calls f for the planes of a view along its last two axes. Rows lie stride elements apart.
func (o *operator[T]) planes(v *tile.View[T], f func(plane []T, h, w, stride, ry, rx int)) {
	data, n := v.Data(), len(v.ViewShape)
	h, w, ry, rx := 1, v.ViewShape[n-1], 0, v.Radius[n-1]
	if n > 1 {
		h, ry = v.ViewShape[n-2], v.Radius[n-2]
	}
	for ; len(data) > 0; data = data[h*w:] {
		f(data, h, w, w, ry, rx)
	}
}

// mean computes the mean of the box of the radius around each pixel of the central tile: columns first, as running
// sums.
func (o *operator[T]) mean(plane []T, h, w, stride, ry, rx int) {
	o.room(h-2*ry, w-2*rx, w)
	clear(o.sums)
	for y := range h {
		row := plane[y*stride : y*stride+w]
		for x, p := range row {
			o.sums[x] += float64(p)
		}
		if y < 2*ry {
			continue
		}
		out, sum := o.out[(y-2*ry)*(w-2*rx):], 0.0
		for x, s := range o.sums {
			if sum += s; x >= 2*rx {
				out[x-2*rx] = float32(sum / float64((2*ry+1)*(2*rx+1)))
				sum -= o.sums[x-2*rx]
			}
		}
		for x, p := range plane[(y-2*ry)*stride : (y-2*ry)*stride+w] {
			o.sums[x] -= float64(p)
		}
	}
	o.result += float64(o.out[0])
}

// sobel computes the magnitude of the gradient of each pixel of the central tile with Sobel's kernels.
func (o *operator[T]) sobel(plane []T, h, w, stride, ry, rx int) {
	o.room(h-2*ry, w-2*rx, 0)
	for y := ry; y < h-ry; y++ {
		a, b, c := plane[(y-1)*stride:][:w], plane[y*stride:][:w], plane[(y+1)*stride:][:w]
		out := o.out[(y-ry)*(w-2*rx):]
		for x := rx; x < w-rx; x++ {
			dx := float32(a[x+1]) - float32(a[x-1]) + 2*(float32(b[x+1])-float32(b[x-1])) + float32(c[x+1]) - float32(c[x-1])
			dy := float32(c[x-1]) - float32(a[x-1]) + 2*(float32(c[x])-float32(a[x])) + float32(c[x+1]) - float32(a[x+1])
			out[x-rx] = float32(math.Sqrt(float64(dx*dx + dy*dy)))
		}
	}
	o.result += float64(o.out[0])
}

func (o *operator[T]) room(h, w, sums int) {
	if len(o.out) != h*w || len(o.sums) != sums {
		o.out, o.sums = make([]float32, h*w), make([]float64, sums)
	}
}

// check returns the sum of the pixels' bytes as little-endian unsigned numbers, modulo 2^64: any program can
// compute it, in any order of views.
func check(pixels []byte, size int) (sum uint64) {
	for ; len(pixels) > 0; pixels = pixels[size:] {
		switch size {
		case 1:
			sum += uint64(pixels[0])
		case 2:
			sum += uint64(binary.LittleEndian.Uint16(pixels))
		case 4:
			sum += uint64(binary.LittleEndian.Uint32(pixels))
		default:
			sum += binary.LittleEndian.Uint64(pixels)
		}
	}
	return sum
}
