package stitch

import (
	"context"
	"fmt"
	"math"
	"time"

	"strata/pkg/filter"
	"strata/pkg/meter"
	"strata/pkg/oct"
	"strata/pkg/oct/stitch/consensus"
	"strata/pkg/oct/stitch/overview"
	"strata/pkg/oct/stitch/projection"
	"strata/pkg/oct/stitch/shading"
	"strata/pkg/units"
	"strata/pkg/work"
)

// pair is a pair of neighbouring tiles.
type pair struct {
	a, b int // a < b
	axis int // 0: b is below a; 1: right of it
}

// expectation returns the expected displacement (y, x) of a pair's second tile from the first.
type expectation func(pair) [2]float64

// byAxis expects the same displacement of all pairs along an axis of the grid.
func byAxis(expected [2][2]float64) expectation {
	return func(p pair) [2]float64 { return expected[p.axis] }
}

// aligner compares the neighbouring tiles of a mosaic by their projections. If memory does not hold the
// projections of all tiles, it recomputes them for each step, some tiles at a time.
type aligner struct {
	mosaic   *oct.Mosaic
	grid     grid
	overlap  float64
	depths   [2]int // the planes that projections average: see [projection.New]
	res      oct.Resources
	pairs    []pair                // by b, then a
	strip    func(pair) strips     // required parts of the two tiles; nil: all
	batch    int                   // tiles projected at a time
	workers  int                   // workers that compare
	in       *projection.Projector // of this pass over the pairs; nil: not needed yet
	kept     [][]float32           // by tile; nil: not kept
	keep     bool                  // all of them
	empty    []bool                // tiles known to be empty
	counted  []bool                // tiles reported as progress
	units    map[pair]float64      // chance's standard deviation of evidence
	chance   [2]consensus.Chance   // what chance reaches, by axis
	overview *overview.Overview    // takes what is projected; nil: not needed
	common   *overview.Pattern     // likewise; nil: not needed, or too large
	pattern  []float32             // multiplies the projections of whole tiles; nil: not known
	shading  *shading.Shading      //  divides the projections, pattern included; nil: none yet
}

func newAligner(m *oct.Mosaic, res oct.Resources) *aligner {
	g := gridOf(m)
	n := g.ny * g.nx
	return &aligner{mosaic: m, grid: g, depths: [2]int{0, m.Shape[0]}, res: res, kept: make([][]float32, n), empty: make([]bool, n), counted: make([]bool, n)}
}

// newAligners prepares the comparison of the mosaics' tiles, row by row.
func newAligners(all []*oct.Mosaic, overlap float64, res oct.Resources) ([]*aligner, error) {
	var out []*aligner
	for _, m := range all {
		a := newAligner(m, res)
		a.overlap, a.batch, a.pairs = overlap, a.grid.nx, a.grid.pairs()
		out = append(out, a)
	}
	return out, grantAligners(out, res)
}

// grantAligners divides the memory. A quarter keeps the projections of as many mosaics as fit; if not even one fits, it
// holds only the projections that are being compared.
func grantAligners(all []*aligner, res oct.Resources) error {
	var total, flying, comparison int64
	pairs := 1
	for _, a := range all {
		total += a.plane() * int64(len(a.kept))
		flying = max(flying, a.flying())
		comparison = max(comparison, a.comparison())
		pairs = max(pairs, len(a.pairs))
	}
	left := res.Mem / 4
	if total > left {
		left -= flying
	}
	if need := max(flying, comparison); left < 0 || need > res.Mem/4 {
		return res.TooLittle(4*need, "%s: comparing tiles of this size", all[0].mosaic.Where)
	}
	workers := int(min(int64(res.Workers), res.Mem/4/comparison))
	res.Crew(oct.Team{What: fmt.Sprintf("comparing tiles, %s", units.Count(pairs, "pair")), Workers: workers, Pieces: pairs, Each: comparison, All: int64(res.Busy(pairs)) * 4 * comparison})
	for _, a := range all {
		a.workers = workers
		if n := a.plane() * int64(len(a.kept)); n <= left {
			a.keep = true
			left -= n
		}
	}
	return nil
}

// plane returns the size of a tile's projection in bytes.
func (a *aligner) plane() int64 { return 4 * int64(a.grid.tile[0]) * int64(a.grid.tile[1]) }

// comparing is the memory of a worker that compares two tiles, in bytes per pixel: their strips, the Fourier
// transforms and the results.
const comparing = 100

// comparison returns the memory of a worker that compares two tiles, in bytes.
func (a *aligner) comparison() int64 {
	if a.strip == nil {
		return comparing / 4 * a.plane()
	}
	most := int64(1)
	for _, p := range a.pairs {
		s := a.strip(p)
		most = max(most, comparing*int64(s.ny)*int64(s.nx))
	}
	return most
}

// flying returns the maximum memory, in bytes, of projections that wait for the projections of neighbouring tiles.
func (a *aligner) flying() int64 {
	if a.strip == nil {
		return a.plane() * int64(2*a.grid.nx+2*a.res.Workers)
	}
	change := make([]int64, len(a.kept)+1)
	for _, p := range a.pairs {
		s := a.strip(p)
		n := 4 * int64(s.ny) * int64(s.nx)
		first, last := p.a/a.batch*a.batch, p.b/a.batch*a.batch
		change[first] += n
		change[last] += n // the strip of b
		change[min(last+a.batch, len(a.kept))] -= 2 * n
	}
	now, most := int64(0), int64(0)
	for _, n := range change {
		now += n
		most = max(most, now)
	}
	return most + a.plane()*int64(a.batch)
}

// planes returns the projections of tiles first … first+n−1. An entry is nil if the tile is absent, empty, or not
// wanted.
func (a *aligner) planes(ctx context.Context, first, n int, wanted func(t int) bool) ([][]float32, error) {
	out := make([][]float32, n)
	var missing []int
	for k := range out {
		t := first + k
		if out[k] = a.kept[t]; out[k] == nil && !a.empty[t] && a.grid.has(t) && wanted(t) {
			missing = append(missing, t)
		}
	}
	if len(missing) == 0 {
		return out, nil
	}
	if a.in == nil {
		var err error
		if a.in, err = projection.New(a.mosaic, a.depths, a.counted, a.res); err != nil {
			return nil, err
		}
	}
	planes, err := a.in.Project(ctx, missing)
	if err != nil {
		return nil, err
	}
	for k, t := range missing {
		a.empty[t] = planes[k] == nil
		out[t-first] = planes[k]
		if a.keep {
			a.kept[t] = planes[k]
		}
	}
	return out, a.survey(ctx, missing, planes)
}

// survey adds the projections of tiles to their overviews, and to the pattern that all tiles share. It skips tiles that
// it has seen before.
func (a *aligner) survey(ctx context.Context, tiles []int, planes [][]float32) error {
	o := a.overview
	if o == nil {
		return nil
	}
	seen := make([]bool, len(tiles))
	if err := work.Each(ctx, a.workers, len(tiles), func(_, k int) error {
		start := time.Now()
		defer a.res.Meter.Since(meter.Compute, start)
		t := tiles[k]
		if planes[k] != nil && o.Tile[t] == nil && a.grid.extentOf(t) == a.grid.tile {
			o.Tile[t], seen[k] = o.Reduce(planes[k], a.grid.tile[1]), true
		}
		return nil
	}); err != nil {
		return err
	}
	for k, t := range tiles {
		if seen[k] && a.common != nil {
			a.common.Add(planes[k], o.Tile[t], o.Size)
		}
	}
	return nil
}

// view is a box of a tile's projection.
type view struct {
	v     []float32 // nil: the tile is empty
	at, n [2]int    // its first pixel in the tile, and its size (y, x)
}

// neighbours holds the compared parts of a pair's tiles.
type neighbours struct {
	pair
	va, vb view
}

// expected returns the expected displacement between the views, rounded to pixels.
func (n *neighbours) expected(by expectation) (d [2]int) {
	for k, e := range by(n.pair) {
		d[k] = int(math.RoundToEven(e)) - n.va.at[k] + n.vb.at[k]
	}
	return d
}

// view returns the part of a tile that a pair needs.
func (a *aligner) view(plane []float32, t int, p pair) view {
	n := a.grid.extentOf(t)
	if a.strip == nil || plane == nil {
		return view{v: plane, n: n}
	}
	s := a.strip(p)
	at := s.a
	if t == p.b {
		at = s.b
	}
	return view{filter.Crop(plane, n[1], at, s.ny, s.nx), at, [2]int{s.ny, s.nx}}
}

// eachPair calls visit for all pairs of neighbours in parallel, and done with each result, one at a time and in
// order. At most as many results as workers wait.
func eachPair[R any](ctx context.Context, a *aligner, visit func(p *filter.Phase, n neighbours) R, done func(n neighbours, r R)) error {
	defer func() { a.in = nil }()
	phases := make([]*filter.Phase, a.workers)
	for k := range phases {
		phases[k] = filter.NewPhase()
	}
	with := make([][]int, len(a.kept)) // pairs, by the tiles that take part
	for k, p := range a.pairs {
		with[p.a], with[p.b] = append(with[p.a], k), append(with[p.b], k)
	}
	held := map[int]*neighbours{} // by pair
	next := 0
	for first := 0; first < len(a.kept); first += a.batch {
		n := min(a.batch, len(a.kept)-first)
		planes, err := a.planes(ctx, first, n, func(t int) bool { return len(with[t]) > 0 })
		if err != nil {
			return err
		}
		for k, plane := range planes {
			t := first + k
			for _, i := range with[t] {
				p := a.pairs[i]
				if t == p.a {
					held[i] = &neighbours{pair: p, va: a.view(plane, t, p)}
				} else {
					held[i].vb = a.view(plane, t, p)
				}
			}
		}
		var ready []neighbours
		for ; next < len(a.pairs) && a.pairs[next].b < first+n; next++ {
			ready = append(ready, *held[next])
			delete(held, next)
		}
		if err := work.InOrder(ctx, a.workers, len(ready), func(worker, k int) R {
			start := time.Now()
			defer a.res.Meter.Since(meter.Compute, start)
			return visit(phases[worker], ready[k])
		}, func(k int, r R) { done(ready[k], r) }); err != nil {
			return err
		}
	}
	return nil
}

// pairs returns the neighbours in the rows and columns of the grid.
func (g *grid) pairs() (out []pair) {
	for t := range g.ny * g.nx {
		if t >= g.nx {
			out = append(out, pair{t - g.nx, t, 0})
		}
		if t%g.nx > 0 {
			out = append(out, pair{t - 1, t, 1})
		}
	}
	return out
}
