package filter

import "math"

// Metric is a measure of how well two planes agree.
type Metric string

// Metrics of [FitAffine].
const (
	MeanSquares       Metric = "MSE" // mean of the squared differences
	Correlation       Metric = "CC"  // squared correlation coefficient: brightness and contrast may differ
	MutualInformation Metric = "MI"  // of a joint histogram: brightnesses may correspond in any way
)

// affineLevels are the scales of [FitAffine], from coarse to fine: the standard deviation of a Gaussian by which both
// planes are smoothed, and the distance of the pixels that are compared.
var affineLevels = []struct {
	sigma float64
	step  int
}{{3, 4}, {2, 2}, {1, 1}}

// minInside is the smallest part of the compared pixels that a map must leave inside the moving plane.
const minInside = 0.25

// FitAffine finds the map, near start and about its centre, from points of fixed to points of moving at which moving
// agrees best with fixed, both planes of ny × nx pixels. Each level makes at most iterations steps. ok is false if the
// planes have nothing in common to compare.
//
// Mean squares and correlation are minimised by the steps of Levenberg and Marquardt; mutual information by a search
// along each parameter.
func FitAffine(fixed, moving []float32, ny, nx int, start Affine, by Metric, iterations int) (a Affine, ok bool) {
	a = start
	for _, level := range affineLevels {
		taps := make([]float32, 0, 32)
		for _, k := range GaussianKernel(level.sigma, 0) {
			taps = append(taps, float32(k))
		}
		f := &affineFit{ny: ny, nx: nx, step: level.step, by: by, fixed: make([]float32, ny*nx), moving: make([]float32, ny*nx)}
		Separable(f.fixed, fixed, ny, nx, taps)
		Separable(f.moving, moving, ny, nx, taps)
		if by == MutualInformation {
			a, ok = f.search(a, iterations)
		} else {
			a, ok = f.descend(a, iterations)
		}
		if !ok {
			return start, false
		}
	}
	return a, true
}

// AffineFitBytes is the memory per pixel that [FitAffine] needs.
const AffineFitBytes = 5 * 4

// affineFit compares two planes at one resolution.
type affineFit struct {
	fixed, moving []float32
	ny, nx, step  int
	by            Metric
}

// affineRow holds compared pixels of a row that a map leaves inside the moving plane: the values of both planes, the
// slope of the moving plane there along x and y, and the pixels' places relative to the centre.
type affineRow struct {
	v, m, gx, gy, x []float64
	y               float64
}

// rows calls f for each row of compared pixels that the map leaves inside the moving plane. all is the number of
// compared pixels including those outside.
func (p *affineFit) rows(a Affine, f func(r *affineRow)) (all int) {
	mx, my := float64(p.nx-1), float64(p.ny-1)
	var r affineRow
	for _, part := range []*[]float64{&r.v, &r.m, &r.gx, &r.gy, &r.x} {
		*part = make([]float64, (p.nx+p.step-1)/p.step)
	}
	whole := r
	for y := p.step / 2; y < p.ny; y += p.step {
		n := 0
		for x := p.step / 2; x < p.nx; x += p.step {
			all++
			u, w := a.At(float64(x), float64(y))
			if !(u >= 0 && u <= mx && w >= 0 && w <= my) {
				continue
			}
			x0, y0 := min(int(u), max(p.nx-2, 0)), min(int(w), max(p.ny-2, 0))
			x1, y1 := min(x0+1, p.nx-1), min(y0+1, p.ny-1)
			u, w = u-float64(x0), w-float64(y0)
			b, c := float64(p.moving[y0*p.nx+x0]), float64(p.moving[y0*p.nx+x1])
			d, e := float64(p.moving[y1*p.nx+x0]), float64(p.moving[y1*p.nx+x1])
			top, bottom := b+float64((c-b)*u), d+float64((e-d)*u)
			whole.v[n], whole.m[n] = float64(p.fixed[y*p.nx+x]), top+float64((bottom-top)*w)
			whole.gx[n], whole.gy[n] = c-b+float64((e-d-c+b)*w), bottom-top
			whole.x[n] = float64(x) - a.C[0]
			n++
		}
		r = affineRow{whole.v[:n], whole.m[:n], whole.gx[:n], whole.gy[:n], whole.x[:n], float64(y) - a.C[1]}
		f(&r)
	}
	return all
}

// normal holds the normal equations of a step: of the six parameters of a map, and for the correlation of gain and
// offset.
type normal struct {
	h [8][8]float64
	g [8]float64
}

// likeness holds the sums over compared pixels that the cost is made of.
type likeness struct{ n, sf, sm, ff, mm, fm float64 }

func (l *likeness) add(r *affineRow) {
	l.n += float64(len(r.v))
	for i, v := range r.v {
		m := r.m[i]
		l.sf, l.sm = l.sf+v, l.sm+m
		l.ff, l.mm, l.fm = l.ff+float64(v*v), l.mm+float64(m*m), l.fm+float64(v*m)
	}
}

// cost returns what is minimised, and the gain and offset of the moving plane; +Inf if too few of all pixels are
// inside.
func (l *likeness) cost(all int, by Metric) (cost, gain, offset float64) {
	n, sf, sm := l.n, l.sf, l.sm
	if n < max(16, minInside*float64(all)) {
		return math.Inf(1), 1, 0
	}
	if by == MeanSquares {
		return (l.ff - 2*l.fm + l.mm) / n, 1, 0
	}
	vf, vm, c := l.ff-sf*sf/n, l.mm-sm*sm/n, l.fm-sf*sm/n
	if !(vf > 0 && vm > 0) {
		return math.Inf(1), 1, 0
	}
	gain = c / vm
	return 1 - c*c/(vf*vm), gain, (sf - gain*sm) / n
}

// evaluate returns the cost at a, and the normal equations.
func (p *affineFit) evaluate(a Affine) (cost float64, q *normal) {
	var l likeness
	q = &normal{}
	if p.by == MeanSquares { // the equations need nothing of the cost
		all := p.rows(a, func(r *affineRow) { l.add(r); q.add(r) })
		cost, _, _ = l.cost(all, p.by)
		q.complete(6)
		return cost, q
	}
	cost, gain, offset := l.cost(p.rows(a, l.add), p.by)
	p.rows(a, func(r *affineRow) { q.addScaled(r, gain, offset) })
	q.complete(8)
	return cost, q
}

// add adds pixels to the equations of the map alone.
func (q *normal) add(r *affineRow) {
	h, g, y := &q.h, &q.g, r.y
	for i, v := range r.v {
		e, c, d, x := r.m[i]-v, r.gx[i], r.gy[i], r.x[i]
		j0, j1, j2, j3 := c*x, c*y, d*x, d*y
		g[0], g[1], g[2] = g[0]+float64(j0*e), g[1]+float64(j1*e), g[2]+float64(j2*e)
		g[3], g[4], g[5] = g[3]+float64(j3*e), g[4]+float64(c*e), g[5]+float64(d*e)
		h[0][0], h[0][1], h[0][2] = h[0][0]+float64(j0*j0), h[0][1]+float64(j0*j1), h[0][2]+float64(j0*j2)
		h[0][3], h[0][4], h[0][5] = h[0][3]+float64(j0*j3), h[0][4]+float64(j0*c), h[0][5]+float64(j0*d)
		h[1][1], h[1][2], h[1][3] = h[1][1]+float64(j1*j1), h[1][2]+float64(j1*j2), h[1][3]+float64(j1*j3)
		h[1][4], h[1][5] = h[1][4]+float64(j1*c), h[1][5]+float64(j1*d)
		h[2][2], h[2][3], h[2][4], h[2][5] = h[2][2]+float64(j2*j2), h[2][3]+float64(j2*j3), h[2][4]+float64(j2*c), h[2][5]+float64(j2*d)
		h[3][3], h[3][4], h[3][5] = h[3][3]+float64(j3*j3), h[3][4]+float64(j3*c), h[3][5]+float64(j3*d)
		h[4][4], h[4][5], h[5][5] = h[4][4]+float64(c*c), h[4][5]+float64(c*d), h[5][5]+float64(d*d)
	}
}

// addScaled adds pixels to the equations of the map and of the moving plane's gain and offset.
func (q *normal) addScaled(r *affineRow, gain, offset float64) {
	for t, v := range r.v {
		m, x, y := r.m[t], r.x[t], r.y
		e := float64(gain*m) + offset - v
		gx, gy := gain*r.gx[t], gain*r.gy[t]
		j := [8]float64{gx * x, gx * y, gy * x, gy * y, gx, gy, m, 1}
		for i := range j {
			q.g[i] += float64(j[i] * e)
			for k := i; k < len(j); k++ {
				q.h[i][k] += float64(j[i] * j[k])
			}
		}
	}
}

// complete mirrors the upper triangle of the first size equations, and makes the other equations the identity.
func (q *normal) complete(size int) {
	for i := range size {
		for k := range i {
			q.h[i][k] = q.h[k][i]
		}
	}
	for i := size; i < 8; i++ {
		q.h[i][i] = 1
	}
}

// smallStep is the distance in pixels, at the farthest corner, from which a step counts as none.
const smallStep = 1e-4

// descend makes steps from a while they lower the cost.
func (p *affineFit) descend(a Affine, iterations int) (Affine, bool) {
	cost, q := p.evaluate(a)
	if math.IsInf(cost, 1) {
		return a, false
	}
	damping := 1e-3
	for range iterations {
		step, solvable := q.solve(damping)
		if !solvable || !(damping < 1e12) {
			break
		}
		next := a.plus(step, -1)
		c, at := p.evaluate(next)
		small := p.distance(step) < smallStep
		if !(c < cost) {
			if small {
				break
			}
			damping *= 10
			continue
		}
		a, cost, q, damping = next, c, at, max(damping/10, 1e-9)
		if small {
			break
		}
	}
	return a, true
}

// plus returns the map with s times a step added to its parameters.
func (a Affine) plus(step [8]float64, s float64) Affine {
	for i := range 2 {
		for j := range 2 {
			a.M[i][j] += float64(s * step[2*i+j])
		}
		a.T[i] += float64(s * step[4+i])
	}
	return a
}

// distance returns how far a step moves a corner at most, in pixels.
func (p *affineFit) distance(step [8]float64) float64 {
	w, h := float64(p.nx), float64(p.ny)
	return math.Hypot(math.Abs(step[0])*w+math.Abs(step[1])*h+math.Abs(step[4]), math.Abs(step[2])*w+math.Abs(step[3])*h+math.Abs(step[5]))
}

// solve solves the damped equations by elimination; false if they have no solution.
func (q *normal) solve(damping float64) (x [8]float64, ok bool) {
	h, g := q.h, q.g
	for i := range h {
		h[i][i] += float64(damping*h[i][i]) + 1e-12
	}
	for i := range h {
		pivot := i
		for k := i + 1; k < 8; k++ {
			if math.Abs(h[k][i]) > math.Abs(h[pivot][i]) {
				pivot = k
			}
		}
		h[i], h[pivot] = h[pivot], h[i]
		g[i], g[pivot] = g[pivot], g[i]
		if !(math.Abs(h[i][i]) > 1e-300) {
			return x, false
		}
		for k := i + 1; k < 8; k++ {
			t := h[k][i] / h[i][i]
			for j := i; j < 8; j++ {
				h[k][j] -= float64(t * h[i][j])
			}
			g[k] -= float64(t * g[i])
		}
	}
	for i := 7; i >= 0; i-- {
		x[i] = g[i]
		for j := i + 1; j < 8; j++ {
			x[i] -= float64(h[i][j] * x[j])
		}
		x[i] /= h[i][i]
	}
	return x, true
}
