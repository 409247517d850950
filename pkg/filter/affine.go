package filter

import "fmt"

// Affine samples an image on a grid that an affine map puts into it: the element
// of dst, of the given shape in C order, at index o is the image at
//
//	matrix·o + offset
//
// by linear interpolation. matrix has a row for each axis of the image and a
// column for each axis of dst. Coordinates are summed in the order of the columns,
// in float64, anew for each sample: no error builds up along a row.
func Affine(dst []float32, shape []int, s *Sampler, matrix [][]float64, offset []float64) {
	n := 1
	for _, k := range shape {
		n *= k
	}
	if n != len(dst) || len(matrix) != len(s.shape) || len(offset) != len(s.shape) {
		panic(fmt.Sprintf("filter: an affine map of %d rows and %d offsets from %d axes to shape %v of %d elements", len(matrix), len(offset), len(s.shape), shape, len(dst)))
	}
	index := make([]int, len(shape))
	var p [maxAxes]float64
	for i := range dst {
		for d, row := range matrix {
			c := offset[d]
			for k, m := range row[:len(shape)] {
				c += float64(m * float64(index[k]))
			}
			p[d] = c
		}
		dst[i] = s.At(p[:len(s.shape)])
		for k := len(shape) - 1; k >= 0; k-- {
			if index[k]++; index[k] < shape[k] {
				break
			}
			index[k] = 0
		}
	}
}
