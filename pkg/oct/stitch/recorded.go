package stitch

import (
	"context"
	"math"

	"strata/pkg/filter"
	"strata/pkg/oct"
	"strata/pkg/oct/stitch/affine"
	"strata/pkg/oct/stitch/canvas"
	"strata/pkg/oct/stitch/consensus"
)

// DefaultTolerance is the default of [Options].Tolerance in µm: microscope stages err by a few micrometres.
const DefaultTolerance = 20

// alongside is the minimum length of an overlap that is compared, as a fraction of a tile's height or width: tiles
// that share only a corner say little.
const alongside = 0.25

// mostOverlapping is the maximum number of other tiles that overlap a tile. A larger number means that the recorded
// positions are wrong.
const mostOverlapping = 256

// overlappingPairs returns the pairs of tiles that overlap at their recorded positions, ordered by their later tile.
func (g *grid) overlappingPairs(m affine.Matrix) (out []pair, err error) {
	places := make([]canvas.Place, g.ny*g.nx)
	for t := range places {
		if g.has(t) {
			p, n := g.nominal(m, 0, t/g.nx, t%g.nx), g.extentOf(t)
			y, x := int(math.Round(p[0])), int(math.Round(p[1]))
			places[t].Rectangle = oct.Rect(y, y+n[0], x, x+n[1])
		}
	}
	count := make([]int, len(places))
	canvas.Touching(places, func(a, b int) bool {
		count[a]++
		count[b]++
		if t := max(count[a], count[b]); t > mostOverlapping {
			err = oct.BadInput("more than %d tiles lie on tile (%d, %d): check --positions and --transform", mostOverlapping, b/g.nx, b%g.nx)
		}
		return err == nil
	})
	if err != nil {
		return nil, err
	}
	for b, near := range canvas.Overlapping(places) {
		for _, a := range near {
			o := places[a].And(places[b].Rectangle)
			y, x := o.Height(), o.Width()
			if a > b || min(y, x) < leastOverlap || float64(y) < alongside*float64(g.tile[0]) && float64(x) < alongside*float64(g.tile[1]) {
				continue
			}
			p := pair{a: a, b: b}
			if x < y {
				p.axis = 1
			}
			out = append(out, p)
		}
	}
	return out, nil
}

// byRecord expects tiles at their recorded positions.
func (g *grid) byRecord(m affine.Matrix) expectation {
	return func(p pair) [2]float64 {
		a, b := g.nominal(m, 0, p.a/g.nx, p.a%g.nx), g.nominal(m, 0, p.b/g.nx, p.b%g.nx)
		return [2]float64{b[0] - a[0], b[1] - a[1]}
	}
}

// measureRecorded determines the deviation of each tile from its recorded position: it searches pairs within the
// tolerance of the recorded displacement, and fits all that were found together.
func measureRecorded(ctx context.Context, m *oct.Mosaic, opt Options, res oct.Resources) ([]measure, [][2]float64, error) {
	tolerance := opt.Tolerance
	if v := m.Voxel(); v != [2]float64{} {
		tolerance /= min(v[0], v[1])
	}
	reach := int(math.Ceil(min(tolerance, float64(max(m.Chunk[1], m.Chunk[2])))))
	a, err := newRecordedAligner(m, opt.Transform, reach, res)
	if err != nil {
		return nil, nil, err
	}
	expected := a.grid.byRecord(opt.Transform)
	surveyed([]*aligner{a})
	if err := findShading(ctx, []*aligner{a}, []expectation{expected}); err != nil {
		return nil, nil, err
	}
	if err := prepare(ctx, []*aligner{a}, res.Workers); err != nil {
		return nil, nil, err
	}
	found, err := a.lookAround(ctx, expected, a.typical(expected), res.Mem/8)
	if err != nil {
		return nil, nil, err
	}
	for axis := range a.chance {
		a.chance[axis] = consensus.ChanceOf(found.strangers, axis)
	}
	measures, err := a.compareAll(ctx, expected, func(pair) int { return reach }, reach)
	if err != nil {
		return nil, nil, err
	}
	for i := range measures {
		a.doubt(&measures[i], leastEvidence)
	}
	at := a.grid.nominals(opt.Transform, 0)
	f := refine(at, measures, refinement{farthest: tolerance + 1, most: tolerance, recorded: true})
	a.grid.warn(f.Fit, measures, "the stage recorded them", m.Where, res)
	return measures, rounded(f.Residuals(at)), nil
}

// typical returns the median displacements along the axes.
func (a *aligner) typical(expected expectation) (steps consensus.Steps) {
	for axis := range steps {
		for k := range 2 {
			var v []float64
			for _, p := range a.pairs {
				if p.axis == axis {
					v = append(v, expected(p)[k])
				}
			}
			if v != nil {
				steps[axis][k] = filter.MedianOf(v)
			}
		}
	}
	return steps
}

// stripMargin is the width in px by which strips exceed the search range, since a fit may climb beyond it.
const stripMargin = 8

// newRecordedAligner prepares the comparison of tiles that overlap at their recorded positions. It holds only
// those strips of a tile's projection in which its neighbours may lie.
func newRecordedAligner(m *oct.Mosaic, transform affine.Matrix, reach int, res oct.Resources) (*aligner, error) {
	a := newAligner(m, res)
	var err error
	if a.pairs, err = a.grid.neighbouring(transform); err != nil {
		return nil, err
	}
	expected := a.grid.byRecord(transform)
	a.strip = func(p pair) strips {
		e := expected(p)
		s, _ := displaced(a.grid.extentOf(p.a), a.grid.extentOf(p.b), [2]int{int(math.RoundToEven(e[0])), int(math.RoundToEven(e[1]))}, reach+stripMargin, 1)
		return s
	}
	for a.batch = 2 * res.Workers; a.batch > 1 && a.flying() > res.Mem/4; {
		a.batch /= 2
	}
	return a, grantAligners([]*aligner{a}, res)
}
