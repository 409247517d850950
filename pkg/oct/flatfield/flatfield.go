// Package flatfield divides the tiles of a mosaic grid by the lateral illumination that they share. It is the pipeline's
// illumination stage; [Run] does all of it.
package flatfield

import (
	"context"
	"math"
	"sync/atomic"
	"time"

	"strata/pkg/filter"
	"strata/pkg/meter"
	"strata/pkg/ngff"
	"strata/pkg/oct"
	"strata/pkg/oct/blocks"
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
	// PercentileMax is the percentile of the values of all tiles, 0…100, above which BasicPy clips them; 0 clips nothing.
	PercentileMax float64

	DarkField       bool    // subtract a percentile of each pixel over the tiles
	DarkPercentile  float64 // 0…100
	DarkSmoothSigma float64 // of a Gaussian over the dark-field, px
	DarkWindow      int     // with PerZ, average the dark-fields of this many planes before and after; negative: of all
	SmoothSigma     float64 // of a Gaussian over the flat-field, px

	TileUM    float64 // size of a square tile along y, in µm; 0: a tile is a chunk
	ExtraRows int     // first rows of each tile that take no part in the estimate and are divided by the row after them
}

// minNonZero is the share of voxels other than 0 below which a volume is refused.
const minNonZero = 0.01

// Result is what [Run] found.
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
	Curvature  float64     // of the flat-field inside the overlaps, see [Curvature]
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
// The flat-field has mean 1 over the tile, approximately with BasicPy. NaN and infinite voxels count as 0 in the estimate.
// BasicPy makes them 0 in the output, LinumBasic keeps them; a warning counts them. Volumes that are almost empty are
// refused, as are flat-fields that are not positive.
//
// Run reads the tiles of the chosen planes up to four times, and then the mosaic once, block by block. The estimate
// takes 320 KiB a tile.
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
	if r.Image, err = a.run(ctx, out, layout); err != nil {
		return nil, err
	}
	return r, nil
}

// planApply plans the division of all voxels.
func planApply(f *fitting, layout oct.Layout) (*apply, error) {
	res := f.res
	res.Mem -= f.bytes()
	if res.Mem < f.res.Mem/4 {
		return nil, f.res.TooLittle(2*f.bytes(), "%s: %s of %d × %d pixels", f.Where, units.Count(f.scopes(), "flat-field"), f.height, f.width)
	}
	cut, err := f.Cut(blocks.Plan{Size: f.Chunks(layout), Work: "dividing blocks"}, res)
	if err != nil {
		return nil, err
	}
	return &apply{cut: cut, res: res, fields: f}, nil
}

// apply divides the volume.
type apply struct {
	cut       *blocks.Cut
	res       oct.Resources
	fields    *fitting
	nonZero   atomic.Int64
	positive  atomic.Bool
	nonFinite atomic.Int64
}

func (a *apply) run(ctx context.Context, out store.Writer, layout oct.Layout) (*ngff.Image, error) {
	v := a.cut.Volume
	im, err := a.cut.Map(ctx, out, layout, v.Spec(v.DType), func(_ context.Context, b *blocks.Block) error {
		start := time.Now()
		a.divide(b)
		a.res.Meter.Since(meter.Compute, start)
		return nil
	})
	if err != nil {
		return nil, err
	}
	share := float64(a.nonZero.Load()) / (float64(v.Shape[0]) * float64(v.Shape[1]) * float64(v.Shape[2]))
	if share < minNonZero {
		return nil, oct.BadInput("%s: %.2g %% of the voxels are other than 0: want at least %g %%", v.Where, 100*share, 100*minNonZero)
	}
	if !a.positive.Load() {
		return nil, oct.BadInput("%s: no voxel is above 0", v.Where)
	}
	if n := a.nonFinite.Load(); n > 0 {
		a.res.Meter.AddNonFinite(n)
		a.res.Warnf("%s: %d voxels are NaN or infinite: they counted as 0 in the estimate, and %s", v.Where, n,
			map[Solver]string{BasicPy: "are 0 in the output", LinumBasic: "stay in the output"}[a.fields.how.Solver])
	}
	return im, nil
}

// divide corrects a block in place.
func (a *apply) divide(b *blocks.Block) {
	m := a.fields.mosaic
	bad := filter.CountNonFinite(b.Voxels)
	a.nonFinite.Add(bad)
	nonZero, positive := int64(0), float32(0)
	for z := range b.Size[0] {
		field, dark := a.fields.at(b.Start[0] + z)
		for y := range b.Size[1] {
			from := (b.Start[1] + y) % m.height * m.width
			row := b.Voxels[b.At(z, y, 0):][:b.Size[2]]
			for len(row) > 0 {
				x := (b.Start[2] + b.Size[2] - len(row)) % m.width
				n := min(len(row), m.width-x)
				part := row[:n]
				count, most := census(part)
				nonZero += count
				positive = max(positive, most)
				var d []float32
				if dark != nil {
					d = dark[from+x:][:n]
				}
				correct(part, field[from+x:][:n], d, a.fields.epsilon, a.fields.how.Solver == LinumBasic && bad > 0)
				row = row[n:]
			}
		}
	}
	a.nonZero.Add(nonZero)
	if positive > 0 {
		a.positive.Store(true)
	}
}

// census counts the values other than 0 and NaN and returns the largest finite one, at least 0.
func census(v []float32) (nonZero int64, most float32) {
	for _, p := range v {
		if p != 0 && p == p {
			nonZero++
		}
		if p > most && p <= math.MaxFloat32 {
			most = p
		}
	}
	return nonZero, most
}

// correct computes (v − dark)/(field + epsilon) in place, at least 0. What is not finite becomes 0 unless it is kept.
func correct(v, field, dark []float32, epsilon float32, keep bool) {
	field = field[:len(v)]
	for x, p := range v {
		if keep && p-p != 0 {
			continue
		}
		if x < len(dark) {
			p -= dark[x]
		}
		q := p / (field[x] + epsilon)
		if !(q > 0 && q <= math.MaxFloat32) { // NaN, too
			q = 0
		}
		v[x] = q
	}
}
