package stitch

import (
	"context"
	"math"
	"slices"

	"strata/pkg/ngff"
	"strata/pkg/oct"
	"strata/pkg/oct/stitch/affine"
	"strata/pkg/oct/stitch/consensus"
	"strata/pkg/oct/surface"
)

const (
	// checkedSide is the number of rows and columns of tiles in the middle of a mosaic whose overlaps are checked. It
	// is checkedLarge for mosaics of at least largeMosaic tiles.
	checkedSide, checkedLarge, largeMosaic = 2, 3, 36
	// leastChecked is the least likelihood ratio, as a logarithm, of a displacement along each axis: two pairs of tiles
	// that show texture reach 6.9 to 7.9, tiles that show none 1.
	leastChecked = 5
	// leastDifference is the smallest reported error of an overlap, as a fraction of a tile.
	leastDifference = 0.02
)

// checkOverlap warns if tiles in the middle of a mosaic do not fit where the matrix and the overlap put them. It
// reports whether they have anything in common, wherever they overlap.
func checkOverlap(ctx context.Context, m *oct.Mosaic, opt Options, res oct.Resources) (alike bool, err error) {
	res.Progress, res.Device = nil, nil // tiles come again, and count once; few are not worth a device
	all, err := newAligners([]*oct.Mosaic{m}, opt.Overlap, res)
	if err != nil {
		return false, nil // what is stitched without measuring needs no memory for it
	}
	a := all[0]
	a.pairs = a.grid.middle()
	wanted := map[int]bool{}
	for _, p := range a.pairs {
		wanted[p.a], wanted[p.b] = true, true
	}
	surveyed(all)
	a.common = nil
	for first := 0; first < len(a.kept); first += a.batch {
		if _, err := a.planes(ctx, first, min(a.batch, len(a.kept)-first), func(t int) bool { return wanted[t] }); err != nil {
			return false, err
		}
	}
	if err := prepare(ctx, all, res.Workers); err != nil {
		return false, err
	}
	e := newEstimator(all, opt, res)
	found, err := a.lookAround(ctx, byAxis(e.grid.Expected), e.grid.Expected, res.Mem/8)
	if err != nil {
		return false, err
	}
	alone := consensus.ChanceOf(nil, 0)
	steps, verdicts := consensus.Vote(found.pairs, [2]consensus.Chance{alone, alone}, e.grid.Expected, float64(max(a.overview.Step[0], a.overview.Step[1], 2)))
	t := affine.Transform{Overlap: opt.Overlap, Matrix: opt.Transform, Of: len(a.pairs), Pairs: 1}
	differs := false
	if least := min(verdicts[0].Votes, verdicts[1].Votes); least < leastChecked {
		return max(verdicts[0].Votes, verdicts[1].Votes) >= leastChecked, nil
	}
	for axis, v := range verdicts {
		d, at := steps[axis], e.grid.Expected[axis]
		differs = differs || math.Hypot(d[0]-at[0], d[1]-at[1]) > leastDifference*float64(a.grid.tile[axis])+2*v.Scatter
		for k := range 2 {
			t.Matrix[k][axis] = d[k] / (float64(a.grid.tile[axis]) * (1 - opt.Overlap))
		}
	}
	if o := t.Overlaps(); differs {
		res.Warnf("%s: tiles in the middle overlap by about %s along y and %s along x and do not fit where %s puts them: add --estimate", m.Where, affine.Percent(o[0]), affine.Percent(o[1]), a.grid.distance(opt.Overlap))
	}
	return true, nil
}

// warnOfNoise warns if no two tiles were found to have anything in common and the slice shows nothing either.
func (s *Result) warnOfNoise(ctx context.Context, where string, slice *ngff.Image, res oct.Resources) error {
	if s.alike || slices.ContainsFunc(s.Tiles, func(t TilePlan) bool { return t.Used }) {
		return nil
	}
	blank, err := surface.Blank(ctx, slice, res)
	if blank {
		res.Warnf("%s: %s: nothing tells whether its tiles lie where they belong", where, surface.BlankText)
	}
	return err
}

// middle returns the neighbours among the tiles in the middle of the grid.
func (g *grid) middle() (out []pair) {
	side := checkedSide
	if g.ny*g.nx >= largeMosaic {
		side = checkedLarge
	}
	within := func(t int) bool {
		i, j := t/g.nx-(g.ny-side)/2, t%g.nx-(g.nx-side)/2
		return min(i, j) >= 0 && max(i, j) < side
	}
	for _, p := range g.pairs() {
		if within(p.a) && within(p.b) {
			out = append(out, p)
		}
	}
	return out
}
