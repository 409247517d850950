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

// mostStrangers is the maximum number of pairs along each axis that are known not to overlap and are compared all the
// same, to learn what chance and what all tiles have in common reach.
const mostStrangers = 100

// lookAround looks for all pairs of a mosaic wherever they may overlap if expected around some displacement. Strangers are
// looked for around those of the axes.
func (a *aligner) lookAround(ctx context.Context, expects expectation, steps consensus.Steps, budget int64) (*found, error) {
	o := a.overview
	type task struct {
		pair
		stranger bool
	}
	g := &a.grid
	var tasks []task
	for _, p := range a.pairs {
		tasks = append(tasks, task{pair: p})
	}
	for axis := range 2 {
		for _, p := range g.strangers(axis) {
			tasks = append(tasks, task{p, true})
		}
	}
	tasks = slices.DeleteFunc(tasks, func(t task) bool { return o.Tile[t.a] == nil || o.Tile[t.b] == nil })
	slices.SortStableFunc(tasks, func(s, t task) int { return s.b - t.b })
	each := filter.CorrelatorBytes(o.Size[0], o.Size[1])
	workers := int(max(1, min(int64(a.workers), budget/(4*each))))
	most := int(max(2, (budget-int64(workers)*each)/each)) // spectra
	correlators := make([]*filter.Correlator, workers)
	for k := range correlators {
		correlators[k] = filter.NewCorrelator(o.Size[0], o.Size[1])
	}
	out := &found{}
	a.units = map[pair]float64{}
	spectra := make(map[int]*filter.Spectrum)
	for len(tasks) > 0 {
		// as many as the memory holds the tiles of
		n, need := 0, map[int]bool{}
		for _, t := range tasks {
			more := 0
			for _, k := range []int{t.a, t.b} {
				if !need[k] {
					more++
				}
			}
			if len(need)+more > most {
				break
			}
			need[t.a], need[t.b] = true, true
			n++
		}
		var missing []int
		for t := range spectra {
			if !need[t] {
				delete(spectra, t)
			}
		}
		for t := range need {
			if spectra[t] == nil {
				missing = append(missing, t)
			}
		}
		made := make([]*filter.Spectrum, len(missing))
		if err := work.Each(ctx, workers, len(missing), func(worker, k int) error {
			start := time.Now()
			defer a.res.Meter.Since(meter.Compute, start)
			made[k] = correlators[worker].Spectrum(o.Tile[missing[k]])
			return nil
		}); err != nil {
			return nil, err
		}
		for k, t := range missing {
			spectra[t] = made[k]
		}
		if err := work.InOrder(ctx, workers, n, func(worker, k int) (p consensus.Pair) {
			start := time.Now()
			defer a.res.Meter.Since(meter.Compute, start)
			t := tasks[k]
			at := steps[t.axis]
			if !t.stranger {
				at = expects(t.pair)
			}
			r := o.Region(at)
			n := r.Size()
			p.A, p.B, p.Axis, p.Area = t.a, t.b, t.axis, float64(n[0]*n[1]*o.Step[0]*o.Step[1])
			p.Candidates, p.Unit = o.Look(correlators[worker], spectra[t.a], spectra[t.b], r)
			return p
		}, func(k int, p consensus.Pair) {
			if !tasks[k].stranger {
				out.pairs = append(out.pairs, p)
				a.units[tasks[k].pair] = p.Unit
			} else {
				out.strangers = append(out.strangers, p)
			}
		}); err != nil {
			return nil, err
		}
		tasks = tasks[n:]
	}
	return out, nil
}

// strangers returns pairs of tiles that cannot overlap where neighbours along an axis are looked for: two apart along
// the other axis, or along this one.
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
