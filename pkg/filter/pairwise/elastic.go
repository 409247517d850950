package pairwise

import (
	"fmt"

	"strata/pkg/filter"
	"strata/pkg/filter/bspline"
)

// ElasticOptions tell [Elastic] how far planes may be deformed.
type ElasticOptions struct {
	Spacing float64 // between control points, in pixels
	Largest float64 // displacement in pixels: planes that seem to be displaced by more are refused
	// Each calls f for 0 … n−1, possibly concurrently; its error ends the work. nil: one after the other.
	Each func(n int, f func(i int)) error
}

// ElasticResult tells how the moving plane is deformed beside the fixed one.
type ElasticResult struct {
	// Warp displaces points of the moving plane, on top of the rigid transform: pixel p of the fixed plane shows what
	// the moving one shows at T(p) + d(T(p)). nil if Refused.
	Warp *bspline.Warp
	// Before and After are the correlations of the planes' detail under the rigid transform alone and with the
	// displacements.
	Before, After float64
	// HeldOutBefore and HeldOutAfter are the same in pixels that the displacements were not fitted to.
	HeldOutBefore, HeldOutAfter float64
	Displacement                float64 // the largest, in pixels
	Refused                     string  // why there are no displacements; "": there are
}

const (
	// bending is the weight of the squared second differences of control points, ridge that of their squares, both in
	// units of the mean weight that the pixels have on a control point. The first keeps displacements smooth, the
	// second makes them vanish where nothing is seen.
	bending, ridge = 0.01, 1e-4
	// heldOut is the least side in pixels of the squares that are held out in turn; for wide spacings it is half of
	// these.
	heldOut = 16
	// leastGain is the gain in correlation of the pixels held out, as a share of what is missing to 1, that
	// displacements must have.
	leastGain = 0.002
	// coarsest is the scale of the level on which the search for displacements begins.
	coarsest = 4
	// elasticSteps limits the steps on a level; enough ends them: the displacement in pixels of the level.
	elasticSteps, enough = 12, 0.01
)

// Elastic finds the smooth displacements that remain after the rigid transform t, which [Register] found. They are
// fitted three times: to all pixels, and to those of the light and of the dark squares of a checkerboard. The fit to
// all counts only if those to either half bring the other half to agree better.
func Elastic(fixed, moving *Image, t filter.Rigid, o ElasticOptions) (ElasticResult, error) {
	if r, refused := begin(fixed, moving, t, Options{}); r == nil {
		return ElasticResult{Refused: refused.Refused}, nil
	}
	each := o.Each
	if each == nil {
		each = inTurn
	}
	e := &elastic{fixed: fixed, moving: moving, back: t.Inverse(), side: max(heldOut, o.Spacing/2)}
	type outcome struct {
		warp          *bspline.Warp
		before, after float64
	}
	var all [3]outcome
	if err := each(len(all), func(i int) {
		w := bspline.NewWarp(moving.levels[0].ny, moving.levels[0].nx, o.Spacing)
		e.fit(w, half(i))
		other := half(0)
		if i > 0 {
			other = half(3 - i)
		}
		g := e.grower(0, other)
		before := g.try(bspline.NewWarp(moving.levels[0].ny, moving.levels[0].nx, o.Spacing))
		all[i] = outcome{w, before, g.try(w)}
	}); err != nil {
		return ElasticResult{}, err
	}
	out := ElasticResult{
		Before: max(all[0].before, 0), After: max(all[0].after, 0),
		HeldOutBefore: max(0, (all[1].before+all[2].before)/2), HeldOutAfter: max(0, (all[1].after+all[2].after)/2),
	}
	largest, determinant := all[0].warp.Extent()
	out.Displacement = largest
	switch gain := leastGain * (1 - out.HeldOutBefore); {
	case !(all[1].after > all[1].before && all[2].after > all[2].before && out.HeldOutAfter-out.HeldOutBefore >= gain):
		out.Refused = "pixels that were held out agree no better with displacements"
	case !(determinant > 0):
		out.Refused = "the displacements fold the plane"
	case largest > o.Largest:
		out.Refused = fmt.Sprintf("displacements of up to %.1f px are more than %g px", largest, o.Largest)
	default:
		out.Warp = all[0].warp
	}
	return out, nil
}

// half selects pixels: 0 all, 1 and 2 the light and the dark squares.
type half int

// elastic is a search for displacements.
type elastic struct {
	fixed, moving *Image
	back          filter.Rigid // from the moving plane to the fixed one
	side          float64      // of the squares, in pixels of level 0
}

// fit improves a warp on one level after the other.
func (e *elastic) fit(w *bspline.Warp, h half) {
	k := 0
	for k < len(e.moving.levels)-1 && e.moving.levels[k+1].scale <= coarsest {
		k++
	}
	for ; k >= 0; k-- {
		e.grower(k, h).climb(w)
	}
}

// grower improves a warp on one level. It owns memory and serves one goroutine. Its fixed plane has been laid on the
// moving one, in whose pixels the warp is.
type grower struct {
	*refiner
	half  half
	side  float64
	coeff *normal
	row   [2][]float64 // control points of a row, x and y
	reach float64      // weight of a control point, by which penalties are scaled; 0: not known yet
}

func (e *elastic) grower(k int, h half) *grower {
	f, m := e.fixed.levels[k], e.moving.levels[k]
	laid := &level{ny: m.ny, nx: m.nx, scale: m.scale, smooth: make([]float32, m.ny*m.nx)}
	resample(laid.smooth, f.smooth, m, f, m.at(e.back), 0, m.ny)
	laid.v, laid.data = laid.smooth, countData(laid.smooth)
	return &grower{refiner: newRefiner(laid, m, false, nil), half: h, side: e.side}
}

// try warps the moving plane and correlates its half of the pixels.
func (g *grower) try(w *bspline.Warp) float64 {
	m := g.moving
	offset := (m.scale - 1) / 2
	down, right := w.Taps(0, m.ny, offset, m.scale), w.Taps(1, m.nx, offset, m.scale)
	n := w.Control[1]
	for i := range g.row {
		g.row[i] = make([]float64, n)
	}
	mx, my := float64(m.nx-1), float64(m.ny-1)
	for y := range m.ny {
		bspline.Row(g.row[0], w.DX, down[y])
		bspline.Row(g.row[1], w.DY, down[y])
		out := g.warped[y*m.nx:][:m.nx]
		for x := range out {
			px := float64(x) + bspline.At(g.row[0], &right[x])/m.scale
			py := float64(y) + bspline.At(g.row[1], &right[x])/m.scale
			if out[x] = nan; px >= 0 && px <= mx && py >= 0 && py <= my {
				out[x] = linear(m.smooth, m.nx, px, py, mx, my)
			}
		}
	}
	correlation := g.compare()
	if g.half == 0 {
		return correlation
	}
	g.sum = moments{}
	for y := range m.ny {
		f, w := g.f[y*m.nx:][:m.nx], g.w[y*m.nx:][:m.nx]
		for x := range f {
			if g.outside(y, x) {
				f[x], w[x] = nan, nan
			}
		}
		g.sum.add(f, w)
	}
	return g.sum.correlation(leastPixels)
}

// outside reports whether a pixel of the level is not in the half.
func (g *grower) outside(y, x int) bool {
	s := g.moving.scale
	return (int(float64(y)*s/g.side)+int(float64(x)*s/g.side))&1 != int(g.half)-1
}

// climb improves a warp by Gauss-Newton steps as [refiner.climb] does a transform, on the squared difference per pixel
// plus penalties.
func (g *grower) climb(w *bspline.Warp) {
	g.coeff = newNormal(w.Control)
	correlation := g.try(w)
	for range elasticSteps {
		m := &g.sum
		if !(m.n >= leastPixels && m.vf > 0 && m.vw > 0 && m.covariance > 0) {
			return
		}
		g.assemble(w)
		cost := g.cost(w, correlation)
		step := g.coeff.solve(w, g.reach)
		gain := 1 / min(max(correlation, 0.3), 1)
		next, better := g.advance(w, step, gain, cost)
		for n := 0; n < maxHalvings && !better; n++ {
			gain /= 2
			next, better = g.advance(w, step, gain, cost)
		}
		if !better {
			return
		}
		*w = *next
		correlation = g.sum.correlation(leastPixels)
		if largest, _ := step.Extent(); gain*largest < enough*g.moving.scale {
			return
		}
	}
}

// advance tries a step, and reports whether it lowers the cost.
func (g *grower) advance(w, step *bspline.Warp, gain, cost float64) (*bspline.Warp, bool) {
	next := &bspline.Warp{Control: w.Control, Origin: w.Origin, Spacing: w.Spacing}
	for i := range w.DX {
		next.DX, next.DY = append(next.DX, w.DX[i]+float64(gain*step.DX[i])), append(next.DY, w.DY[i]+float64(gain*step.DY[i]))
	}
	correlation := g.try(next)
	return next, correlation > 0 && g.cost(next, correlation) < cost
}

// cost returns the value that the steps minimise: the squared difference of the planes per pixel, after the best gain,
// and the penalties.
func (g *grower) cost(w *bspline.Warp, correlation float64) float64 {
	return g.sum.vf/float64(g.sum.n)*(1-float64(correlation*correlation)) + g.reach*(penalty(w.DX, w.Control)+penalty(w.DY, w.Control))
}
