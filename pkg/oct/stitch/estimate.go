package stitch

import (
	"context"
	"errors"
	"math"

	"strata/pkg/ngff"
	"strata/pkg/oct"
	"strata/pkg/oct/stitch/affine"
	"strata/pkg/oct/stitch/consensus"
	"strata/pkg/oct/stitch/overview"
)

var (
	// errNothingCommon reports that no pair of neighbours agreed anywhere.
	errNothingCommon = errors.New("no two neighbouring tiles have tissue in common where they may overlap")
	// errRepeats reports that the tiles show a periodic pattern, so that the common displacement may be off by whole
	// periods.
	errRepeats = errors.New("what tiles show repeats itself, so that nothing tells how far they overlap")
	// errBetter reports that a common displacement was found that neighbours contradict.
	errBetter = errors.New("neighbouring tiles agree better as expected than where most overlaps put them")
	// errTooFew reports that too few pairs agree on a displacement that differs from the expected one.
	errTooFew = errors.New("too few pairs of tiles agree on how far they lie apart")
	// errWeak reports that pairs agree, but too few of them to check each other.
	errWeak = errors.New("most tiles hang on overlaps that nothing checks")
)

// EstimateTransform estimates the matrix that places the tiles of one or several mosaics that were acquired with the
// same settings: see [Run]. If too few pairs agree, it warns and returns the initial matrix. If tiles have neighbours
// along only one axis, it derives the other column of the matrix from the rotation and scale of the first.
//
// It uses only the overlap, the initial transform, the rules and the channel of opt. All mosaics must have tiles of the
// same size.
func EstimateTransform(ctx context.Context, in []*ngff.Image, opt Options, res oct.Resources) (affine.Transform, error) {
	if err := opt.check(); err != nil {
		return affine.Transform{}, err
	}
	if len(in) == 0 {
		return affine.Transform{}, oct.BadInput("no mosaic to estimate a matrix from")
	}
	var mosaics []*oct.Mosaic
	for _, image := range in {
		m, err := oct.OpenFrames(image, opt.Channel)
		if err != nil {
			return affine.Transform{}, err
		}
		if g, first := gridOf(m), mosaics; len(first) > 0 && g.tile != gridOf(first[0]).tile {
			return affine.Transform{}, oct.BadInput("%s: tiles of %v voxels (y, x), %s has %v: one matrix is for tiles of one size", m.Where, g.tile, first[0].Where, gridOf(first[0]).tile)
		}
		mosaics = append(mosaics, m)
	}
	all, err := newAligners(mosaics, opt.Overlap, res)
	if err != nil {
		return affine.Transform{}, err
	}
	e, err := estimate(ctx, all, opt, res)
	if err != nil {
		return affine.Transform{}, err
	}
	t := e.transform
	if e.failed != nil {
		res.Warnf("%s: %v: the matrix stays as it began, %v; --transform FILE sets another", mosaics[0].Where, e.failed, opt.Transform)
	}
	if v := mosaics[0].Voxel(); min(v[0], v[1]) > 0 {
		t.Voxel = v
	}
	return t, nil
}

// estimator finds the positions of the tiles of mosaics that were acquired with the same settings.
type estimator struct {
	all       []*aligner
	opt       Options
	res       oct.Resources
	first     []int // number of each mosaic's first tile
	grid      *consensus.Grid
	step      [2]int // pixels of a tile for one of its overview
	strangers []consensus.Pair
	chance    [2]consensus.Chance
	scatter   float64 // standard deviation of pairs from their common displacement, px
}

// estimation is the result of an estimator.
type estimation struct {
	transform   affine.Transform
	measures    []measure // of all mosaics, whose tiles are numbered consecutively
	arrangement *consensus.Arrangement
	failed      error // why the initial matrix stands; nil: it does not
}

// newEstimator numbers the tiles of mosaics.
func newEstimator(all []*aligner, opt Options, res oct.Resources) *estimator {
	e := &estimator{all: all, opt: opt, res: res, grid: &consensus.Grid{}}
	for _, a := range all {
		e.first = append(e.first, len(e.grid.Row))
		e.grid.Add(a.grid.ny, a.grid.nx)
	}
	for axis := range 2 {
		e.grid.Expected[axis] = all[0].grid.expected(opt.Transform, opt.Overlap, axis)
	}
	return e
}

// estimate finds the places of the tiles of mosaics acquired alike by the rules of opt. A consensus finds where tiles
// may overlap by their overviews, then exactly by their projections.
func estimate(ctx context.Context, all []*aligner, opt Options, res oct.Resources) (*estimation, error) {
	e := newEstimator(all, opt, res)
	if opt.Rules == affine.RulesReference {
		return e.byReference(ctx)
	}
	pairs, err := e.look(ctx)
	if err != nil {
		return nil, err
	}
	least := e.least()
	_, chance := consensus.Vote(e.strangers, e.chance, e.grid.Expected, least)
	steps, verdicts := consensus.Vote(pairs, e.chance, e.grid.Expected, least)
	var known [2]bool
	for axis, v := range verdicts {
		known[axis] = v.Votes > max(leastVotes, chance[axis].Votes+leastMargin)
	}
	if !known[0] && !known[1] {
		return e.unknown(nil, errNothingCommon), nil
	}
	if e.better(steps, verdicts, known) {
		return e.unknown(nil, errBetter), nil
	}
	if e.repeats(steps, verdicts, known) {
		return e.unknown(nil, errRepeats), nil
	}
	e.scatter = max(verdicts[0].Scatter, verdicts[1].Scatter)
	e.grid.Expected = e.complete(steps, known)
	a := e.roughly(pairs)
	measures, err := e.exactly(ctx, a)
	if err != nil {
		return nil, err
	}
	readmit(measures)
	a, _ = arrange(e.grid, measures, nil, e.loose())
	if err := e.again(ctx, a, e.rejoin(a, pairs), measures); err != nil {
		return nil, err
	}
	return e.conclude(measures)
}

// least returns the smallest standard deviation, in px, that displacements found in the overviews can have.
func (e *estimator) least() float64 { return float64(max(e.step[0], e.step[1], 2)) }

// look searches the overviews for all pairs of neighbours, and learns from strangers which scores occur by chance.
func (e *estimator) look(ctx context.Context) ([]consensus.Pair, error) {
	if err := overviews(ctx, e.all, e.res); err != nil {
		return nil, err
	}
	e.step = e.all[0].overview.Step
	var pairs []consensus.Pair
	var strangers []consensus.Pair
	for k, a := range e.all {
		f, err := a.lookAround(ctx, byAxis(e.grid.Expected), e.grid.Expected, e.res.Mem/8)
		if err != nil {
			return nil, err
		}
		for _, p := range f.pairs {
			p.A, p.B = p.A+e.first[k], p.B+e.first[k]
			pairs = append(pairs, p)
		}
		strangers = append(strangers, f.strangers...)
	}
	for axis := range e.chance {
		e.chance[axis] = consensus.ChanceOf(strangers, axis)
	}
	for _, a := range e.all {
		a.chance = e.chance
	}
	e.strangers = strangers
	return pairs, nil
}

// repeats reports whether neighbours that lie as expected would agree as well at the displacements that were found
// along all axes of which one is known.
func (e *estimator) repeats(steps consensus.Steps, verdicts [2]consensus.Verdict, known [2]bool) bool {
	for axis, is := range known {
		if !is {
			continue
		}
		views, neighbours := e.overviews(axis)
		if !overview.Alias(views, neighbours, steps[axis], e.grid.Expected[axis], verdicts[axis].Scatter) {
			return false
		}
	}
	return true
}

// better reports whether neighbours agree better as expected than at the displacement that was found along an axis.
func (e *estimator) better(steps consensus.Steps, verdicts [2]consensus.Verdict, known [2]bool) bool {
	for axis, is := range known {
		if !is {
			continue
		}
		views, neighbours := e.overviews(axis)
		if overview.Better(views, neighbours, steps[axis], e.grid.Expected[axis], verdicts[axis].Scatter) {
			return true
		}
	}
	return false
}

// overviews returns the overviews of all mosaics, with the pairs of neighbours along an axis.
func (e *estimator) overviews(axis int) (views []*overview.Overview, neighbours [][][2]int) {
	for _, a := range e.all {
		var pairs [][2]int
		for _, p := range a.pairs {
			if p.axis == axis {
				pairs = append(pairs, [2]int{p.a, p.b})
			}
		}
		views, neighbours = append(views, a.overview), append(neighbours, pairs)
	}
	return views, neighbours
}

// leastVotes is the least likelihood ratio, as a logarithm, of a displacement to believe, and leastMargin that against
// what tiles reach that do not overlap. Of 290 axes of mosaics made of pictures, such tiles reached 11, and true
// displacements 12 to 108 wherever five tiles or more show texture.
const leastVotes, leastMargin = 7, 3

// complete derives the displacement along an axis without neighbours from the displacement along the other axis.
func (e *estimator) complete(steps consensus.Steps, known [2]bool) consensus.Steps {
	if known[0] == known[1] {
		return steps
	}
	axis := 0
	if known[1] {
		axis = 1
	}
	// turned and scaled as this one is against what was expected
	a, b := e.grid.Expected[axis], steps[axis]
	n := a[0]*a[0] + a[1]*a[1]
	c, s := (a[0]*b[0]+a[1]*b[1])/n, (a[0]*b[1]-a[1]*b[0])/n
	o := e.grid.Expected[1-axis]
	steps[1-axis] = [2]float64{c*o[0] - s*o[1], s*o[0] + c*o[1]}
	return steps
}

// roughly places the tiles by the displacements found in the overviews.
func (e *estimator) roughly(pairs []consensus.Pair) *consensus.Arrangement {
	where := func(p *consensus.Pair) [2]float64 { return e.grid.Expected[p.Axis] }
	var a *consensus.Arrangement
	for range 2 {
		a = consensus.Arrange(e.grid, e.chosen(pairs, where), nil, e.loose())
		where = func(p *consensus.Pair) [2]float64 { return a.Displacement(p.A, p.B) }
	}
	return a
}

// loose returns the largest standard deviation in px by which tiles are thought to deviate from a regular grid.
func (e *estimator) loose() float64 {
	t := e.all[0].grid.tile
	return 0.05 * float64(min(t[0], t[1]))
}

// chosen returns the displacements to believe.
func (e *estimator) chosen(pairs []consensus.Pair, where func(*consensus.Pair) [2]float64) (out []consensus.Measured) {
	for i, k := range consensus.Choose(pairs, e.chance, 3*e.scatter, where) {
		if k >= 0 {
			p := &pairs[i]
			s := p.Candidates[k].Width
			s = s.Add(consensus.Sym{YY: float64(e.step[0]*e.step[0]) / 4, XX: float64(e.step[1]*e.step[1]) / 4}).Inverse()
			out = append(out, consensus.Measured{A: p.A, B: p.B, D: p.Candidates[k].D, P: s, Sure: p.Candidates[k].Score > e.chance[p.Axis].Most})
		}
	}
	return out
}

// exactly measures all pairs near where an arrangement puts them.
func (e *estimator) exactly(ctx context.Context, a *consensus.Arrangement) ([]measure, error) {
	expects := e.expects(a, make([][2]float64, len(e.grid.Row)))
	if err := findShading(ctx, e.all, expects); err != nil {
		return nil, err
	}
	reach := max(4, 2*max(e.step[0], e.step[1])+2)
	return e.compare(ctx, expects, func(int, pair) int { return reach }, leastEvidence)
}

// compare measures the pairs of all mosaics within a reach in px.
func (e *estimator) compare(ctx context.Context, expects []expectation, reach func(mosaic int, p pair) int, least float64) (out []measure, err error) {
	for k, al := range e.all {
		ms, err := al.compareAll(ctx, expects[k], func(p pair) int { return reach(k, p) }, 0)
		if err != nil {
			return nil, err
		}
		for _, m := range ms {
			al.doubt(&m, least)
			m.a, m.b = m.a+e.first[k], m.b+e.first[k]
			out = append(out, m)
		}
	}
	return out, nil
}

// expects returns, for each mosaic, where an arrangement expects its tiles, farther by some offsets.
func (e *estimator) expects(a *consensus.Arrangement, offset [][2]float64) (out []expectation) {
	for _, n := range e.first {
		out = append(out, func(p pair) [2]float64 {
			d, s, t := a.Displacement(n+p.a, n+p.b), offset[n+p.a], offset[n+p.b]
			return [2]float64{d[0] + t[0] - s[0], d[1] + t[1] - s[1]}
		})
	}
	return out
}

// conclude places the tiles by their measured pairs.
func (e *estimator) conclude(measures []measure) (*estimation, error) {
	a, links := arrange(e.grid, measures, nil, e.loose())
	t := affine.Transform{Spread: oct.Digits(a.Scatter(links))}
	var agree [2]int
	for _, m := range measures {
		if m.reason == "" {
			agree[m.axis]++
			t.Pairs++
		}
	}
	if t.Pairs < leastPairs {
		return e.unknown(measures, errNothingCommon), nil
	}
	if e.weak(a.Fit, measures) {
		return e.unknown(measures, errWeak), nil
	}
	if farther := e.unlike(e.matrix(a)); farther > mostUnlike && min(agree[0], agree[1]) < leastSure {
		return e.unknown(measures, errTooFew), nil
	}
	return e.found(t, measures, a, agree)
}

// found completes a transform by the matrix that an arrangement amounts to, from so many pairs of each axis.
func (e *estimator) found(t affine.Transform, measures []measure, a *consensus.Arrangement, agree [2]int) (*estimation, error) {
	where := e.all[0].mosaic.Where
	t.Matrix, t.Overlap, t.Of, t.Rules = e.matrix(a), e.opt.Overlap, compared(measures), e.opt.Rules
	for axis := range agree {
		if agree[axis] == 0 {
			e.res.Warnf("%s: tiles have neighbours along %c only: the other column of the matrix follows from a rotation and a scale", where, "xy"[axis])
		}
	}
	if err := t.Matrix.Check(); err != nil {
		return nil, oct.BadInput("%s: estimated %w", where, err)
	}
	return &estimation{t, measures, a, nil}, nil
}

// unlike returns by how much a matrix changes the scale of an axis against the initial one, at most.
func (e *estimator) unlike(m affine.Matrix) float64 {
	most := 0.0
	for axis := range 2 {
		now, was := math.Hypot(m[0][axis], m[1][axis]), math.Hypot(e.opt.Transform[0][axis], e.opt.Transform[1][axis])
		most = max(most, math.Abs(now/was-1))
	}
	return most
}

// mostUnlike is the change of scale that fewer than leastSure pairs of an axis cannot prove.
const mostUnlike, leastSure = 0.1, 4

// leastPairs is the minimum number of pairs that make a consensus.
const leastPairs = 3

// matrix returns the matrix that the model of an arrangement amounts to.
func (e *estimator) matrix(a *consensus.Arrangement) (out affine.Matrix) {
	for axis := range 2 {
		step := float64(e.all[0].grid.tile[axis]) * (1 - e.opt.Overlap)
		d := e.grid.Expected[axis]
		for k := range 2 {
			out[k][axis] = (a.Model.Matrix[k][0]*d[0] + a.Model.Matrix[k][1]*d[1]) / step
		}
	}
	return out
}

// unknown is what is found where too few pairs agree: the tiles stay where the initial matrix puts them.
func (e *estimator) unknown(measures []measure, why error) *estimation {
	for axis := range 2 {
		e.grid.Expected[axis] = e.all[0].grid.expected(e.opt.Transform, e.opt.Overlap, axis)
	}
	for i := range measures {
		if m := &measures[i]; m.reason == "" {
			m.reason = "too few others agree"
		}
	}
	return &estimation{affine.Transform{Matrix: e.opt.Transform, Overlap: e.opt.Overlap, Of: compared(measures), Rules: e.opt.Rules}, measures, consensus.Arrange(e.grid, nil, nil, 1), why}
}

// compared returns the number of pairs of tiles that are not empty.
func compared(measures []measure) (n int) {
	for _, m := range measures {
		if !m.emptyA && !m.emptyB {
			n++
		}
	}
	return n
}

// far returns the length of a vector.
func far(v [2]float64) float64 { return math.Hypot(v[0], v[1]) }
