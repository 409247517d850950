package oct

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"runtime"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"strata/pkg/filter"
	"strata/pkg/meter"
)

// aligner compares the neighbouring tiles of a mosaic by their projections.
// Where the memory does not hold the projections of all tiles, they are made again
// row by row for each step.
type aligner struct {
	mosaic  *mosaic
	grid    grid
	overlap float64
	res     Resources
	in      projector
	kept    [][]float32 // by tile, nil where they are not kept
	keep    bool        // all of them
	empty   []bool      // tiles that are known to be
	shading *shading    // that the projections are divided by; nil: none yet
}

func newAligner(m *mosaic, overlap float64, res Resources) (*aligner, error) {
	a := &aligner{mosaic: m, grid: m.grid(), overlap: overlap, res: res}
	plane, tiles := 4*int64(m.chunk[1])*int64(m.chunk[2]), a.grid.ny*a.grid.nx
	a.kept, a.empty = make([][]float32, tiles), make([]bool, tiles)
	a.keep = plane*int64(tiles) <= res.Mem/4
	if need := plane * int64(2*a.grid.nx+2*res.Workers); !a.keep && need > res.Mem/4 {
		return nil, fmt.Errorf("%s: comparing tiles of this size needs %d MiB of buffers, --mem grants %d MiB", m.where, 4*need>>20+1, res.Mem>>20)
	}
	var err error
	a.in, err = newProjector(m, res)
	return a, err
}

// row is the projections of a row of tiles.
func (a *aligner) row(ctx context.Context, i int) ([][]float32, error) {
	out := make([][]float32, a.grid.nx)
	var missing []int
	for j := range out {
		t := i*a.grid.nx + j
		if out[j] = a.kept[t]; out[j] == nil && !a.empty[t] {
			missing = append(missing, t)
		}
	}
	planes, err := a.in.project(ctx, missing)
	if err != nil {
		return nil, err
	}
	for k, t := range missing {
		a.empty[t] = planes[k] == nil
		out[t%a.grid.nx] = planes[k]
		if a.keep {
			a.kept[t] = planes[k]
		}
	}
	return out, nil
}

// neighbours are two tiles that the grid puts side by side, and their
// projections; nil: the tile is empty.
type neighbours struct {
	a, b   int
	axis   int // 0: b is below a; 1: right of it
	pa, pb []float32
}

// eachPair visits all pairs of neighbours, in parallel, and calls done for one
// after the other, in order, with what visit made of it.
func eachPair[R any](ctx context.Context, a *aligner, visit func(p *filter.Phase, n neighbours) R, done func(n neighbours, r R)) error {
	var above [][]float32
	workers := min(a.res.Workers, runtime.GOMAXPROCS(0))
	phases := make([]*filter.Phase, workers)
	for k := range phases {
		phases[k] = filter.NewPhase()
	}
	for i := range a.grid.ny {
		row, err := a.row(ctx, i)
		if err != nil {
			return err
		}
		var pairs []neighbours
		for j := range a.grid.nx {
			t := i*a.grid.nx + j
			if i > 0 {
				pairs = append(pairs, neighbours{t - a.grid.nx, t, 0, above[j], row[j]})
			}
			if j > 0 {
				pairs = append(pairs, neighbours{t - 1, t, 1, row[j-1], row[j]})
			}
		}
		results := make([]R, len(pairs))
		g, gctx := errgroup.WithContext(ctx)
		var next atomic.Int64
		for k := range phases {
			g.Go(func() error {
				for {
					i := int(next.Add(1) - 1)
					if i >= len(pairs) {
						return nil
					}
					if err := gctx.Err(); err != nil {
						return err
					}
					start := time.Now()
					results[i] = visit(phases[k], pairs[i])
					a.res.Meter.Since(meter.Compute, start)
				}
			})
		}
		if err := g.Wait(); err != nil {
			return err
		}
		for k, n := range pairs {
			done(n, results[k])
		}
		above = row
	}
	return nil
}

// strips is where two tiles of the grid may overlap: boxes of one size, in the
// coordinates of each.
type strips struct {
	a, b   [2]int // first pixel (y, x)
	ny, nx int
}

// displaced are the strips in which tiles of the given extents overlap when the
// second is displaced by d against the first; ok is false where that is less
// than least pixels wide.
func displaced(na, nb [2]int, d [2]int, least int) (s strips, ok bool) {
	var n [2]int
	for k := range 2 {
		s.a[k], s.b[k] = max(d[k], 0), max(-d[k], 0)
		n[k] = min(na[k]-s.a[k], nb[k]-s.b[k])
		if n[k] < least {
			return s, false
		}
	}
	s.ny, s.nx = n[0], n[1]
	return s, true
}

// cutOut copies a box of a plane.
func cutOut(v []float32, width int, at [2]int, ny, nx int) []float32 {
	out := make([]float32, ny*nx)
	for y := range ny {
		copy(out[y*nx:][:nx], v[(at[0]+y)*width+at[1]:])
	}
	return out
}

// of is the box of a tile's projection, divided by the shading.
func (s *shading) of(v []float32, width int, at [2]int, ny, nx int) []float32 {
	out := cutOut(v, width, at, ny, nx)
	if s != nil {
		for y := range ny {
			for x, f := range s.inverse[(at[0]+y)*s.width+at[1]:][:nx] {
				out[y*nx+x] *= f
			}
		}
	}
	return out
}

// search is where the displacement of neighbours is looked for: strips twice as
// wide as their overlap is expected to be.
func (g *grid) search(expected [2]int) (s strips, ok bool) {
	var n [2]int
	for k := range 2 {
		overlap := g.tile[k] - max(expected[k], -expected[k])
		if overlap < 1 {
			overlap = 1
		}
		n[k] = min(g.tile[k], max(2*overlap, min(g.tile[k], 16)))
		if expected[k] >= 0 {
			s.a[k] = g.tile[k] - n[k]
		} else {
			s.b[k] = g.tile[k] - n[k]
		}
	}
	s.ny, s.nx = n[0], n[1]
	return s, min(n[0], n[1]) >= 8
}

// common finds the displacements, one for each axis of the grid, that neighbours
// have in common: a maximum of the sum of all their correlation surfaces, where
// the noise of the single ones averages out; of the highest, the one at which the
// pairs correlate best. A displacement may leave an overlap
// of up to twice what is expected. found is false for an axis that has no pairs
// to say something.
func common(ctx context.Context, all []*aligner, m Matrix, found *[2]bool) (out [2][2]int, err error) {
	var sums [2][]float32
	var where [2]strips
	for axis := range 2 {
		g := &all[0].grid
		e := g.expected(m, all[0].overlap, axis)
		out[axis] = [2]int{int(math.RoundToEven(e[0])), int(math.RoundToEven(e[1]))}
		s, ok := g.search(out[axis])
		if ok {
			ny, nx := filter.SurfaceSize(s.ny, s.nx)
			sums[axis] = make([]float32, ny*nx)
			where[axis] = s
		}
	}
	for _, a := range all {
		// a pair's surface may be a large thing: they are added as they are made, in
		// the pairs' order
		err := eachPair(ctx, a, func(p *filter.Phase, n neighbours) []float32 {
			g := &a.grid
			if sums[n.axis] == nil || n.pa == nil || n.pb == nil || g.extentOf(n.a) != g.tile || g.extentOf(n.b) != g.tile {
				return nil
			}
			s := where[n.axis]
			v := make([]float32, len(sums[n.axis]))
			if !p.Surface(v, cutOut(n.pa, g.tile[1], s.a, s.ny, s.nx), cutOut(n.pb, g.tile[1], s.b, s.ny, s.nx), s.ny, s.nx) {
				return nil
			}
			return v
		}, func(n neighbours, v []float32) {
			for i, x := range v {
				sums[n.axis][i] += x
			}
			found[n.axis] = found[n.axis] || v != nil
		})
		if err != nil {
			return out, err
		}
	}
	var candidates [2][][2]int
	for axis, sum := range sums {
		if found[axis] {
			candidates[axis] = where[axis].candidates(sum, out[axis])
		}
	}
	// which of the highest maxima it is, the planes themselves say
	var scores [2][commonPeaks]float64
	for _, a := range all {
		err := eachPair(ctx, a, func(p *filter.Phase, n neighbours) (scores [commonPeaks]float64) {
			if n.pa == nil || n.pb == nil {
				return scores
			}
			na, nb := a.grid.extentOf(n.a), a.grid.extentOf(n.b)
			for k, d := range candidates[n.axis] {
				s, ok := displaced(na, nb, d, leastOverlap)
				if !ok {
					continue
				}
				if f, ok := p.SubPixel(cutOut(n.pa, na[1], s.a, s.ny, s.nx), cutOut(n.pb, nb[1], s.b, s.ny, s.nx), s.ny, s.nx); ok {
					scores[k] = f.Correlation * math.Sqrt(float64(s.ny*s.nx))
				}
			}
			return scores
		}, func(n neighbours, s [commonPeaks]float64) {
			for k, v := range s {
				scores[n.axis][k] += v
			}
		})
		if err != nil {
			return out, err
		}
	}
	for axis, c := range candidates {
		best := 0
		for k := range c {
			if scores[axis][k] > scores[axis][best] {
				best = k
			}
		}
		if len(c) > 0 {
			out[axis] = c[best]
		}
	}
	return out, nil
}

// commonPeaks is how many maxima of a sum of surfaces are looked at.
const commonPeaks = 8

// candidates are the displacements of the highest maxima of a sum of surfaces.
func (s *strips) candidates(sum []float32, expected [2]int) (out [][2]int) {
	ny, nx := filter.SurfaceSize(s.ny, s.nx)
	// the tiles' positions scatter, and so do the single peaks
	for range 3 {
		sum = blurRound(sum, ny, nx)
	}
	type peak struct {
		at    int
		value float32
	}
	var peaks []peak
	for i, v := range sum {
		y, x := i/nx, i%nx
		top := true
		for d := range 9 {
			o := (y+d/3-1+ny)%ny*nx + (x+d%3-1+nx)%nx
			top = top && (sum[o] < v || sum[o] == v && o >= i)
		}
		if top {
			peaks = append(peaks, peak{i, v})
		}
	}
	slices.SortFunc(peaks, func(a, b peak) int { return cmp.Or(cmp.Compare(b.value, a.value), a.at-b.at) })
	for _, p := range peaks[:min(len(peaks), commonPeaks)] {
		var d [2]int
		for k, c := range [2]struct{ at, period int }{{p.at / nx, ny}, {p.at % nx, nx}} {
			// of the shifts that are equal modulo the period the one nearest to what is expected
			base := s.a[k] - s.b[k]
			want := expected[k] - base
			d[k] = base + c.at + int(math.Round(float64(want-c.at)/float64(c.period)))*c.period
		}
		out = append(out, d)
	}
	return out
}

// blurRound smooths a periodic surface by (1, 2, 1)/4 along both axes.
func blurRound(v []float32, ny, nx int) []float32 {
	out := make([]float32, len(v))
	for y := range ny {
		up, mid, down := v[(y+ny-1)%ny*nx:][:nx], v[y*nx:][:nx], v[(y+1)%ny*nx:][:nx]
		for x := range nx {
			l, r := (x+nx-1)%nx, (x+1)%nx
			a := up[l] + 2*up[x] + up[r]
			b := mid[l] + 2*mid[x] + mid[r]
			c := down[l] + 2*down[x] + down[r]
			out[y*nx+x] = (a + 2*b + c) / 16
		}
	}
	return out
}

// expected is the displacement of neighbours along an axis of the grid.
func (g *grid) expected(m Matrix, overlap float64, axis int) [2]float64 {
	if axis == 0 {
		return g.nominal(m, overlap, 1, 0)
	}
	return g.nominal(m, overlap, 0, 1)
}

func (g *grid) extentOf(t int) [2]int { return g.extent(t/g.nx, t%g.nx) }

// measure is what the comparison of two neighbours gave.
type measure struct {
	a, b, axis  int
	d           [2]float64 // displacement of b against a
	correlation float64
	precision   sym // of d, 1/px²
	reason      string
}

// sym is a symmetric 2×2 matrix.
type sym struct{ yy, yx, xx float64 }

func (s sym) add(o sym) sym { return sym{s.yy + o.yy, s.yx + o.yx, s.xx + o.xx} }

func (s sym) scaled(f float64) sym { return sym{s.yy * f, s.yx * f, s.xx * f} }

func (s sym) times(v [2]float64) [2]float64 {
	return [2]float64{s.yy*v[0] + s.yx*v[1], s.yx*v[0] + s.xx*v[1]}
}

// inverse of a positive matrix.
func (s sym) inverse() sym {
	det := s.yy*s.xx - s.yx*s.yx
	return sym{s.xx / det, -s.yx / det, s.yy / det}
}

const (
	// leastOverlap is how many pixels wide an overlap must be to be compared.
	leastOverlap = 8
	// leastCorrelation is what two tiles' overlap must reach to vote; chance
	// reaches it where there is no tissue only on small areas.
	leastCorrelation = 0.2
	// chance is by how many standard deviations of an accidental correlation the
	// correlation of tiles must lie above zero.
	chance = 5
	// independent is the number of pixels that a smoothed projection needs for an
	// independent one.
	independent = 12
	// exactness is the standard deviation in px that no measurement is trusted
	// below: of interpolation and of the parabola.
	exactness = 0.03
)

// compare measures the displacement of two neighbours within reach pixels of
// where it is expected.
func compare(p *filter.Phase, g *grid, light *shading, n neighbours, expected [2]float64, reach int) measure {
	m := measure{a: n.a, b: n.b, axis: n.axis, d: expected}
	if n.pa == nil || n.pb == nil {
		m.reason = "empty"
		return m
	}
	na, nb := g.extentOf(n.a), g.extentOf(n.b)
	d := [2]int{int(math.RoundToEven(expected[0])), int(math.RoundToEven(expected[1]))}
	planes := func() (s strips, fixed, moving []float32, ok bool) {
		if s, ok = displaced(na, nb, d, leastOverlap); ok {
			fixed, moving = light.of(n.pa, na[1], s.a, s.ny, s.nx), light.of(n.pb, nb[1], s.b, s.ny, s.nx)
		}
		return s, fixed, moving, ok
	}
	s, fixed, moving, ok := planes()
	if !ok {
		m.reason = "no overlap"
		return m
	}
	if reach > 0 {
		w := p.MatchWithin(fixed, moving, s.ny, s.nx, reach)
		d[0], d[1] = d[0]+w.DY, d[1]+w.DX
	}
	var f filter.Fit
	for range 2*reach + 4 {
		if s, fixed, moving, ok = planes(); !ok {
			m.reason = "no overlap"
			return m
		}
		if f, ok = p.SubPixel(fixed, moving, s.ny, s.nx); !ok {
			m.reason = "nothing to compare"
			return m
		}
		if f.Peak {
			break
		}
		d[0], d[1] = d[0]+int(f.DY), d[1]+int(f.DX)
	}
	if !f.Peak {
		m.reason = "nothing to compare"
		return m
	}
	m.d = [2]float64{float64(d[0]) + f.DY, float64(d[1]) + f.DX}
	m.correlation = f.Correlation
	area := float64(s.ny*s.nx) / independent
	if m.correlation < max(leastCorrelation, chance/math.Sqrt(area)) {
		m.reason = "no tissue in common"
		return m
	}
	if e := math.Hypot(m.d[0]-expected[0], m.d[1]-expected[1]); e > float64(reach)+1.5 {
		m.reason = "too far from where it should be"
		return m
	}
	// the likelihood of two noisy planes: its curvature is that of the correlation
	c := min(m.correlation, 0.9999)
	m.precision = sym{f.YY, f.YX, f.XX}.scaled(area * c / (1 - c*c))
	m.precision = m.precision.inverse().add(sym{exactness * exactness, 0, exactness * exactness}).inverse()
	return m
}

// compareAll measures all neighbours of a mosaic.
func (a *aligner) compareAll(ctx context.Context, expected [2][2]float64, reach int) ([]measure, error) {
	var out []measure
	err := eachPair(ctx, a, func(p *filter.Phase, n neighbours) measure {
		return compare(p, &a.grid, a.shading, n, expected[n.axis], reach)
	}, func(_ neighbours, m measure) { out = append(out, m) })
	return out, err
}
