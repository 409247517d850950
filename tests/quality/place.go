package main

import (
	"math"
)

// rigid is the position of a slice in a volume: point p of the volume, in micrometres, is p + off of the slice, turned
// by a small angle about a centre (y, x).
type rigid struct {
	off    [3]float64
	angle  float64 // radians
	centre [2]float64
}

// placed returns the position of a slice from its patches; it is NaN without any. The angle is 0 unless asked for.
func placed(patches []patchPlace, angle bool) (p rigid) {
	for d := range 3 {
		var off []float64
		for _, q := range patches {
			off = append(off, q.off[d])
		}
		p.off[d] = median(off)
	}
	if !angle || len(patches) == 0 {
		return p
	}
	var mean [2]float64 // displacement
	n := float64(len(patches))
	for _, q := range patches {
		for d := range 2 {
			p.centre[d] += q.at[1+d] / n
			mean[d] += q.off[1+d] / n
		}
	}
	var across, square float64
	for _, q := range patches {
		y, x := q.at[1]-p.centre[0], q.at[2]-p.centre[1]
		across += x*(q.off[1]-mean[0]) - y*(q.off[2]-mean[1])
		square += y*y + x*x
	}
	p.angle = across / square
	for d := range 2 { // what the angle explains is not displacement
		var off []float64
		for _, q := range patches {
			off = append(off, q.off[1+d]-p.turned(q.at)[d])
		}
		p.off[1+d] = median(off)
	}
	return p
}

// turned returns by how much (y, x) the angle moves a point.
func (p *rigid) turned(at [3]float64) [2]float64 {
	return [2]float64{p.angle * (at[2] - p.centre[1]), -p.angle * (at[1] - p.centre[0])}
}

// slice returns the point of the slice that lies at a point of the volume.
func (p *rigid) slice(at [3]float64) [3]float64 {
	turned := p.turned(at)
	return [3]float64{at[0] + p.off[0], at[1] + p.off[1] + turned[0], at[2] + p.off[2] + turned[1]}
}

// inBlock returns the patches of a slice with their displacements in the block, where slices lie as they were before
// they were turned.
func (t *truth) inBlock(slice int, patches []patchPlace) []patchPlace {
	out := append([]patchPlace(nil), patches...)
	for _, turn := range t.Turns {
		if turn.Slice != slice {
			continue
		}
		sin, cos := math.Sincos(turn.Degrees * math.Pi / 180)
		vy, vx := t.Config.Voxel[1], t.Config.Voxel[2]
		for i := range out {
			q := &out[i]
			y, x := (q.at[1]+q.off[1])/vy-turn.Middle[0], (q.at[2]+q.off[2])/vx-turn.Middle[1]
			q.off[1] = (turn.Middle[0]+cos*y+sin*x)*vy - q.at[1]
			q.off[2] = (turn.Middle[1]+cos*x-sin*y)*vx - q.at[2]
		}
	}
	return out
}

// places is the number of places along each axis at which the position of a slice is compared.
const places = 3

// cells returns the displacement along an axis at each of 3 × 3 places of a slice, or NaN for a slice without patches.
func cells(patches []patchPlace, axis int, v *volume) (out []float64) {
	var at [places * places][]float64
	for _, q := range patches {
		i := 0
		for d := 1; d < 3; d++ {
			i = i*places + min(int(q.at[d]/v.voxel[d]*places/float64(v.n[d])), places-1)
		}
		at[i] = append(at[i], q.off[axis])
	}
	for _, off := range at {
		if len(off) >= 4 {
			out = append(out, median(off))
		}
	}
	if out == nil {
		out = []float64{math.NaN()}
	}
	return out
}
