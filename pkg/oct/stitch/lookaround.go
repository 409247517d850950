package stitch

import (
	"context"
	"slices"
	"time"

	"strata/pkg/filter"
	"strata/pkg/meter"
	"strata/pkg/oct/stitch/consensus"
	"strata/pkg/work"
)

// found holds the displacements at which the pairs of a mosaic may overlap.
type found struct {
	pairs     []consensus.Pair
	strangers []consensus.Pair // tiles that do not overlap, looked for as the pairs of each axis
}

// mostStrangers is the maximum number of strangers along each axis: pairs of tiles that are known not to overlap. Their
// scores show how well tiles agree by chance, and by patterns that all tiles share.
const mostStrangers = 100

// search is a pair to look for.
type search struct {
	pair
	stranger bool
}

// lookAround searches the overviews of a mosaic for all pairs, each wherever the two tiles may overlap around its
// expected displacement. It searches strangers in the same way around the displacement of their axis in steps.
func (a *aligner) lookAround(ctx context.Context, expects expectation, steps consensus.Steps, budget int64) (*found, error) {
	tasks := a.searches()
	s := newSpectra(a, budget)
	out := &found{}
	a.units = map[pair]float64{}
	for len(tasks) > 0 {
		n, need := s.fitting(tasks)
		if err := s.prepare(ctx, need); err != nil {
			return nil, err
		}
		if err := work.InOrder(ctx, len(s.correlators), n, func(worker, k int) consensus.Pair {
			start := time.Now()
			defer a.res.Meter.Since(meter.Compute, start)
			at := steps[tasks[k].axis]
			if !tasks[k].stranger {
				at = expects(tasks[k].pair)
			}
			return s.look(worker, tasks[k].pair, at)
		}, func(k int, p consensus.Pair) {
			if tasks[k].stranger {
				out.strangers = append(out.strangers, p)
				return
			}
			out.pairs = append(out.pairs, p)
			a.units[tasks[k].pair] = p.Unit
		}); err != nil {
			return nil, err
		}
		tasks = tasks[n:]
	}
	return out, nil
}

// searches returns the pairs and strangers whose tiles have an overview, by their later tile.
func (a *aligner) searches() (out []search) {
	for _, p := range a.pairs {
		out = append(out, search{pair: p})
	}
	for axis := range 2 {
		for _, p := range a.grid.strangers(axis) {
			out = append(out, search{p, true})
		}
	}
	tiles := a.overview.Tile
	out = slices.DeleteFunc(out, func(t search) bool { return tiles[t.a] == nil || tiles[t.b] == nil })
	slices.SortStableFunc(out, func(s, t search) int { return s.b - t.b })
	return out
}

// spectra holds the overviews' Fourier transforms of as many tiles as the memory allows.
type spectra struct {
	a           *aligner
	correlators []*filter.Correlator // by worker
	of          map[int]*filter.Spectrum
	free        []*filter.Spectrum // of tiles that are not needed any more
	most        int
}

func newSpectra(a *aligner, budget int64) *spectra {
	n := a.overview.Size
	each := filter.CorrelatorBytes(n[0], n[1])
	s := &spectra{a: a, of: map[int]*filter.Spectrum{}}
	for range max(1, min(int64(a.workers), budget/(4*each))) {
		s.correlators = append(s.correlators, filter.NewCorrelator(n[0], n[1]))
	}
	s.most = int(max(2, budget/each-int64(len(s.correlators))))
	return s
}

// fitting returns how many of the first tasks the memory holds the tiles of, and these tiles.
func (s *spectra) fitting(tasks []search) (n int, need map[int]bool) {
	need = map[int]bool{}
	for _, t := range tasks {
		more := 0
		for _, k := range []int{t.a, t.b} {
			if !need[k] {
				more++
			}
		}
		if len(need)+more > s.most {
			break
		}
		need[t.a], need[t.b] = true, true
		n++
	}
	return n, need
}

// prepare computes the spectra of the tiles in need, and reuses the memory of all other spectra.
func (s *spectra) prepare(ctx context.Context, need map[int]bool) error {
	for t, old := range s.of {
		if !need[t] {
			s.free = append(s.free, old)
			delete(s.of, t)
		}
	}
	var missing []int
	for t := range need {
		if s.of[t] == nil {
			missing = append(missing, t)
		}
	}
	made := make([]*filter.Spectrum, len(missing))
	s.free = s.free[copy(made, s.free):]
	err := work.Each(ctx, len(s.correlators), len(missing), func(worker, k int) error {
		start := time.Now()
		defer s.a.res.Meter.Since(meter.Compute, start)
		made[k] = s.correlators[worker].Spectrum(made[k], s.a.overview.Tile[missing[k]])
		return nil
	})
	for k, t := range missing {
		s.of[t] = made[k]
	}
	return err
}

// look looks for a pair where it may overlap if expected at a displacement.
func (s *spectra) look(worker int, p pair, at [2]float64) consensus.Pair {
	o := s.a.overview
	r := o.Region(at)
	n := r.Size()
	out := consensus.Pair{A: p.a, B: p.b, Axis: p.axis, Area: float64(n[0] * n[1] * o.Step[0] * o.Step[1])}
	out.Candidates, out.Unit = o.Look(s.correlators[worker], s.of[p.a], s.of[p.b], r)
	return out
}

// strangers returns pairs of tiles that are two rows or two columns apart. They cannot overlap where neighbours along
// the axis are searched.
func (g *grid) strangers(axis int) (out []pair) {
	apart := [2][2]int{{0, 2}, {2, 0}}
	if axis == 1 {
		apart = [2][2]int{{2, 0}, {0, 2}}
	}
	for _, d := range apart {
		for i := range g.ny - d[0] {
			for j := range g.nx - d[1] {
				a, b := i*g.nx+j, (i+d[0])*g.nx+j+d[1]
				if g.has(a) && g.has(b) {
					out = append(out, pair{a, b, axis})
				}
			}
		}
		if len(out) >= 20 {
			break
		}
	}
	if n := len(out); n > mostStrangers {
		for k := range mostStrangers {
			out[k] = out[k*n/mostStrangers]
		}
		out = out[:mostStrangers]
	}
	return out
}
