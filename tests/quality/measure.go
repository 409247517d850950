package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"strata/pkg/dtype"
	"strata/pkg/filter"
	"strata/pkg/oct/stitch"
	"strata/pkg/phantom"
)

// result is the deviation of a volume from the truth. Lengths are in micrometres.
type result struct {
	Phantom string
	Way     string
	Voxel   float64

	Seams    float64 // how much tiles differ where they overlap, in per cent of their brightness
	TilesRMS float64 // of tiles in their slice, along an axis

	PairsZ   []float64 // by how much a slice is too deep below the one before it
	ZRMS     float64   // of slices, along z
	XYRMS    float64   // of the places of all slices, along an axis
	Left     float64
	Depth    float64 // by how much the volume is too deep
	Quarter  float64 // a quarter of a plane, in per cent of the volume's depth: slices lie at whole planes
	LengthZ  float64
	LengthY  float64
	LengthX  float64
	Patches  int
	Equal    float64 // by how much slices differ in brightness at the same depth
	Bands    float64 // by how much it changes along z, attenuation included
	Step     float64 // the largest change of brightness from a plane to the next, in per cent
	Planes   float64 // the brightest plane's brightness over the darkest one's
	Shading  float64 // what is left of the shape of the tiles' illumination, in per cent
	position []rigid
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
	config := *c
	config.DType = dtype.Float32 // truth.json keeps it apart; surfaces don't depend on it
	specimen, err := phantom.New(config)
	if err != nil {
		return err
	}
	var slices [][]patchPlace
	var depths []float64 // of slices in the block
	last := 0.0          // where the slice before begins to be too deep
	for k := range c.Slices {
		truth, err := t.slice(ctx, k)
		if err != nil {
			return err
		}
		other := truth.regridded(v.voxel).contrast()
		var slice []patchPlace
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
			slice = append(slice, patches(looks, other, z, near)...)
		}
		if len(slice) < 4 {
			fmt.Printf("%s: slice %d cannot be found in it: %d patches\n", path, k, len(slice))
		}
		p := placed(slice, len(t.Turns) > 0)
		var left []float64
		for _, q := range slice {
			left = append(left, q.off[0]-p.off[0])
		}
		r.Left = max(r.Left, rms(left))
		if k > 0 {
			r.PairsZ = append(r.PairsZ, r.position[k-1].off[0]-p.off[0])
		}
		r.position = append(r.position, p)
		if deep := r.position[0].off[0] - p.off[0]; deep == deep { // both were found
			last = deep
		}
		r.Patches += len(slice)
		slice = t.inBlock(k, slice)
		relief := surface(specimen, c, k, slice)
		for i := range slice {
			slice[i].off[0] -= relief
		}
		slices, depths = append(slices, slice), append(depths, p.off[0]-relief)
	}
	r.spread(t, v, slices)
	end := float64(c.Slices-1) * c.Cut
	r.Quarter = 100 * r.Voxel / 4 / end
	r.Depth = 100 * (depths[0] - depths[len(depths)-1]) / end
	return nil
}

// surface returns how far the surface of a slice lies below the mean of the block's at its patches: their median in
// micrometres. The phantom's tissue follows the surface, so all that a slice shows lies as much too deep in it. On many
// tiles that is next to nothing.
func surface(s *phantom.Specimen, c *phantom.Config, slice int, patches []patchPlace) float64 {
	var deep []float64
	for _, q := range patches {
		y, x := (q.at[1]+q.off[1])/c.Voxel[1], (q.at[2]+q.off[2])/c.Voxel[2]
		deep = append(deep, s.Surface(slice, y, x)*c.Voxel[0]-c.Water)
	}
	return median(deep)
}

// spread determines how far the slices lie from where the block has them, and how long distances in it are. Where the
// whole volume lies in the block, and by what angle, does not count.
func (r *result) spread(t *truth, v *volume, slices [][]patchPlace) {
	if len(t.Turns) > 0 {
		var all []patchPlace
		for _, s := range slices {
			all = append(all, s...)
		}
		whole := placed(all, true)
		for _, s := range slices {
			for i := range s {
				turned := whole.turned(s[i].at)
				s[i].off[1] -= turned[0]
				s[i].off[2] -= turned[1]
			}
		}
	}
	var at, off [3][]float64
	var z, xy []float64
	for _, s := range slices {
		p := placed(s, false)
		z = append(z, p.off[0])
		for d := range 3 {
			first := len(at[d])
			for _, q := range s {
				at[d], off[d] = append(at[d], q.at[d]), append(off[d], q.off[d])
			}
			if d > 0 { // lengths in the plane are those within slices
				centre(at[d][first:])
				centre(off[d][first:])
			}
		}
	}
	for d := 1; d < 3; d++ {
		var places []float64
		for _, s := range slices {
			places = append(places, cells(s, d, v)...)
		}
		centre(places)
		xy = append(xy, places...)
	}
	centre(z)
	r.ZRMS, r.XYRMS = rms(z), rms(xy)
	// a length in the volume is too long by what the truth lacks
	r.LengthZ, r.LengthY, r.LengthX = -100*slope(at[0], off[0]), -100*slope(at[1], off[1]), -100*slope(at[2], off[2])
}
