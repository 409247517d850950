package main

import (
	"context"
	"math"
)

// tissue calls each with the voxels of a plane of the volume that show tissue of a slice: their position in the slice
// in micrometres, their value, and the reflectivity that the truth has there. The plane lies depth micrometres below
// the slice's surface.
func (r *result) tissue(t *truth, v, slice *volume, k, z int, depth float64, each func(at [3]float64, value, reflectivity float64)) {
	c := &t.Config
	from := (depth + c.Water) / c.Voxel[0]
	decay := math.Exp(2 * c.Attenuation / 1000 * depth)
	plane := v.plane(z)
	for y := range v.n[1] {
		for x := range v.n[2] {
			at := r.position[k].slice([3]float64{0, float64(y) * v.voxel[1], float64(x) * v.voxel[2]})
			f, ok := slice.at(from, (at[1]-slice.o[1])/c.Voxel[1], (at[2]-slice.o[2])/c.Voxel[2])
			if g := float64(f) * decay; ok && g > 0.3*c.Gain && plane[y*v.n[2]+x] > 0 {
				each(at, float64(plane[y*v.n[2]+x]), g)
			}
		}
	}
}

// ratio returns the brightness of the tissue of a slice in a plane over its reflectivity; ok is false where there is
// none.
func (r *result) ratio(t *truth, v, slice *volume, k, z int, depth float64) (ratio float64, ok bool) {
	var here, there float64
	r.tissue(t, v, slice, k, z, depth, func(_ [3]float64, value, reflectivity float64) {
		here += value
		there += reflectivity
	})
	return here / there, there > 0
}

// plane returns the plane of the volume that lies depth micrometres below the surface of a slice.
func (r *result) plane(t *truth, v *volume, k int, depth float64) (z int, ok bool) {
	z = int(math.Round((float64(k)*t.Config.Cut + depth - r.position[k].off[0]) / v.voxel[0]))
	return z, z >= 0 && z < v.n[0]
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
		for depth := 30.0; depth < c.Cut-10; depth += v.voxel[0] {
			z, ok := r.plane(t, v, k, depth)
			if !ok {
				continue
			}
			ratio, ok := r.ratio(t, v, truth, k, z, depth)
			if !ok {
				continue
			}
			along = append(along, ratio)
			if k > 0 { // the first slice has none above it to be blended with
				by[int(depth/v.voxel[0])] = append(by[int(depth/v.voxel[0])], ratio)
			}
		}
	}
	for _, v := range by {
		if len(v) > 1 {
			lo, hi, mean := extremes(v)
			r.Equal = max(r.Equal, 100*(hi-lo)/(2*mean))
		}
	}
	lo, hi, mean := extremes(along)
	r.Bands = 100 * (hi - lo) / (2 * mean)
	return nil
}

func extremes(v []float64) (lo, hi, mean float64) {
	lo, hi = math.Inf(1), math.Inf(-1)
	for _, f := range v {
		lo, hi, mean = min(lo, f), max(hi, f), mean+f/float64(len(v))
	}
	return lo, hi, mean
}

// The first plane of a slice that is measured lies this far below its surface in µm: above it some of the plane is
// water.
const skin = 10

// evenness measures how even the brightness of the tissue is in a volume whose attenuation and illumination were
// compensated: from plane to plane, and within the tiles.
func (r *result) evenness(ctx context.Context, t *truth, path string) error {
	v, err := readVolume(ctx, path)
	if err != nil {
		return err
	}
	c := &t.Config
	var along []float64
	s := newShading(t)
	for k := range c.Slices {
		truth, err := t.slice(ctx, k)
		if err != nil {
			return err
		}
		for depth := float64(skin); depth < c.Cut+skin; depth += v.voxel[0] {
			z, ok := r.plane(t, v, k, depth)
			if !ok {
				continue
			}
			var here, there float64
			r.tissue(t, v, truth, k, z, depth, func(at [3]float64, value, reflectivity float64) {
				here += value
				there += reflectivity
				if depth > 30 && depth < c.Cut-10 { // no other slice is blended with it
					s.add(k, at, value, reflectivity)
				}
			})
			if there > 0 {
				along = append(along, here/there)
			}
		}
	}
	lo, hi, mean := extremes(along)
	r.Planes = hi / lo
	// The first planes of the volume lie at the surface of the block: there is no join.
	for i := int(2 * skin / v.voxel[0]); i+1 < len(along); i++ {
		r.Step = max(r.Step, 100*math.Abs(along[i+1]-along[i])/mean)
	}
	r.Shading = s.left()
	return nil
}

// shades is the number of places along each axis of a tile at which its brightness is compared.
const shades = 8

// shading sums up the brightness of tissue, and its reflectivity, by its place in the tiles.
type shading struct {
	t     *truth
	tiles [][shades * shades][2]float64 // of shape (slice, i, j)
}

func newShading(t *truth) *shading {
	c := &t.Config
	return &shading{t, make([][shades * shades][2]float64, c.Slices*c.Tiles[0]*c.Tiles[1])}
}

// add adds a voxel at a position in a slice. Tiles of the first row and column are left out: what they show is not
// covered by tiles on all sides.
func (s *shading) add(slice int, at [3]float64, value, reflectivity float64) {
	c := &s.t.Config
	m := &c.Matrix
	det := m[0][0]*m[1][1] - m[0][1]*m[1][0]
	p := s.t.Positions[slice]
	y, x := at[1]/c.Voxel[1]-p[0], at[2]/c.Voxel[2]-p[1]
	y, x = (m[1][1]*y-m[0][1]*x)/det, (m[0][0]*x-m[1][0]*y)/det
	y, x = y/(float64(c.Tile[1])*(1-c.Overlap)), x/(float64(c.Tile[2])*(1-c.Overlap))
	if y < 1 || x < 1 || y >= float64(c.Tiles[0]) || x >= float64(c.Tiles[1]) {
		return
	}
	tile := &s.tiles[(slice*c.Tiles[0]+int(y))*c.Tiles[1]+int(x)]
	sum := &tile[int((y-math.Floor(y))*shades)*shades+int((x-math.Floor(x))*shades)]
	sum[0] += value
	sum[1] += reflectivity
}

// left returns by how much brightness varies with the place in a tile: root mean square in per cent, of the mean over
// tiles that are all tissue.
func (s *shading) left() float64 {
	var mean [shades * shades]float64
	n := 0
	for _, tile := range s.tiles {
		var ratio []float64
		most := 0.0
		for _, sum := range tile {
			most = max(most, sum[1])
		}
		for _, sum := range tile {
			if sum[1] > 0 && sum[1] > most/2 {
				ratio = append(ratio, sum[0]/sum[1])
			}
		}
		if len(ratio) < len(tile) {
			continue
		}
		_, _, middle := extremes(ratio)
		n++
		for i, f := range ratio {
			mean[i] += f / middle
		}
	}
	var off []float64
	for _, f := range mean {
		off = append(off, 100*(f/float64(n)-1))
	}
	if n == 0 {
		return math.NaN()
	}
	return rms(off)
}
