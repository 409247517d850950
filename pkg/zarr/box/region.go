// Package box describes boxes of elements of an array, and copies and fills them in memory with any strides.
package box

import (
	"fmt"

	"strata/pkg/mem"
)

// Region is a box of elements: along dimension d, the indices Start[d] ≤ i < Start[d]+Shape[d].
type Region struct {
	Start, Shape []int
}

// String returns the region as "start:stop" for each dimension.
func (r Region) String() string {
	s := []byte{'['}
	for d := range r.Start {
		if d > 0 {
			s = append(s, ", "...)
		}
		stop := 0
		if d < len(r.Shape) {
			stop = r.Start[d] + r.Shape[d]
		}
		s = fmt.Appendf(s, "%d:%d", r.Start[d], stop)
	}
	return string(append(s, ']'))
}

// Check returns an error if the region does not lie in an array of the given shape.
func (r Region) Check(shape []int) error {
	if len(r.Start) != len(shape) || len(r.Shape) != len(shape) {
		return fmt.Errorf("region has %d starts and %d lengths, the array %d dimensions", len(r.Start), len(r.Shape), len(shape))
	}
	for d, n := range shape {
		// written so that no sum can wrap around
		if r.Start[d] < 0 || r.Shape[d] < 0 || r.Start[d] > n || r.Shape[d] > n-r.Start[d] {
			return fmt.Errorf("region of %d from %d in dimension %d does not lie in 0:%d", r.Shape[d], r.Start[d], d, n)
		}
	}
	return nil
}

// Volume returns the size of a box of elements in bytes; ok is false if it overflows an int. A box with a
// length of 0 is empty whatever its other lengths.
func Volume(shape []int, elemSize int) (n int, ok bool) {
	for _, s := range shape {
		if s == 0 {
			return 0, true
		}
	}
	n = elemSize
	for _, s := range shape {
		if n, ok = mem.Mul(n, s); !ok {
			return 0, false
		}
	}
	return n, true
}

// CeilDiv returns a/b rounded up, for a ≥ 0 and b > 0, without overflow.
func CeilDiv(a, b int) int {
	q := a / b
	if a%b != 0 {
		q++
	}
	return q
}

// Strides stores the byte strides of a C-ordered box in dst and returns it.
func Strides(dst, shape []int, elemSize int) []int {
	n := elemSize
	for d := len(shape) - 1; d >= 0; d-- {
		dst[d] = n
		n *= shape[d]
	}
	return dst
}
