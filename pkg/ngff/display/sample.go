package display

import (
	"math"

	"strata/pkg/dtype"
	"strata/pkg/ngff/spatial"
)

// Box is a box of voxels of a level: z, y, x.
type Box struct{ Start, Shape [3]int }

// mostBoxes is the maximum number of boxes of a sample.
const mostBoxes = 64

// Sample returns boxes that represent an image: all of the finest level that has at most the given number of
// voxels, or else boxes spread evenly over the coarsest level, each in one chunk. These contain about the given
// number of voxels, and their chunks at most the given number of bytes, unless there is only one box.
func Sample(levels []spatial.Level, voxels int, bytes int64) (level int, boxes []Box) {
	for k := range levels {
		if volume(levels[k].Shape) <= float64(voxels) {
			return k, []Box{{Shape: levels[k].Shape}}
		}
	}
	level = len(levels) - 1
	l := &levels[level]
	chunk := float64(l.Array.DType().Size())
	for _, n := range l.Array.Chunks() {
		chunk *= float64(n)
	}
	var n, take [3]int
	for d := range n {
		n[d], take[d] = (l.Shape[d]+l.Chunk[d]-1)/l.Chunk[d], 1
	}
	for { // one more along the axis that has the fewest, of those that have more chunks
		grown, axis := take, -1
		for d := range 3 {
			if take[d] < n[d] && (axis < 0 || take[d] < take[axis]) {
				axis = d
			}
		}
		if axis < 0 {
			break
		}
		grown[axis]++
		if total := grown[0] * grown[1] * grown[2]; total > mostBoxes || float64(total)*chunk > float64(bytes) {
			break
		}
		take = grown
	}
	each := max(1, voxels/(take[0]*take[1]*take[2]))
	for i := range take[0] * take[1] * take[2] {
		at := [3]int{i / take[2] / take[1], i / take[2] % take[1], i % take[2]}
		var b Box
		for d := range 3 {
			c := (2*at[d] + 1) * n[d] / (2 * take[d])
			b.Start[d] = c * l.Chunk[d]
			b.Shape[d] = min(l.Chunk[d], l.Shape[d]-b.Start[d])
		}
		boxes = append(boxes, middle(b, each))
	}
	return level, boxes
}

// middle returns the middle of a box, reduced to at most the given number of voxels.
func middle(b Box, voxels int) Box {
	for volume(b.Shape) > float64(voxels) {
		d := 0
		for k := range 3 {
			if b.Shape[k] > b.Shape[d] {
				d = k
			}
		}
		half := (b.Shape[d] + 1) / 2
		b.Start[d] += (b.Shape[d] - half) / 2
		b.Shape[d] = half
	}
	return b
}

func volume(shape [3]int) float64 { return float64(shape[0]) * float64(shape[1]) * float64(shape[2]) }

// AppendFinite appends the finite elements of an array of type t to values.
func AppendFinite(values []float64, elements []byte, t dtype.Type) []float64 {
	dtype.Each(elements, t, func(v float64) {
		if v-v == 0 { // neither NaN nor infinite
			values = append(values, v)
		}
	})
	return values
}

// Quantile returns the value below which a fraction q of the sorted values lies.
func Quantile(sorted []float64, q float64) float64 { return sorted[rank(len(sorted), q)] }

// rank returns the place of that value of n.
func rank(n int, q float64) int { return int(math.Round(q * float64(n-1))) }
