package filter

import (
	"math"

	"strata/pkg/dtype"
)

// Roll moves every A-line of a volume circularly along Z by −shift, with linear interpolation (stages specification,
// focal, step 4): out[z] = (1−t)·in[(z+k) mod Z] + t·in[(z+k+1) mod Z], k = ⌊shift⌋, t = shift − k, in float32 for
// every type; integers round half to even. volume has shape planes × ny × nx and is changed in place, its rows y0 …
// y1−1. shift holds one finite number per A-line, in ny rows that lie pitch numbers apart. A NaN or infinite voxel
// affects only the two voxels interpolated from it. Roll returns the number of such voxels, in float32.
func Roll[T dtype.Element](w *RollWorkspace, volume []T, planes, ny, nx, y0, y1 int, shift []float32, pitch int) (nonFinite int64) {
	for x := 0; x < nx; x += rollColumns {
		width := min(rollColumns, nx-x)
		for y := y0; y < y1; y++ {
			nonFinite += rollRow(w, volume[y*nx+x:], planes, ny*nx, shift[y*pitch+x:][:width])
		}
	}
	return nonFinite
}

// RollWorkspace is the scratch memory of [Roll], which a worker reuses.
type RollWorkspace struct {
	in, out []float32 // planes of one row, rollStride numbers apart
	offset  [rollColumns]int32
	t       [rollColumns]float32
}

// rollColumns is the number of A-lines rolled at a time: whole cache lines of every plane for most types, and
// few enough that their planes stay in a core's cache.
const rollColumns = 96

// rollStride is the distance of the planes of a row: an odd number of cache lines, so that eight A-lines from
// top to bottom spread over the whole first-level cache.
const rollStride = rollColumns + 16

// rollRow rolls the A-lines of a row; volume begins at its first voxel.
func rollRow[T dtype.Element](w *RollWorkspace, volume []T, planes, stride int, shift []float32) (nonFinite int64) {
	n := len(shift)
	base, reach := w.split(shift, planes)
	if need := (planes + reach + 2) * rollStride; len(w.in) < need {
		w.in = make([]float32, need)
	}
	if len(w.out) < planes*rollStride {
		w.out = make([]float32, planes*rollStride)
	}
	z, isFloat := base, dtype.Of[T]().IsFloat()
	for p := range planes + reach + 1 {
		ToFloat32(w.in[p*rollStride:], volume[z*stride:z*stride+n])
		if isFloat && p < planes {
			nonFinite += CountNonFinite(w.in[p*rollStride : p*rollStride+n])
		}
		if z++; z == planes {
			z = 0
		}
	}
	for x := 0; x < n; x += 8 {
		w.interpolate(x, min(8, n-x), planes)
	}
	for z := range planes {
		FromFloat32(volume[z*stride:z*stride+n], w.out[z*rollStride:z*rollStride+n])
	}
	return nonFinite
}

// split takes shifts apart: A-line x begins at plane base + offset[x] modulo
// planes, offset 0 … reach, and at the fraction t[x].
func (w *RollWorkspace) split(shift []float32, planes int) (base, reach int) {
	n := float64(planes)
	whole := func(s float32) int { return int(math.Mod(math.Mod(math.Floor(float64(s)), n)+n, n)) }
	// the shifts of a row lie close together: count from the least of them
	least := shift[0]
	for _, s := range shift {
		least = min(least, s)
	}
	base = whole(least)
	for x, s := range shift {
		k := (whole(s) - base + planes) % planes
		w.offset[x] = int32(k)
		w.t[x] = s - float32(math.Floor(float64(s)))
		reach = max(reach, k)
	}
	for x := len(shift); x%8 != 0; x++ {
		w.offset[x], w.t[x] = w.offset[x-1], 0
	}
	return base, reach
}

// interpolate makes the output of A-lines x … x+n−1, n ≤ 8, in w.out.
func (w *RollWorkspace) interpolate(x, n, planes int) {
	if w.interpolateVector(x, planes) {
		return
	}
	for ; n > 0; x, n = x+1, n-1 {
		in := w.in[int(w.offset[x])*rollStride+x:]
		t := w.t[x]
		s := 1 - t
		a := in[0]
		for z := range planes {
			b := in[(z+1)*rollStride]
			w.out[z*rollStride+x] = float32(s*a) + float32(t*b)
			a = b
		}
	}
}
