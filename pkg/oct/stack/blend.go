package stack

import (
	"math"
	"slices"
	"time"

	"strata/pkg/filter"
	"strata/pkg/meter"
	"strata/pkg/oct"
	"strata/pkg/oct/compute/volume"
)

const (
	gainVoxels  = 1000 // a gain needs more common voxels than this
	gainDark    = 1e-6 // and medians above this
	gainLeast   = 0.01 // smallest difference from 1 of a gain that is applied
	refineArea  = 1000 // minimum number of common pixels for a refinement
	refineLeast = 0.1  // pixels
)

// passing calls f with planes of the canvas, from index at on, and the planes of a slice that are blended with
// them, until all have been passed. It may be called several times.
type passing func(f func(at int, fixed, moving []volume.Plane))

// blend mixes planes k of a slice into the canvas. If slices are matched pairwise, it determines the slice's gain.
// Planes after them, up to ahead, share a chunk with the last one and are placed at once if there is room; blend
// returns the first plane that is still to be put.
func (a *assembly) blend(m *movingSlice, k [2]int, ahead int) (next int) {
	n := k[1] - k[0]
	fixed := append([]volume.Plane{}, a.ready(m.start+k[0], n, oct.Rectangle{})...)
	next = k[1]
	pass := func(f func(at int, fixed, moving []volume.Plane)) { // in pieces, read again for each pass
		for from, to := k[0], 0; from < k[1] && a.mem.Err() == nil; from = to {
			to = wholeChunks(m, from, min(from+max(1, a.mem.Room(k[1]-from)), k[1]), k[1])
			moving := a.mem.Take(to - from)
			a.load(m, from, moving, planeGains{})
			f(from-k[0], fixed[from-k[0]:to-k[0]], moving)
			a.mem.Give(moving)
		}
	}
	behind := a.missing(m.start+k[1], ahead-k[1])
	if room := a.mem.Room(n + behind); room >= n { // at once, so that chunks are decoded once
		moving := a.mem.Take(n)
		defer func() { a.mem.Give(moving) }()
		to := moving
		if room >= n+behind {
			next = ahead
			to = append(to[:n:n], a.ready(m.start+k[1], ahead-k[1], m.place)...)
		}
		a.load(m, k[0], to, planeGains{})
		pass = func(f func(at int, fixed, moving []volume.Plane)) { f(0, fixed, moving) }
	}
	a.mix(m, k, pass)
	if next > k[1] {
		a.mem.Scale(a.ready(m.start+k[1], next-k[1], m.place), m.place, m.gains.of(k[1], next-k[1]))
	}
	return next
}

// mix mixes planes k of a slice into the canvas, as pass hands them over.
func (a *assembly) mix(m *movingSlice, k [2]int, pass passing) {
	n := k[1] - k[0]
	if a.plan.opt.BlendMatch == MatchPairwise {
		a.result.matched(m, a.gain(m.place, n, pass))
	}
	mix := &volume.Mix{Part: m.place, Gains: m.gains.of(k[0], n)}
	if a.plan.opt.BlendRefinementPx > 0 {
		mix.DY, mix.DX = a.refine(m.place, pass, m.gains.at(0))
		if mix.DY != 0 || mix.DX != 0 {
			a.result.Refinements[m.slice.id] = [2]int{mix.DY, mix.DX}
		}
	}
	switch {
	case a.plan.opt.BlendWeights == WeightsAverage:
		mix.Weights = slices.Repeat([]float64{0.5}, n)
	case m.mix > 1: // else there is nothing to fade over
		mix.Weights = filter.Hann(m.mix)[k[0]-(m.overlap-m.mix):][:n]
	}
	pass(func(at int, fixed, moving []volume.Plane) { a.mem.Mix(mix, at, fixed, moving) })
}

// gain returns the ratio of the medians of n planes on the canvas and of the slice, over the voxels that both
// have.
func (a *assembly) gain(part oct.Rectangle, n int, pass passing) float32 {
	medians := a.mem.Medians(part, n)
	for medians.Next() {
		pass(medians.Add)
	}
	return gainOf(medians.Values())
}

// gainOf returns the ratio of two medians over n voxels, or 1 if it is negligible or unreliable.
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

// refine returns the shift (dy, dx) at which the mean of the slice's planes matches the canvas best. The host
// computes it on every machine: a Fourier transform on a device rounds differently and might prefer another of
// several similar maxima.
func (a *assembly) refine(part oct.Rectangle, pass passing, gain float32) (dy, dx int) {
	means := a.mem.Means(part)
	pass(func(_ int, fixed, moving []volume.Plane) { means.Add(fixed, moving) })
	fixed, moving := means.Values()
	if a.mem.Err() != nil {
		return 0, 0
	}
	start := time.Now()
	defer a.res.Meter.Since(meter.Compute, start)
	return a.plan.refinement(fixed, moving, part.Height(), part.Width(), gain)
}

// refinement returns the shift at which the second of two mean planes matches the first best, or 0 if it is
// negligible or unreliable. It multiplies moving by gain.
func (p *stackPlan) refinement(fixed, moving []float32, height, width int, gain float32) (dy, dx int) {
	for i := range moving {
		moving[i] *= gain
	}
	if filter.CountCommon(fixed, moving) < refineArea {
		return 0, 0
	}
	dy, dx = filter.PhaseShift(fixed, moving, height, width)
	if d := math.Hypot(float64(dy), float64(dx)); d < refineLeast || d > p.opt.BlendRefinementPx {
		return 0, 0
	}
	return dy, dx
}
