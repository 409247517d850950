// Package pairwise registers two planes by a rotation and a translation, to a few hundredths of a pixel. [Register]
// needs no start.
//
// Planes become [Image]s: brightness between two percentiles, pixels without data marked, and a pyramid. On a coarse
// level, phase correlation at a set of angles gives starting points. Each climbs by Gauss-Newton steps to the highest
// normalised correlation; the best are followed from level to level. Whether the planes have anything in common is then
// judged by how far the phase correlation at the result stands out from that at all other displacements
// ([Result.Peak]): planes of different tissue correlate as well by chance as noisy planes of the same tissue do.
//
// [Elastic] finds the smooth displacements that a rigid transform leaves: the control points of a [bspline.Warp], by
// Gauss-Newton steps on the same correlation.
package pairwise

import (
	"cmp"
	"math"
	"slices"
	"sync"

	"strata/pkg/filter"
)

// Options tell [Register] what to look for.
type Options struct {
	Rotation bool
	// MaxRotation bounds the rotation, in radians, and MaxTranslation the length of the translation, in pixels.
	MaxRotation, MaxTranslation float64
	// Starting points besides the identity: Phase correlation at angles up to MaxRotation, and the centres of Mass.
	Phase, Mass bool
	// Thorough tries rotations also on finer planes if the coarse ones show nothing.
	Thorough bool
	// Each calls f for 0 … n−1, possibly concurrently; its error ends the search. nil: one after the other.
	Each func(n int, f func(i int)) error
}

// Result tells how the moving plane lies on the fixed one.
type Result struct {
	// Transform lays the moving plane on the fixed one: the moving plane resampled by it shows what the fixed one does.
	// It is the identity if the planes are not registered.
	Transform filter.Rigid
	// Before and After are the normalised correlations of the planes as they are and under the transform that was
	// found, over the pixels in which both have data; 0 if these are too few.
	Before, After float64
	// Overlap is the share of the smaller plane's pixels with data that overlap under the transform that was found.
	Overlap float64
	// Peak is the phase correlation under the transform that was found, above its mean over all displacements and in
	// units of its standard deviation. Planes that show nothing in common reach 5.
	Peak float64
	// Limited tells that the transform was cut to the largest rotation or translation.
	Limited bool
	// Refused is the reason why the planes count as not registered; "" if they are.
	Refused string
}

const (
	// leastPeak is the [Result.Peak] below which an agreement counts as accidental.
	leastPeak = 7
	// coarse and fine are the lengths in pixels, at most, of the planes on which rotations are tried, and tried again
	// if that fails: fine texture does not survive on the coarse level.
	coarse, fine = 128, 384
	// tried is the number of starting points that are refined, kept the number of fits that are followed to the next
	// level.
	tried, kept = 5, 2
	// same is the displacement under which two fits are one, in pixels of the level.
	same = 1.0
	// unmoved is the displacement in pixels that counts as none.
	unmoved = 0.1
)

// Register finds the rigid transform about (cx, cy) that lays the moving plane on the fixed one. Both have the same
// size.
func Register(fixed, moving *Image, cx, cy float64, o Options) (Result, error) {
	r, refused := begin(fixed, moving, filter.Rigid{CX: cx, CY: cy}, o)
	if r == nil {
		return refused, nil
	}
	first := r.levelOf(coarse)
	out, err := r.search(first)
	if second := r.levelOf(fine); err == nil && out.Refused != "" && o.Phase && o.Thorough && second < first {
		var again Result
		if again, err = r.search(second); again.Refused == "" {
			out = again
		}
	}
	return out, err
}

// Refine improves a transform that [Register] found with another plane of the same slice.
func Refine(fixed, moving *Image, t filter.Rigid, o Options) (Result, error) {
	r, refused := begin(fixed, moving, t, o)
	if r == nil {
		return refused, nil
	}
	fits, err := r.follow(0, []fit{{t: t}}, 1)
	if err != nil {
		return Result{}, err
	}
	return r.judge(fits[0]), nil
}

// Agreement returns the normalised correlation of two planes of the same size, smoothed, under a transform; −1 if they
// hardly overlap or show nothing.
func Agreement(fixed, moving *Image, t filter.Rigid) float64 {
	r, _ := begin(fixed, moving, t, Options{})
	if r == nil {
		return -1
	}
	f := r.refiner(0, nil)
	defer f.end()
	return f.try(t).correlation
}

type registration struct {
	fixed, moving *Image
	none          filter.Rigid
	o             Options
	phase         sync.Pool // of *filter.Phase
}

// begin returns nil and a result if there is nothing to register.
func begin(fixed, moving *Image, t filter.Rigid, o Options) (*registration, Result) {
	r := &registration{fixed: fixed, moving: moving, none: filter.Rigid{CX: t.CX, CY: t.CY}, o: o}
	r.phase.New = func() any { return filter.NewPhase() }
	switch {
	case fixed.blank != "":
		return nil, Result{Transform: r.none, Refused: "the fixed plane " + fixed.blank}
	case moving.blank != "":
		return nil, Result{Transform: r.none, Refused: "the moving plane " + moving.blank}
	}
	if o.Each == nil {
		r.o.Each = inTurn
	}
	return r, Result{}
}

// inTurn calls f for 0 … n−1.
func inTurn(n int, f func(i int)) error {
	for i := range n {
		f(i)
	}
	return nil
}

func (r *registration) refiner(k int, each func(n int, f func(i int)) error) *refiner {
	return newRefiner(r.fixed.levels[k], r.moving.levels[k], r.o.Rotation, each)
}

// levelOf returns the finest level on which planes are no longer than length, or the coarsest.
func (r *registration) levelOf(length int) int {
	k := 0
	for k < len(r.fixed.levels)-1 && max(r.fixed.levels[k].ny, r.fixed.levels[k].nx) > length {
		k++
	}
	return k
}

// search finds the best transform, beginning on level k.
func (r *registration) search(k int) (Result, error) {
	fits := []fit{{t: r.none}}
	if r.o.Mass {
		fits = append(fits, fit{t: r.centres()})
	}
	if r.o.Phase {
		more, err := r.phases(k)
		if err != nil {
			return Result{}, err
		}
		fits = append(fits, more...)
	}
	for ; k >= 0; k-- {
		var err error
		if fits, err = r.follow(k, fits, max(1, min(kept, k))); err != nil {
			return Result{}, err
		}
	}
	return r.judge(fits[0]), nil
}

// follow refines fits on a level and returns the n best.
func (r *registration) follow(k int, fits []fit, n int) (best []fit, err error) {
	out := make([]fit, len(fits))
	if len(fits) == 1 { // planes are shared out in its place
		alone := r.refiner(k, r.o.Each)
		defer alone.end()
		if out[0] = alone.climb(fits[0].t); alone.err != nil {
			return nil, alone.err
		}
	} else if err := r.o.Each(len(fits), func(i int) {
		one := r.refiner(k, nil)
		defer one.end()
		out[i] = one.climb(fits[i].t)
	}); err != nil {
		return nil, err
	}
	sortFits(out)
	for _, f := range out {
		near := func(b fit) bool { return r.apart(f.t, b.t) < same*r.fixed.levels[k].scale }
		if len(best) < n && !slices.ContainsFunc(best, near) {
			best = append(best, f)
		}
	}
	return best, nil
}

func sortFits(fits []fit) {
	slices.SortStableFunc(fits, func(a, b fit) int { return cmp.Compare(b.score(), a.score()) })
}

// apart returns how far two transforms place a corner of the plane apart at most, in pixels of level 0.
func (r *registration) apart(a, b filter.Rigid) float64 {
	l := r.fixed.levels[0]
	return root(a.TX-b.TX, a.TY-b.TY) + float64(math.Abs(a.Angle-b.Angle)*root(float64(l.ny), float64(l.nx))/2)
}

// centres returns the translation between the planes' centres of mass.
func (r *registration) centres() filter.Rigid {
	var at [2][2]float64
	for i, im := range []*Image{r.fixed, r.moving} {
		l := im.levels[0]
		mass := 0.0
		for y := range l.ny {
			for x, f := range l.v[y*l.nx:][:l.nx] {
				if f > 0.1 {
					mass += float64(f)
					at[i][0] += float64(float64(f) * float64(x))
					at[i][1] += float64(float64(f) * float64(y))
				}
			}
		}
		at[i][0], at[i][1] = at[i][0]/max(mass, 1), at[i][1]/max(mass, 1)
	}
	t := r.none
	t.TX, t.TY = at[1][0]-at[0][0], at[1][1]-at[0][1]
	return t
}

// phases finds displacements by phase correlation at angles so close that the corners of the plane move by a pixel of
// the level, and returns the best.
func (r *registration) phases(k int) ([]fit, error) {
	fixed, moving := r.fixed.levels[k], r.moving.levels[k]
	turns := 0
	step := 2 / root(float64(fixed.ny), float64(fixed.nx))
	if r.o.Rotation {
		turns = int(math.Ceil(min(r.o.MaxRotation, math.Pi) / step))
		step = min(r.o.MaxRotation, math.Pi) / float64(max(turns, 1))
	}
	out := make([]fit, 2*turns+1)
	limit := int(math.Ceil(r.o.MaxTranslation/fixed.scale)) + 1
	err := r.o.Each(len(out), func(i int) {
		angle := float64(i-turns) * step
		t := r.none
		t.Angle = angle
		turned := make([]float32, len(moving.detail))
		fixed.at(t).Resample(turned, moving.detail, moving.ny, moving.nx, 0, moving.ny, nan)
		p := r.phase.Get().(*filter.Phase)
		m := p.MatchWithin(fixed.detail, turned, fixed.ny, fixed.nx, limit)
		r.phase.Put(p)
		out[i] = fit{t.Then(0, -fixed.scale*float64(m.DX), -fixed.scale*float64(m.DY)), m.Correlation, m.Common}
	})
	sortFits(out)
	return out[:min(len(out), tried)], err
}

// judge decides whether a fit is to be trusted.
func (r *registration) judge(best fit) Result {
	out := Result{Transform: best.t}
	t := &out.Transform
	if limit := r.o.MaxRotation; math.Abs(t.Angle) > limit {
		t.Angle, out.Limited = math.Copysign(limit, t.Angle), true
	}
	if n, limit := root(t.TX, t.TY), r.o.MaxTranslation; n > limit {
		t.TX, t.TY, out.Limited = t.TX*limit/n, t.TY*limit/n, true
	}
	before, _ := r.correlate(r.none)
	after, pixels := r.correlate(*t)
	out.Before, out.After, out.Overlap = max(before, 0), max(after, 0), float64(pixels)/float64(min(r.fixed.data, r.moving.data))
	out.Peak = r.peak(*t)
	switch {
	case out.Peak < leastPeak:
		out.Refused = "no displacement stands out from the others"
	case !(after > before) && r.apart(*t, r.none) > unmoved:
		out.Refused = "the planes agree no better than before"
	}
	if out.Refused != "" {
		*t = r.none
	}
	return out
}

// correlate returns the correlation of the planes as they are, without smoothing, and in how many pixels they overlap.
func (r *registration) correlate(t filter.Rigid) (correlation float64, pixels int) {
	fixed, moving := r.fixed.levels[0], r.moving.levels[0]
	warped := make([]float32, len(fixed.v))
	resample(warped, moving.v, fixed, moving, t, 0, fixed.ny)
	var sum moments
	sum.add(fixed.v, warped)
	return sum.correlation(leastCommon(fixed, moving)), sum.n
}

// peak computes [Result.Peak].
func (r *registration) peak(t filter.Rigid) float64 {
	k := r.levelOf(2 * coarse)
	fixed, moving := r.fixed.levels[k], r.moving.levels[k]
	warped := make([]float32, len(fixed.detail))
	fixed.at(t).Resample(warped, moving.detail, moving.ny, moving.nx, 0, moving.ny, nan)
	ny, nx := filter.SurfaceSize(fixed.ny, fixed.nx)
	surface := make([]float32, ny*nx)
	p := r.phase.Get().(*filter.Phase)
	defer r.phase.Put(p)
	if !p.Surface(surface, fixed.detail, warped, fixed.ny, fixed.nx) {
		return 0
	}
	top, n, sum, squares := 0.0, 0, 0.0, 0.0
	for i, f := range surface {
		v := float64(f)
		y, x := i/nx, i%nx
		switch d := max(min(y, ny-y), min(x, nx-x)); {
		case d <= 1: // what is left of a displacement on a level below
			top = max(top, v)
		case d > 3:
			n++
			sum += v
			squares += float64(v * v)
		}
	}
	if n == 0 {
		return 0
	}
	mean := sum / float64(n)
	deviation := math.Sqrt(squares/float64(n) - float64(mean*mean))
	if !(deviation > 0) {
		return 0
	}
	return (top - mean) / deviation
}
