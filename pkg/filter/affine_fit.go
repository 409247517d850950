package filter

import "math"

// Metric tells how well two planes agree.
type Metric string

// Metrics of [FitAffine].
const (
	MeanSquares       Metric = "MSE" // mean of the squared differences
	Correlation       Metric = "CC"  // squared correlation coefficient: brightness and contrast may differ
	MutualInformation Metric = "MI"  // of a joint histogram: brightnesses may correspond in any way
)

// affineLevels are the scales of [FitAffine], from coarse to fine: the standard deviation of a Gaussian by which both planes are smoothed,
// and the distance of the pixels that are compared.
var affineLevels = []struct {
	sigma float64
	step  int
}{{3, 4}, {2, 2}, {1, 1}}

// minInside is the smallest part of the compared pixels that a map must leave inside the moving plane.
const minInside = 0.25

// FitAffine finds the map, near start and about its centre, from points of fixed to points of moving at which moving agrees best with
// fixed, both planes of ny × nx pixels. Each level makes at most iterations steps. ok is false if the planes have nothing in common to
// compare.
//
// Mean squares and correlation are minimised by the steps of Levenberg and Marquardt; mutual information by a search along each
// parameter.
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

// affineFit compares planes on one level.
type affineFit struct {
	fixed, moving []float32
	ny, nx, step  int
	by            Metric
}

// samples calls f for each compared pixel that a maps into the moving plane, with the values of both planes, the slope of the moving
// plane there along x and y, and the pixel's place relative to the centre.
func (p *affineFit) samples(a Affine, f func(v, m, gx, gy, x, y float64)) (all int) {
	mx, my := float64(p.nx-1), float64(p.ny-1)
	for y := p.step / 2; y < p.ny; y += p.step {
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
			gx := c - b + float64((e-d-c+b)*w)
			f(float64(p.fixed[y*p.nx+x]), top+float64((bottom-top)*w), gx, bottom-top, float64(x)-a.C[0], float64(y)-a.C[1])
		}
	}
	return all
}

// normal holds the normal equations of a step: of the six parameters of a map, and for the correlation of gain and offset.
type normal struct {
	h [8][8]float64
	g [8]float64
}

// cost returns what is minimised, and the sums that it is made of; +Inf if too few pixels are inside.
func (p *affineFit) cost(a Affine) (cost, gain, offset float64) {
	var n, sf, sm, ff, mm, fm float64
	all := p.samples(a, func(v, m, _, _, _, _ float64) {
		n++
		sf, sm = sf+v, sm+m
		ff, mm, fm = ff+float64(v*v), mm+float64(m*m), fm+float64(v*m)
	})
	if n < max(16, minInside*float64(all)) {
		return math.Inf(1), 1, 0
	}
	if p.by == MeanSquares {
		return (ff - 2*fm + mm) / n, 1, 0
	}
	vf, vm, c := ff-sf*sf/n, mm-sm*sm/n, fm-sf*sm/n
	if !(vf > 0 && vm > 0) {
		return math.Inf(1), 1, 0
	}
	gain = c / vm
	return 1 - c*c/(vf*vm), gain, (sf - gain*sm) / n
}

// equations returns the normal equations at a.
func (p *affineFit) equations(a Affine, gain, offset float64) *normal {
	q := &normal{}
	size := 6
	if p.by == Correlation {
		size = 8
	}
	p.samples(a, func(v, m, gx, gy, x, y float64) {
		r := float64(gain*m) + offset - v
		gx, gy = gain*gx, gain*gy
		j := [8]float64{gx * x, gx * y, gy * x, gy * y, gx, gy, m, 1}
		for i := range size {
			q.g[i] += float64(j[i] * r)
			for k := i; k < size; k++ {
				q.h[i][k] += float64(j[i] * j[k])
			}
		}
	})
	for i := range size {
		for k := range i {
			q.h[i][k] = q.h[k][i]
		}
	}
	for i := size; i < 8; i++ {
		q.h[i][i] = 1
	}
	return q
}

// smallStep is the distance in pixels, at the farthest corner, from which a step counts as none.
const smallStep = 1e-4

// descend makes steps from a while they lower the cost.
func (p *affineFit) descend(a Affine, iterations int) (Affine, bool) {
	cost, gain, offset := p.cost(a)
	if math.IsInf(cost, 1) {
		return a, false
	}
	damping := 1e-3
	q := p.equations(a, gain, offset)
	for range iterations {
		step, solvable := q.solve(damping)
		if !solvable || !(damping < 1e12) {
			break
		}
		next := a.plus(step, -1)
		c, g, o := p.cost(next)
		small := p.distance(step) < smallStep
		if !(c < cost) {
			if small {
				break
			}
			damping *= 10
			continue
		}
		a, cost, gain, offset, damping = next, c, g, o, max(damping/10, 1e-9)
		if small {
			break
		}
		q = p.equations(a, gain, offset)
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
