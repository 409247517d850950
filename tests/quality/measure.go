package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"

	"strata/pkg/filter"
	"strata/pkg/oct/stitch"
)

// result is the deviation of a volume from the truth. Lengths are in micrometres.
type result struct {
	Phantom string
	Way     string
	Voxel   float64

	Seams    float64 // how much tiles differ where they overlap, in per cent of their brightness
	TilesRMS float64 // of tiles in their slice, along an axis

	PairsZ   []float64 // by how much a slice is too deep below the one before it
	SliceXY  []float64 // how far each slice lies from where it should, in the plane
	XYRMS    float64   // of these, along an axis
	Left     float64
	Depth    float64 // by how much the volume is too deep
	LengthZ  float64
	LengthY  float64
	LengthX  float64
	Patches  int
	Equal    float64 // by how much slices differ in brightness at the same depth
	Bands    float64 // by how much it changes along z, attenuation included
	position [][3]float64
}

// tiles compares the positions of the tiles in each slice with their true positions.
func (r *result) tiles(t *truth, dir string) error {
	var all, seams []float64
	c := &t.Config
	n := c.Tiles[0] * c.Tiles[1]
	for k := range c.Slices {
		b, err := os.ReadFile(filepath.Join(dir, fmt.Sprintf("slice_z%02d.json", k)))
		if err != nil {
			return err
		}
		var s stitch.Result
		if err := json.Unmarshal(b, &s); err != nil {
			return err
		}
		for _, seam := range s.Seams {
			if seam.Correlation > 0.3 { // tissue
				seams = append(seams, 100*seam.Relative)
			}
		}
		for d := range 2 {
			voxel := c.Voxel[d+1] * float64(c.Tile[d+1]) / float64(s.Tile[d])
			var off []float64
			sum := 0.0
			for i, p := range s.Tiles {
				e := p.Position[d]*voxel - t.positions[(k*n+i)*2+d]*c.Voxel[d+1]
				off = append(off, e)
				sum += e
			}
			for _, e := range off {
				all = append(all, e-sum/float64(len(off)))
			}
		}
	}
	r.TilesRMS, r.Seams = rms(all), median(seams)
	return nil
}

// geometry determines the position of each slice in the volume from slabs that show only that slice.
func (r *result) geometry(ctx context.Context, t *truth, path string) error {
	v, err := readVolume(ctx, path)
	if err != nil {
		return err
	}
	looks := v.contrast()
	r.Voxel = v.voxel[0]
	phase := filter.NewPhase()
	c := &t.Config
	var at, off [3][]float64
	last := 0.0 // where the slice before begins to be too deep
	for k := range c.Slices {
		truth, err := t.slice(ctx, k)
		if err != nil {
			return err
		}
		other := truth.regridded(v.voxel).contrast()
		var slice [3][]float64
		first := len(at[0])
		// the slabs between this slice's first planes and the next one's
		for depth := 30.0; depth+slab*v.voxel[0] < c.Cut-20; depth += slab * v.voxel[0] {
			z := int((float64(k)*c.Cut + depth + last) / v.voxel[0])
			if z+slab > v.n[0] {
				break
			}
			expected := int((depth + c.Water) / c.Voxel[0] * c.Voxel[0] / v.voxel[0])
			near := find(phase, looks, other, z, expected, 26)
			if near.correlation < 0.1 {
				continue
			}
			for _, p := range patches(looks, other, z, near) {
				for d := range 3 {
					slice[d] = append(slice[d], p.off[d])
					at[d], off[d] = append(at[d], p.at[d]), append(off[d], p.off[d])
				}
			}
		}
		var p [3]float64
		if len(slice[0]) < 4 {
			fmt.Printf("%s: slice %d cannot be found in it: %d patches\n", path, k, len(slice[0]))
		}
		for d := range 3 {
			p[d] = median(slice[d])
		}
		var left []float64
		for _, z := range slice[0] {
			left = append(left, z-p[0])
		}
		r.Left = max(r.Left, rms(left))
		if k > 0 {
			r.PairsZ = append(r.PairsZ, r.position[k-1][0]-p[0])
		}
		r.position = append(r.position, p)
		if p[0] == p[0] {
			last = r.position[0][0] - p[0]
		}
		for d := 1; d < 3; d++ { // lengths in the plane are those within slices
			centre(at[d][first:])
			centre(off[d][first:])
		}
		r.Patches += len(slice[0])
	}
	var mean [3]float64
	for _, p := range r.position {
		for d := range 3 {
			mean[d] += p[d] / float64(len(r.position))
		}
	}
	var xy []float64
	for _, p := range r.position {
		y, x := mean[1]-p[1], mean[2]-p[2]
		xy = append(xy, y, x)
		r.SliceXY = append(r.SliceXY, math.Hypot(y, x))
	}
	r.XYRMS = rms(xy)
	// a length in the volume is too long by what the truth lacks
	r.LengthZ, r.LengthY, r.LengthX = -100*slope(at[0], off[0]), -100*slope(at[1], off[1]), -100*slope(at[2], off[2])
	end := float64(c.Slices-1) * c.Cut
	r.Depth = 100 * (r.position[0][0] - r.position[len(r.position)-1][0]) / end
	return nil
}

// brightness compares the mean brightness over the tissue of the volume with that of the truth: by depth below the
// slice's surface, and over all planes.
func (r *result) brightness(ctx context.Context, t *truth, path string) error {
	v, err := readVolume(ctx, path)
	if err != nil {
		return err
	}
	c := &t.Config
	by := map[int][]float64{} // depth below the surface, in planes: what slices have there
	var along []float64
	for k := range c.Slices {
		truth, err := t.slice(ctx, k)
		if err != nil {
			return err
		}
		p := r.position[k]
		for depth := 30.0; depth < c.Cut-10; depth += v.voxel[0] {
			z := int(math.Round((float64(k)*c.Cut + depth - p[0]) / v.voxel[0]))
			from := (depth + c.Water) / c.Voxel[0]
			if z < 0 || z >= v.n[0] {
				continue
			}
			var here, there float64
			for y := range v.n[1] {
				for x := range v.n[2] {
					f, ok := truth.at(from, (float64(y)*v.voxel[1]+p[1]-truth.o[1])/c.Voxel[1], (float64(x)*v.voxel[2]+p[2]-truth.o[2])/c.Voxel[2])
					decay := math.Exp(2 * c.Attenuation / 1000 * depth)
					if g := float64(f) * decay; ok && g > 0.3*c.Gain && v.plane(z)[y*v.n[2]+x] > 0 {
						here += float64(v.plane(z)[y*v.n[2]+x])
						there += g
					}
				}
			}
			if there == 0 {
				continue
			}
			along = append(along, here/there)
			if k > 0 { // the first slice has none above it to be blended with
				by[int(depth/v.voxel[0])] = append(by[int(depth/v.voxel[0])], here/there)
			}
		}
	}
	spread := func(v []float64) float64 {
		lo, hi, sum := math.Inf(1), math.Inf(-1), 0.0
		for _, f := range v {
			lo, hi, sum = min(lo, f), max(hi, f), sum+f
		}
		return 100 * (hi - lo) / (2 * sum / float64(len(v)))
	}
	for _, v := range by {
		if len(v) > 1 {
			r.Equal = max(r.Equal, spread(v))
		}
	}
	r.Bands = spread(along)
	return nil
}
