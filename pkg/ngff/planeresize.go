package ngff

import "strata/pkg/filter"

// planeResizer computes the planes of a level from planes that arrive in the order of z. For each row of the level it
// sums input rows (Y) and adds the sum to those of the output planes to which the input plane contributes (Z). An
// output plane with all its inputs gets a pass along its rows (X). Bands of rows share nothing, so that workers process
// them independently.
type planeResizer struct {
	z, y, x *filter.Weights
	plainX  bool // as many columns as before
	plainY  bool
	band    int   // rows that one task makes
	weights int64 // bytes of z, y and x at most
	slots   int   // output planes under construction at a time, at most
	atOnce  int   // output planes that one input plane completes, at most
	acc     []float32
}

// planeWeightsBytes returns the memory of the weights of a resizer.
func planeWeightsBytes(from, to [3]int) (sum int64) {
	for d := range from {
		sum += filter.WeightsBytes(from[d], to[d], filter.AntiAliasSigma(from[d], to[d]))
	}
	return sum
}

func newPlaneResizer(from, to [3]int) *planeResizer {
	weights := func(d int) *filter.Weights {
		return filter.CentreAligned(from[d], to[d], filter.AntiAliasSigma(from[d], to[d]), filter.Mirror)
	}
	r := &planeResizer{z: weights(0), y: weights(1), x: weights(2)}
	r.weights = planeWeightsBytes(from, to)
	r.plainX, r.plainY = r.x.Identity(), r.y.Identity()
	begun := 0
	run := 1
	for k := range to[0] {
		last := r.lastInput(k)
		for begun < to[0] && r.firstInput(begun) <= last {
			begun++
		}
		r.slots = max(r.slots, begun-k)
		if k > 0 && last == r.lastInput(k-1) {
			run++
		} else {
			run = 1
		}
		r.atOnce = max(r.atOnce, run)
	}
	// the sums of a band stay in the cache
	r.band = min(max(256<<10/4/max(r.slots*from[2], 1), 4), 32)
	return r
}

func (r *planeResizer) firstInput(k int) int { first, _ := r.z.Inputs(k, k+1); return first }
func (r *planeResizer) lastInput(k int) int  { _, end := r.z.Inputs(k, k+1); return end - 1 }

// complete returns how many output planes have all their inputs after n input planes.
func (r *planeResizer) complete(n int) int {
	lo, hi := 0, r.z.Out()
	for lo < hi {
		if k := (lo + hi) / 2; r.lastInput(k) < n {
			lo = k + 1
		} else {
			hi = k
		}
	}
	return lo
}

// sums returns the number of elements of the sums along z.
func (r *planeResizer) sums() int { return r.slots * r.y.Out() * r.x.In() }

// scratch returns the number of elements that a worker needs.
func (r *planeResizer) scratch() int { return r.band*r.x.In() + r.x.RowScratch() }

// rows takes input planes from at on into rows first to end−1 of a level, and
// finishes those rows of the output planes that become complete.
func (r *planeResizer) rows(l *planeLevel, s *planeScratch, planes [][]float32, at, first, end int) error {
	nx, ny := r.x.In(), r.y.Out()
	buf, err := s.get(r.scratch())
	if err != nil {
		return err
	}
	tmp, across := buf[:r.band*nx], buf[r.band*nx:]
	k0 := r.complete(at)
	for i, plane := range planes {
		p := at + i
		rows := tmp[:(end-first)*nx]
		if r.plainY {
			rows = plane[first*nx : end*nx]
		} else {
			for y := first; y < end; y++ {
				from, taps := r.y.Taps(y)
				filter.Combine(rows[(y-first)*nx:][:nx], plane[from*nx:], nx, taps)
			}
		}
		for k := k0; k < r.z.Out(); k++ {
			from, taps := r.z.Taps(k)
			if from > p {
				break
			}
			sum := r.acc[(k%r.slots*ny+first)*nx : (k%r.slots*ny+end)*nx]
			if p == from {
				filter.Combine(sum, rows, 0, taps[:1])
			} else if p < from+len(taps) {
				filter.AddCombine(sum, rows, 0, taps[p-from:p-from+1])
			}
			if p == from+len(taps)-1 {
				out := l.layer[k-l.first][first*l.shape[2] : end*l.shape[2]]
				if r.plainX {
					copy(out, sum)
				} else {
					r.x.ApplyRows(out, sum, end-first, across)
				}
				k0 = k + 1
			}
		}
	}
	return nil
}
