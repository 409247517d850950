package mattes

import (
	"math"

	"strata/pkg/filter"
)

// Volume is an image in space: voxels (z, y, x) in C order. Voxel (0, 0, 0) lies at Origin, its neighbours Spacing
// apart.
type Volume struct {
	Shape           [3]int // (z, y, x)
	Origin, Spacing Vec    // (x, y, z)
	Voxels          []float32
}

// at returns the place of a voxel.
func (v *Volume) at(z, y, x int) Vec {
	return Vec{v.Origin[0] + float64(float64(x)*v.Spacing[0]), v.Origin[1] + float64(float64(y)*v.Spacing[1]), v.Origin[2] + float64(float64(z)*v.Spacing[2])}
}

// centroid returns the mean place of the voxels above 0. ok is false if there are none.
func (v *Volume) centroid() (c Vec, ok bool) {
	var n [3]float64
	total, i := 0.0, 0
	for z := range v.Shape[0] {
		for y := range v.Shape[1] {
			for x := range v.Shape[2] {
				if v.Voxels[i] > 0 {
					total++
					n[0], n[1], n[2] = n[0]+float64(x), n[1]+float64(y), n[2]+float64(z)
				}
				i++
			}
		}
	}
	for d := range c {
		c[d] = v.Origin[d] + float64(n[d]/total*v.Spacing[d])
	}
	return c, total > 0
}

// sample returns the value between voxels and its gradient per unit of space. ok is false outside the image.
func (v *Volume) sample(p Vec) (value float64, gradient Vec, ok bool) {
	var i, j [3]int
	var t Vec
	for d := range p {
		n := v.Shape[2-d]
		u := (p[d] - v.Origin[d]) / v.Spacing[d]
		if !(u >= -0.5 && u <= float64(n)-0.5) {
			return 0, gradient, false
		}
		u = min(max(u, 0), float64(n-1))
		i[d] = int(u)
		j[d] = min(i[d]+1, n-1)
		t[d] = u - float64(i[d])
	}
	row := func(z, y int) (a, b float64) {
		r := (z*v.Shape[1] + y) * v.Shape[2]
		return float64(v.Voxels[r+i[0]]), float64(v.Voxels[r+j[0]])
	}
	mix := func(a, b, t float64) float64 { return a + float64((b-a)*t) }
	a0, a1 := row(i[2], i[1])
	b0, b1 := row(i[2], j[1])
	c0, c1 := row(j[2], i[1])
	d0, d1 := row(j[2], j[1])
	a, b, c, d := mix(a0, a1, t[0]), mix(b0, b1, t[0]), mix(c0, c1, t[0]), mix(d0, d1, t[0])
	front, back := mix(a, b, t[1]), mix(c, d, t[1])
	gradient[0] = mix(mix(a1-a0, b1-b0, t[1]), mix(c1-c0, d1-d0, t[1]), t[2]) / v.Spacing[0]
	gradient[1] = mix(b-a, d-c, t[2]) / v.Spacing[1]
	gradient[2] = (back - front) / v.Spacing[2]
	return mix(front, back, t[2]), gradient, true
}

// shrink returns the volume smoothed by a Gaussian of sigma voxels, and every n-th voxel of it, beginning in the middle
// of the first n. Axes of fewer than 4·n voxels keep theirs.
func (v *Volume) shrink(n int, sigma float64, each func(n int, f func(i int) error) error) (*Volume, error) {
	if n == 1 && sigma == 0 {
		return v, nil
	}
	out := &Volume{Shape: v.Shape, Origin: v.Origin, Spacing: v.Spacing, Voxels: v.Voxels}
	var taps []float32
	for _, w := range filter.GaussianKernel(sigma, 0) {
		taps = append(taps, float32(w))
	}
	for d := range 3 { // z, y, x
		f := n
		if out.Shape[d] < 4*n {
			f = 1
		}
		if err := out.alongAxis(d, f, taps, each); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// alongAxis smooths and thins the voxels along an axis.
func (v *Volume) alongAxis(d, f int, taps []float32, each func(n int, f func(i int) error) error) error {
	n := v.Shape[d]
	m := n / f
	outer, inner := 1, 1
	for k, s := range v.Shape {
		if k < d {
			outer *= s
		} else if k > d {
			inner *= s
		}
	}
	src := v.Voxels
	v.Voxels = make([]float32, outer*m*inner)
	v.Shape[d] = m
	v.Origin[2-d] += float64(float64(f/2) * v.Spacing[2-d])
	v.Spacing[2-d] *= float64(f)
	if inner == 1 {
		return each(outer, func(i int) error {
			alongRow(v.Voxels[i*m:][:m], src[i*n:][:n], f, taps)
			return nil
		})
	}
	return each(outer*m, func(i int) error {
		dst := v.Voxels[i*inner:][:inner]
		from := src[i/m*n*inner:]
		first := i%m*f + f/2 - len(taps)/2
		if first >= 0 && first+len(taps) <= n {
			filter.AddCombine(dst, from[first*inner:], inner, taps)
			return nil
		}
		for k := range taps {
			filter.AddCombine(dst, from[filter.Nearest.Index(first+k, n)*inner:][:inner], 0, taps[k:k+1])
		}
		return nil
	})
}

// alongRow smooths and thins a row.
func alongRow(dst, src []float32, f int, taps []float32) {
	wide := make([]float32, len(src)+len(taps)-1)
	for i := range wide {
		wide[i] = src[filter.Nearest.Index(i-len(taps)/2, len(src))]
	}
	if f == 1 {
		filter.AddCombine(dst, wide, 1, taps)
		return
	}
	for x := range dst {
		sum := float32(0)
		for k, v := range wide[x*f+f/2:][:len(taps)] {
			sum += float32(taps[k] * v)
		}
		dst[x] = sum
	}
}

// limits returns the values of an image without its outliers: from the share low of the sorted values to high.
func limits(sorted []float32, low, high float64) (a, b float64) {
	n := float64(len(sorted) - 1)
	return float64(sorted[int(math.Floor(n*low))]), float64(sorted[int(math.Ceil(n*high))])
}
