// Package flatfield divides the tiles of a mosaic grid by the lateral illumination that they share. It is the
// pipeline's illumination stage; [Run] does all of it.
package flatfield

import (
	"context"
	"sync"

	"strata/pkg/filter"
	"strata/pkg/mem"
	"strata/pkg/ngff"
	"strata/pkg/oct"
	"strata/pkg/oct/blocks"
	"strata/pkg/oct/compute"
	"strata/pkg/oct/compute/correct"
	"strata/pkg/units"
	"strata/pkg/zarr/store"
)

// Solver selects how the flat-field is estimated.
type Solver int

const (
	// LinumBasic estimates a field for each plane, from values sorted over the tiles, and averages the planes' fields.
	LinumBasic Solver = iota
	// BasicPy estimates one field from the tiles of several planes together.
	BasicPy
)

// Options configures [Run].
type Options struct {
	Solver        Solver
	MaxIterations int     // LinumBasic: rounds of reweighting; BasicPy: steps of a round; 0: 10, 500
	Smoothness    float64 // λ; 0: LinumBasic chooses it from the images, BasicPy takes 1
	MaxSamples    int     // tiles to estimate from, at least 1: planes are left out if there are more
	PerZ          bool    // a field for each plane instead of one for all
	// PercentileMax is the percentile of the values of all tiles, 0…100, above which BasicPy clips them; 0 clips
	// nothing.
	PercentileMax float64

	DarkField       bool    // subtract a percentile of each pixel over the tiles
	DarkPercentile  float64 // 0…100
	DarkSmoothSigma float64 // of a Gaussian over the dark-field, px
	DarkWindow      int     // with PerZ, average the dark-fields of this many planes before and after; negative: of all
	SmoothSigma     float64 // of a Gaussian over the flat-field, px

	TileUM    float64 // size of a square tile along y, in µm; 0: a tile is a chunk
	ExtraRows int     // first rows of each tile that take no part in the estimate and are divided by the row after them
}

// minNonZero is the minimum share of non-zero voxels; a volume with fewer is refused.
const minNonZero = 0.01

// Result holds the image, the fields and the measurements of [Run].
type Result struct {
	Image *ngff.Image

	Tiles      [2]int      // whole tiles along y and x
	Tile       [2]int      // their height and width, px
	Planes     []int       // that fields were estimated from
	Fields     [][]float32 // of a tile, mean about 1: one, or with PerZ one for each of Planes
	DarkFields [][]float32 // likewise; nil: none
	Skipped    []int       // planes of PerZ with too few tiles to estimate from: they are copied
	Before     Seams       // between neighbouring tiles as read
	After      Seams       // as written
	Curvature  float64     // of the flat-field inside the overlaps, see [curvature]
	Pictures   Pictures
}

// Run divides a mosaic grid (z, y, x) by the flat-field of its tiles and writes the result as an OME-Zarr image of the
// same type, grid and chunks (workflow specification, section 1):
//
// 1. Choose planes so that they have at most MaxSamples whole tiles, evenly spaced from the first to the last.
// 2. Estimate the flat-field F of these tiles by BaSiC, at 128 × 128 pixels, and bring it to the tile's size.
// 3. Compute (v − dark)/F for each voxel in float32, at least 0; integers are rounded half to even and clamped. Partial
// tiles at the far edges are divided by the leading part of F.
//
// The flat-field has mean 1 over the tile, approximately with BasicPy. NaN and infinite voxels count as 0 in the
// estimate. BasicPy makes them 0 in the output, LinumBasic keeps them; a warning counts them. Volumes that are almost
// empty are refused, as are flat-fields that are not positive.
//
// Run reads the tiles of the chosen planes up to four times, and then the mosaic once, block by block. The estimate
// takes 192 KiB a tile.
func Run(ctx context.Context, in *ngff.Image, out store.Writer, c Options, layout oct.Layout, res oct.Resources) (*Result, error) {
	v, err := blocks.Open(in)
	if err != nil {
		return nil, err
	}
	m, err := newMosaic(v, c)
	if err != nil {
		return nil, err
	}
	f := newFitting(m, c, res)
	a, err := planApply(f, layout)
	if err != nil {
		return nil, err
	}
	if err := f.run(ctx); err != nil {
		return nil, err
	}
	r := &Result{Tiles: [2]int{m.ny, m.nx}, Tile: [2]int{m.height, m.width}, Planes: f.planes, Fields: f.fields, DarkFields: f.darks, Skipped: f.skipped}
	if err := f.compare(ctx, r); err != nil {
		return nil, err
	}
	if r.After.L1 > r.Before.L1 {
		res.Warnf("%s: neighbouring tiles differ by %.3g %% after the correction, by %.3g %% before: the flat-field does not suit this mosaic; try the other solver", f.Where, 100*r.After.L1, 100*r.Before.L1)
	}
	if r.Image, err = a.run(ctx, out); err != nil {
		return nil, err
	}
	return r, nil
}

// planApply plans the division of all voxels.
func planApply(f *fitting, layout oct.Layout) (*apply, error) {
	res := f.res.Less(f.bytes())
	if res.Mem < f.res.Mem/4 {
		return nil, f.res.TooLittle(2*f.bytes(), "%s: %s of %d × %d pixels", f.Where, units.Count(f.scopes(), "flat-field"), f.height, f.width)
	}
	plane := 4 * int64(f.height) * int64(f.width)
	change, err := correct.New(f.Volume, f.DType, "dividing blocks", f.bytes()/plane*mem.Pooled(plane), layout, res)
	if err != nil {
		return nil, err
	}
	return &apply{change: change, fields: f}, nil
}

// apply divides the volume.
type apply struct {
	change *correct.Change
	fields *fitting
	mu     sync.Mutex
	census filter.Census
}

func (a *apply) run(ctx context.Context, out store.Writer) (*ngff.Image, error) {
	v, res := a.fields.Volume, a.fields.res
	im, err := a.change.Run(ctx, out, a.share)
	if err != nil {
		return nil, err
	}
	share := float64(a.census.Some) / (float64(v.Shape[0]) * float64(v.Shape[1]) * float64(v.Shape[2]))
	if share < minNonZero {
		return nil, oct.BadInput("%s: %.2g %% of the voxels are other than 0: want at least %g %%", v.Where, 100*share, 100*minNonZero)
	}
	if a.census.Above == 0 {
		return nil, oct.BadInput("%s: no voxel is above 0", v.Where)
	}
	if n := a.census.NonFinite; n > 0 {
		res.Meter.AddNonFinite(n)
		res.Warnf("%s: %d voxels are NaN or infinite: they counted as 0 in the estimate, and %s", v.Where, n,
			map[Solver]string{BasicPy: "are 0 in the output", LinumBasic: "stay in the output"}[a.fields.how.Solver])
	}
	return im, nil
}

// share shares the fields with the workers, and returns what these do with each part: planes that have a field in
// common are divided together.
func (a *apply) share(res *oct.Resources) (func(w compute.Changer, p compute.Part), func(), error) {
	f := a.fields
	shared := map[*float32]*compute.FlatField{} // by their first pixels
	var frees []func()
	free := func() {
		for _, free := range frees {
			free()
		}
	}
	for z := range f.Shape[0] {
		gain, _ := f.at(z)
		if shared[&gain[0]] != nil {
			continue
		}
		field, done, err := correct.Field(res, f.field(z))
		if err != nil {
			free()
			return nil, nil, err
		}
		shared[&gain[0]], frees = field, append(frees, done)
	}
	of := func(z int) *compute.FlatField {
		gain, _ := f.at(z)
		return shared[&gain[0]]
	}
	return func(w compute.Changer, p compute.Part) {
		for z := 0; z < p.Shape[0]; {
			field, end := of(p.Start[0]+z), z+1
			for end < p.Shape[0] && of(p.Start[0]+end) == field {
				end++
			}
			w.DivideField(p.Planes(z, end), field, a.count)
			z = end
		}
	}, free, nil
}

// count adds the voxel counts of a worker to the total.
func (a *apply) count(c filter.Census) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.census.Some += c.Some
	a.census.Above += c.Above
	a.census.NonFinite += c.NonFinite
}
