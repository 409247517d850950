package stack

import (
	"context"
	"math"
	"sync"
	"time"

	"strata/pkg/filter"
	"strata/pkg/meter"
)

const (
	gainVoxels  = 1000 // more than so many common voxels make a gain
	gainDark    = 1e-6 // medians that are not above it make none
	gainLeast   = 0.01 // a gain that differs less from 1 is not applied
	refineArea  = 1000 // so many common pixels at least make a refinement
	refineLeast = 0.1  // pixels
)

// pieces calls f with planes of a slice on the canvas, from the at-th of those
// that are blended on, until all have passed by. It may be called again.
type pieces func(f func(at int, planes [][]float32) error) error

// blend mixes the blend planes of a slice into the canvas. Where slices are matched
// to what is below them, it finds the slice's factor.
func (a *assembly) blend(ctx context.Context, m *movingSlice, k [2]int, moving pieces) (err error) {
	old := make([][]float32, k[1]-k[0])
	for i := range old {
		z := m.start + k[0] + i
		if old[i] = a.at(z); old[i] == nil {
			// a gap in the volume: there is nothing yet
			if old[i], err = a.take(); err != nil {
				return err
			}
			clear(old[i])
			a.set(z, old[i])
		}
	}
	if a.plan.opt.BlendMatch == MatchPairwise {
		gain, err := a.gain(ctx, m, old, moving)
		if err != nil {
			return err
		}
		a.result.matched(m, gain)
	}
	dy, dx := 0, 0
	if a.plan.opt.BlendRefinementPx > 0 {
		if dy, dx, err = a.refine(ctx, m, old, moving, m.gains.at(0)); err != nil {
			return err
		}
		if dy != 0 || dx != 0 {
			a.result.Refinements[m.slice.id] = [2]int{dy, dx}
		}
	}
	weights := filter.Hann(m.mix)
	return moving(func(at int, planes [][]float32) error {
		return a.crew.each(ctx, len(planes), a.res.Workers, func(_ *workMemory, i int) error {
			start := time.Now()
			a.mix(m.place, old[at+i], planes[i], weights, k[0]+at+i-(m.overlap-m.mix), m.gains.at(k[0]+at+i), dy, dx)
			a.res.Meter.Since(meter.Compute, start)
			return nil
		})
	})
}

// mix mixes a plane of a slice, scaled and moved by (−dy, −dx) with its edges
// repeated, into a plane of the canvas.
func (a *assembly) mix(r rect, old, v []float32, weights []float64, k int, gain float32, dy, dx int) {
	width := r.x1 - r.x0
	moved := make([]float32, 0, width)
	row := func(y int) []float32 {
		y = min(max(y-dy, r.y0), r.y1-1)
		src := v[y*a.nx+r.x0 : y*a.nx+r.x1]
		if dx == 0 {
			return src
		}
		moved = moved[:0]
		for x := range width {
			moved = append(moved, src[min(max(x-dx, 0), width-1)])
		}
		return moved
	}
	if len(weights) == 1 { // nothing to fade over: the fuller plane
		fixed, moving := 0, 0
		for y := r.y0; y < r.y1; y++ {
			fixed += positive(old[y*a.nx+r.x0 : y*a.nx+r.x1])
			moving += positive(row(y))
		}
		if moving < fixed {
			return
		}
		for y := r.y0; y < r.y1; y++ {
			dst := old[y*a.nx+r.x0 : y*a.nx+r.x1]
			for x, f := range row(y) {
				dst[x] = f * gain
			}
		}
		return
	}
	for y := r.y0; y < r.y1; y++ {
		filter.Mix(old[y*a.nx+r.x0:y*a.nx+r.x1], row(y), weights[k], gain)
	}
}

func positive(v []float32) (n int) {
	for _, f := range v {
		if f > 0 {
			n++
		}
	}
	return n
}

// gain is the ratio of the medians of what is on the canvas and what comes,
// over the voxels that both have.
func (a *assembly) gain(ctx context.Context, m *movingSlice, old [][]float32, moving pieces) (float32, error) {
	n, here, there, err := a.medians(ctx, m.place, old, moving)
	if err != nil {
		return 1, err
	}
	return gainOf(n, here, there), nil
}

// gainOf is the ratio of two medians over n voxels; 1 where it is not worth or not to be
// believed.
func gainOf(n int64, here, there float64) float32 {
	if n <= gainVoxels || !(here > gainDark && there > gainDark) {
		return 1
	}
	g := float32(min(max(here/there, 0.5), 2))
	if !(math.Abs(float64(g)-1) > gainLeast) {
		return 1
	}
	return g
}

const (
	// sampled is about how many voxels a median is guessed from.
	sampled = 1 << 17
	// margin is how far the median may be from the guess, in parts of the
	// voxels: seven standard deviations.
	margin = 0.01
	// bracketed is how many voxels near the median are kept at most.
	bracketed = 4 << 20
)

// medians are the exact medians of two sets of planes over the voxels of a
// rectangle that are above 0 in both, and the number of these. A sample says
// where they are about; then one pass over all counts what lies below and keeps
// what lies near. Where the sample misleads, two passes over histograms find them.
func (a *assembly) medians(ctx context.Context, r rect, old [][]float32, moving pieces) (n int64, here, there float64, err error) {
	each := func(f func(i int, v, w []float32)) error {
		return moving(func(at int, planes [][]float32) error {
			return a.crew.each(ctx, len(planes), a.res.Workers, func(_ *workMemory, i int) error {
				start := time.Now()
				for y := r.y0; y < r.y1; y++ {
					f(at+i, old[at+i][y*a.nx+r.x0:y*a.nx+r.x1], planes[i][y*a.nx+r.x0:y*a.nx+r.x1])
				}
				a.res.Meter.Since(meter.Compute, start)
				return nil
			})
		})
	}
	brackets := [2][]*filter.Bracket{make([]*filter.Bracket, len(old)), make([]*filter.Bracket, len(old))}
	var once sync.Once
	err = moving(func(at int, planes [][]float32) error {
		once.Do(func() {
			lo, hi := a.guess(r, old[at:at+len(planes)], planes)
			for i := range brackets {
				for j := range old {
					brackets[i][j] = &filter.Bracket{Lo: lo[i], Hi: hi[i], Cap: bracketed / len(old)}
				}
			}
		})
		return a.crew.each(ctx, len(planes), a.res.Workers, func(_ *workMemory, i int) error {
			start := time.Now()
			for y := r.y0; y < r.y1; y++ {
				filter.AddCommon(old[at+i][y*a.nx+r.x0:y*a.nx+r.x1], planes[i][y*a.nx+r.x0:y*a.nx+r.x1], brackets[0][at+i], brackets[1][at+i])
			}
			a.res.Meter.Since(meter.Compute, start)
			return nil
		})
	})
	if err != nil {
		return 0, 0, 0, err
	}
	for _, b := range brackets[0] {
		n += b.Count()
	}
	if n <= gainVoxels {
		return n, 0, 0, nil
	}
	var ok [2]bool
	here, ok[0] = filter.BracketMedian(brackets[0])
	there, ok[1] = filter.BracketMedian(brackets[1])
	if ok[0] && ok[1] {
		return n, here, there, nil
	}
	clear(brackets[0])
	clear(brackets[1])
	q := [2]*filter.Quantiles{filter.NewQuantiles(50), filter.NewQuantiles(50)}
	for pass := range 2 {
		if pass == 1 {
			q[0].Refine()
			q[1].Refine()
		}
		if err := each(func(i int, v, w []float32) {
			var both [2][]float32
			for x, f := range v {
				if f > 0 && w[x] > 0 {
					both[0], both[1] = append(both[0], f), append(both[1], w[x])
				}
			}
			q[0].Add(both[0])
			q[1].Add(both[1])
		}); err != nil {
			return 0, 0, 0, err
		}
	}
	return n, q[0].Value(0), q[1].Value(0), nil
}

// guess is where the two medians probably lie, from evenly spaced voxels.
func (a *assembly) guess(r rect, old, planes [][]float32) (lo, hi [2]float32) {
	var v [2][]float32
	height, width := r.y1-r.y0, r.x1-r.x0
	total := len(planes) * height * width
	for i := 0; i < total; i += max(1, total/sampled) {
		at := (r.y0+i/width%height)*a.nx + r.x0 + i%width
		f, m := old[i/width/height][at], planes[i/width/height][at]
		if f > 0 && m > 0 {
			v[0], v[1] = append(v[0], f), append(v[1], m)
		}
	}
	for i := range v {
		if len(v[i]) < sampled/16 { // too few to judge: all of them
			lo[i], hi[i] = 0, float32(math.Inf(1))
			continue
		}
		q := filter.Percentiles(v[i], 50-100*margin, 50+100*margin)
		lo[i], hi[i] = float32(q[0]), float32(q[1])
	}
	return lo, hi
}

// refine is the shift (dy, dx) for which the mean of the slice's planes matches
// that of the canvas best.
func (a *assembly) refine(ctx context.Context, m *movingSlice, old [][]float32, moving pieces, gain float32) (dy, dx int, err error) {
	r := m.place
	height, width := r.y1-r.y0, r.x1-r.x0
	sums := [2][]float64{make([]float64, height*width), make([]float64, height*width)}
	err = moving(func(at int, planes [][]float32) error {
		return a.crew.each(ctx, height, a.res.Workers, func(_ *workMemory, y int) error {
			start := time.Now()
			for i, set := range [2][][]float32{old[at : at+len(planes)], planes} {
				for _, v := range set {
					filter.AddPlanes(sums[i][y*width:(y+1)*width], v[(r.y0+y)*a.nx+r.x0:][:width])
				}
			}
			a.res.Meter.Since(meter.Compute, start)
			return nil
		})
	})
	if err != nil {
		return 0, 0, err
	}
	start := time.Now()
	defer a.res.Meter.Since(meter.Compute, start)
	mean := [2][]float32{make([]float32, height*width), make([]float32, height*width)}
	for i := range mean {
		filter.Mean(mean[i], sums[i], len(old))
	}
	dy, dx = a.plan.refinement(mean, height, width, gain)
	return dy, dx, nil
}

// refinement is the shift for which the second of two mean planes, which it scales by
// gain, matches the first best: 0 where it is not worth or not to be believed.
func (p *stackPlan) refinement(mean [2][]float32, height, width int, gain float32) (dy, dx int) {
	for i := range mean[1] {
		mean[1][i] *= gain
	}
	if filter.CountCommon(mean[0], mean[1]) < refineArea {
		return 0, 0
	}
	dy, dx = filter.PhaseShift(mean[0], mean[1], height, width)
	if d := math.Hypot(float64(dy), float64(dx)); d < refineLeast || d > p.opt.BlendRefinementPx {
		return 0, 0
	}
	return dy, dx
}
