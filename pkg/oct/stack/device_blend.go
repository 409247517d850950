package stack

import (
	"context"
	"time"

	"strata/pkg/dtype"
	"strata/pkg/filter"
	"strata/pkg/gpu"
	"strata/pkg/gpu/kernels"
	"strata/pkg/meter"
)

// planePairs calls f with planes of the canvas and of a slice that are to be blended,
// both at the corner of the slice, of which the first is the first-th.
type planePairs func(f func(old, moving kernels.Planes, first, n int) error) error

// blend is [assembly.blend]. Planes k of the slice, and those behind them up to plane
// ahead, which go to the canvas, are brought at once if there is room. Else planes k come in
// pieces, again for each pass: three for the gain, one for the refinement, one to mix.
func (a *deviceAssembly) blend(ctx context.Context, m *movingSlice, k [2]int, ahead int) (err error) {
	r := m.place
	a.gaps(m.start+k[0], m.start+k[1])
	a.loaded = [2]int{}
	moving := func(f func(old, moving kernels.Planes, first, n int) error) error {
		for from, to := k[0], 0; from < k[1]; from = to {
			to = wholeChunks(m, from, min(from+a.most, k[1]), k[1])
			if a.loaded != [2]int{from, to} {
				runs, end := []planeRun{{n: to - from, at: a.beside(0, r.y0, r.x0)}}, to
				if to == k[1] && from == k[0] && ahead > to {
					runs = append(runs, a.runsOf(m, m.start+to, ahead-to, to-from)...)
					end = ahead
				}
				if err := a.bring(ctx, m, from, end, planeGains{}, runs); err != nil {
					return err
				}
				a.loaded = [2]int{from, to}
			}
			for _, run := range a.runs(m.start+from, to-from, 0, r.y0, r.x0) {
				if err := f(run.at, a.beside(run.first, r.y0, r.x0), from-k[0]+run.first, run.n); err != nil {
					return err
				}
			}
		}
		return nil
	}
	if a.plan.opt.BlendMatch == MatchPairwise {
		gain, err := a.gain(r, moving)
		if err != nil {
			return err
		}
		a.result.matched(m, gain)
	}
	dy, dx := 0, 0
	if a.plan.opt.BlendRefinementPx > 0 {
		if dy, dx, err = a.refine(r, k[1]-k[0], moving, m.gains.at(0)); err != nil {
			return err
		}
		if dy != 0 || dx != 0 {
			a.result.Refinements[m.slice.id] = [2]int{dy, dx}
		}
	}
	if m.mix == 1 { // nothing to fade over
		return moving(func(old, moving kernels.Planes, _, _ int) error {
			return a.fuller(r, old, moving, m.gains.at(k[0]), dy, dx)
		})
	}
	stream := a.worker.Stream
	weights := a.table[:8*m.mix]
	copy(weights, dtype.Bytes(filter.Hann(m.mix)))
	stream.Upload(a.weights, weights)
	return moving(func(old, moving kernels.Planes, first, n int) error {
		return m.gains.alike(k[0]+first, n, func(at, n int, gain float32) error {
			w := a.weights.From(8*int64(k[0]+first+at-(m.overlap-m.mix)), 8*int64(n))
			return kernels.Mix(stream, planeRun{at: old}.from(at, 0, 0), planeRun{at: moving}.from(at, 0, 0), n, r.y1-r.y0, r.x1-r.x0, w, gain, dy, dx)
		})
	})
}

// gaps makes planes of the canvas zero where there is nothing yet.
func (a *deviceAssembly) gaps(z0, z1 int) {
	for z := z0; z < z1; z++ {
		if there := &a.placed[z%a.slots]; !*there {
			a.worker.Stream.Zero(a.slot(z))
			*there = true
		}
	}
}

// gain is [assembly.gain]: the medians are exact.
func (a *deviceAssembly) gain(r rect, moving planePairs) (float32, error) {
	stream, height, width := a.worker.Stream, r.y1-r.y0, r.x1-r.x0
	for _, s := range a.medians {
		s.Begin(stream)
	}
	for range kernels.Passes {
		err := moving(func(old, moving kernels.Planes, _, n int) error {
			if err := a.medians[0].Add(stream, old, moving, n, height, width); err != nil {
				return err
			}
			return a.medians[1].Add(stream, moving, old, n, height, width)
		})
		if err != nil {
			return 0, err
		}
		for _, s := range a.medians {
			if err := s.Next(stream); err != nil {
				return 0, err
			}
		}
	}
	for i, v := range []gpu.Span{a.medians[0].Values, a.medians[1].Values, a.medians[0].Numbers} {
		stream.Download(a.numbers[8*i:8*i+8], v)
	}
	if err := a.wait(); err != nil {
		return 0, err
	}
	v := dtype.Slice[float64](a.numbers)
	return gainOf(int64(dtype.Slice[uint64](a.numbers)[2]), v[0], v[1]), nil
}

// refine is [assembly.refine]. The mean planes come to the host, which finds the shift:
// a Fourier transform on the device rounds differently, and the highest of maxima that
// are nearly as high might be another.
func (a *deviceAssembly) refine(r rect, planes int, moving planePairs, gain float32) (dy, dx int, err error) {
	stream, height, width := a.worker.Stream, r.y1-r.y0, r.x1-r.x0
	err = moving(func(old, moving kernels.Planes, first, n int) error {
		for i, v := range []kernels.Planes{old, moving} {
			if err := kernels.SumPlanes(stream, a.sums[i], v, n, height, width, first == 0); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return 0, 0, err
	}
	n := int64(height) * int64(width)
	var mean [2][]float32
	for i := range mean {
		if err := kernels.Mean(stream, a.mean, a.sums[i], planes, n); err != nil {
			return 0, 0, err
		}
		stream.Download(a.means[i][:4*n], a.mean)
		mean[i] = dtype.Slice[float32](a.means[i][:4*n])
	}
	if err := a.wait(); err != nil {
		return 0, 0, err
	}
	start := time.Now()
	defer a.res.Meter.Since(meter.Compute, start)
	dy, dx = a.plan.refinement(mean, height, width, gain)
	return dy, dx, nil
}

// fuller leaves of two planes the one that has more positive voxels: that of the slice,
// scaled and moved, if they have as many.
func (a *deviceAssembly) fuller(r rect, old, moving kernels.Planes, gain float32, dy, dx int) error {
	stream, height, width := a.worker.Stream, r.y1-r.y0, r.x1-r.x0
	v := moving
	if dy != 0 || dx != 0 { // what its voxels are once it is moved
		v = kernels.Planes{At: a.sums[0], Pitch: width}
		if err := kernels.Scale(stream, v, moving, 1, height, width, 1, dy, dx); err != nil {
			return err
		}
	}
	counts := a.counts
	stream.Zero(counts)
	for i, p := range []kernels.Planes{old, v} {
		if err := kernels.CountCommon(stream, counts.From(8*int64(i), 8), p, p, 1, height, width); err != nil {
			return err
		}
	}
	stream.Download(a.numbers[:16], counts)
	if err := a.wait(); err != nil {
		return err
	}
	if n := dtype.Slice[uint64](a.numbers); n[1] < n[0] {
		return nil
	}
	return kernels.Scale(stream, old, moving, 1, height, width, gain, dy, dx)
}
