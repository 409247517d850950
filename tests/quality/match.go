package main

import (
	"math"
	"slices"

	"strata/pkg/filter"
)

const (
	contrastUM = 100 // size of the local mean that is divided out before comparing
	slab       = 6   // number of planes compared together
	patch      = 32  // pixels of a patch, along y and x
	reach      = 3   // search range of a patch around the slice's position, voxels
)

// regridded returns the truth on the grid of another volume, with its origin kept, as local contrast in each
// plane.
func (v *volume) regridded(voxel [3]float64) *volume {
	out := &volume{voxel: voxel, o: v.o}
	for d := range 3 {
		out.n[d] = int(float64(v.n[d]-1) * v.voxel[d] / voxel[d])
	}
	out.v = make([]float32, out.n[0]*out.n[1]*out.n[2])
	i := 0
	for z := range out.n[0] {
		for y := range out.n[1] {
			for x := range out.n[2] {
				out.v[i], _ = v.at(float64(z)*voxel[0]/v.voxel[0], float64(y)*voxel[1]/v.voxel[1], float64(x)*voxel[2]/v.voxel[2])
				i++
			}
		}
	}
	return out
}

// contrast returns the volume as local contrast in each plane.
func (v *volume) contrast() *volume {
	out := &volume{n: v.n, voxel: v.voxel, o: v.o, v: make([]float32, len(v.v))}
	window := int(contrastUM/v.voxel[1]) | 1
	for z := range v.n[0] {
		filter.LocalContrast(out.plane(z), v.plane(z), v.n[1], v.n[2], window)
	}
	return out
}

// mean returns the mean of n planes from z on, on a larger canvas.
func (v *volume) mean(z, n, ny, nx int) []float32 {
	sums, out := make([]float64, v.n[1]*v.n[2]), make([]float32, v.n[1]*v.n[2])
	for k := range n {
		filter.AddPlanes(sums, v.plane(z+k))
	}
	filter.Mean(out, sums, n)
	wide := make([]float32, ny*nx)
	for y := range v.n[1] {
		copy(wide[y*nx:], out[y*v.n[2]:][:v.n[2]])
	}
	return wide
}

// place is the position of a slab of the volume: its voxel p is voxel p + d of the truth.
type place struct {
	d           [3]float64
	correlation float64
}

// find searches the truth for a slab of the volume, planes z … z+slab−1: in a range of planes around plane
// expected, and everywhere in the plane.
func find(phase *filter.Phase, v, truth *volume, z, expected, far int) (best place) {
	ny, nx := max(v.n[1], truth.n[1]), max(v.n[2], truth.n[2])
	here := v.mean(z, slab, ny, nx)
	for _, step := range []int{2, 1} {
		around := expected
		if step == 1 {
			around, far = int(best.d[0])+z, 1
		}
		for t := around - far; t <= around+far; t += step {
			if t < 0 || t+slab > truth.n[0] {
				continue
			}
			m := phase.Match(truth.mean(t, slab, ny, nx), here, ny, nx)
			if m.Correlation > best.correlation {
				best = place{[3]float64{float64(t - z), float64(m.DY), float64(m.DX)}, m.Correlation}
			}
		}
	}
	return best
}

// patchPlace is the position of a patch in the volume, and its displacement in the truth, in micrometres.
type patchPlace struct{ at, off [3]float64 }

// patches determines the displacement of each patch of a slab separately, to a fraction of a voxel.
func patches(v, truth *volume, z int, near place) (out []patchPlace) {
	var d [3]int
	for k := range d {
		d[k] = int(math.Round(near.d[k]))
	}
	for y := 0; y+patch <= v.n[1]; y += patch / 2 {
		for x := 0; x+patch <= v.n[2]; x += patch / 2 {
			score := func(dz, dy, dx int) float64 {
				a := [3]int{z + d[0] + dz, y + d[1] + dy, x + d[2] + dx}
				for k, n := range [3]int{slab, patch, patch} {
					if a[k] < 0 || a[k]+n > truth.n[k] {
						return math.NaN()
					}
				}
				var m filter.Moments
				for k := range slab {
					for r := range patch {
						f := v.plane(z + k)[(y+r)*v.n[2]+x:][:patch]
						g := truth.plane(a[0] + k)[(a[1]+r)*truth.n[2]+a[2]:][:patch]
						fs, fq := filter.Sums(f)
						gs, gq := filter.Sums(g)
						var dots [1]float64
						filter.Dots(dots[:], f, [][]float32{g})
						m.Add(filter.Moments{N: patch, A: fs, AA: fq, B: gs, BB: gq, AB: dots[0]})
					}
				}
				return m.NCC()
			}
			if p, ok := climb(score); ok {
				place := patchPlace{}
				for k, at := range [3]float64{float64(z) + slab/2, float64(y) + patch/2, float64(x) + patch/2} {
					place.at[k] = at * v.voxel[k]
					place.off[k] = (float64(d[k])+p[k])*v.voxel[k] + truth.o[k]
				}
				out = append(out, place)
			}
		}
	}
	return out
}

// climb returns the maximum of a correlation around displacement zero, to a fraction of a voxel.
func climb(score func(dz, dy, dx int) float64) (top [3]float64, ok bool) {
	var at [3]int
	known := map[[3]int]float64{}
	get := func(p [3]int) float64 {
		v, ok := known[p]
		if !ok {
			v = score(p[0], p[1], p[2])
			known[p] = v
		}
		return v
	}
	for {
		best := at
		for k := range 27 {
			p := [3]int{at[0] + k/9 - 1, at[1] + k/3%3 - 1, at[2] + k%3 - 1}
			if get(p) > get(best) {
				best = p
			}
		}
		if best == at {
			break
		}
		at = best
		if max(at[0], at[1], at[2]) > reach || min(at[0], at[1], at[2]) < -reach {
			return top, false
		}
	}
	middle := get(at)
	if !(middle > 0.3) { // water, agarose, or another slice
		return top, false
	}
	for k := range 3 {
		lo, hi := at, at
		lo[k]--
		hi[k]++
		a, b := get(lo), get(hi)
		bend := 2*middle - a - b
		if !(bend > 0) {
			return top, false
		}
		top[k] = float64(at[k]) + (b-a)/(2*bend)
	}
	return top, true
}

func median(v []float64) float64 {
	v = slices.Sorted(slices.Values(v))
	if len(v) == 0 {
		return math.NaN()
	}
	return (v[(len(v)-1)/2] + v[len(v)/2]) / 2
}

// centre subtracts the mean.
func centre(v []float64) {
	sum := 0.0
	for _, f := range v {
		sum += f
	}
	for i := range v {
		v[i] -= sum / float64(len(v))
	}
}

// slope returns b of the line a + b·x through the points, by least squares.
func slope(x, y []float64) float64 {
	var n, sx, sy, sxx, sxy float64
	for i := range x {
		n, sx, sy, sxx, sxy = n+1, sx+x[i], sy+y[i], sxx+x[i]*x[i], sxy+x[i]*y[i]
	}
	return (n*sxy - sx*sy) / (n*sxx - sx*sx)
}

func rms(v []float64) float64 {
	s := 0.0
	for _, f := range v {
		s += f * f
	}
	return math.Sqrt(s / float64(max(len(v), 1)))
}
