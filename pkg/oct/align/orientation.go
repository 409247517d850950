package align

import (
	"strings"

	"strata/pkg/oct"
)

// orientation maps the axes of an array (z, y, x) to axes oriented S, A, R. axis[d] is the array's axis along oriented
// axis d; flip[d] says that it runs in the opposite direction.
type orientation struct {
	axis [3]int
	flip [3]bool
}

// parseOrientation reads three letters: where z, y and x increase to, right or left, anterior or posterior, superior or
// inferior.
func parseOrientation(flag, code string) (o orientation, err error) {
	const forward, backward = "SAR", "IPL"
	seen := [3]bool{}
	for i, c := range strings.ToUpper(code) {
		d := strings.IndexRune(forward, c)
		flip := d < 0
		if flip {
			d = strings.IndexRune(backward, c)
		}
		if len(code) != 3 || d < 0 || seen[d] {
			return o, oct.LayoutErrorf("--%s %.20s: want three letters, one of R and L, one of A and P, one of S and I, such as SAR", flag, code)
		}
		seen[d], o.axis[d], o.flip[d] = true, i, flip
	}
	if len(code) != 3 {
		return o, oct.LayoutErrorf("--%s %.20q: want three letters, one of R and L, one of A and P, one of S and I, such as SAR", flag, code)
	}
	return o, nil
}

// turn reorders sizes or lengths along the array's axes into the order of the oriented axes.
func turn[T any](o orientation, v [3]T) (out [3]T) {
	for d, i := range o.axis {
		out[d] = v[i]
	}
	return out
}

// reorient copies the voxels of an array of the given shape into an oriented one.
func (o orientation) reorient(dst, src []float32, shape [3]int) {
	stride := [3]int{shape[1] * shape[2], shape[2], 1}
	n, step, first := turn(o, shape), turn(o, stride), 0
	for d := range 3 {
		if o.flip[d] {
			first += (n[d] - 1) * step[d]
			step[d] = -step[d]
		}
	}
	i := 0
	for z := range n[0] {
		for y := range n[1] {
			at := first + z*step[0] + y*step[1]
			for range n[2] {
				dst[i] = src[at]
				at += step[2]
				i++
			}
		}
	}
}
