package pairwise

import (
	"math"
	"sync"
	"sync/atomic"

	"strata/pkg/filter"
)

// fit is a transform and how well two planes agree under it.
type fit struct {
	t           filter.Rigid
	correlation float64 // normalised, over the pixels that both planes have; −1 if these are too few
	pixels      int     // that both planes have
}

// score orders fits on a level: the correlation in units of its deviation by chance, up to a common factor.
func (f fit) score() float64 {
	return math.Atanh(min(max(f.correlation, -1+1e-9), 1-1e-9)) * math.Sqrt(float64(f.pixels))
}

const (
	maxSteps    = 40
	maxHalvings = 5
	// closeEnough ends the steps: a displacement in pixels of the level.
	closeEnough = 0.002
	// leastOverlap is the share of the smaller plane's pixels that must overlap, and leastPixels their least number.
	leastOverlap, leastPixels = 0.15, 100
)

// refiner climbs to the highest correlation of the detail of two planes. It owns memory and serves one caller at a
// time.
//
// Detail is the difference of the smooth planes from their local means. The means are taken over the pixels that both
// planes have under the transform: at the border of the overlap, means over different pixels would differ although the
// planes agree, and hold the transform back.
type refiner struct {
	fixed, moving *level
	rotation      bool
	bands         bands
	err           error     // of bands; what is found after it is nothing
	least         int       // pixels that must overlap
	memory        []float32 // of all planes
	warped        []float32 // the moving plane under the transform that is tried
	f, w          []float32 // the detail of fixed and warped; NaN where one has no data
	both          []float32 // 1 where both have data, 0 elsewhere
	mean          localMean
	row           []moments     // of f and w by rows
	sum           moments       // of all rows
	products      [][20]float64 // by rows: see equations
}

// bands shares out the rows or columns of a plane. A plane's sums are kept by rows, so that they do not depend on
// bands.
type bands struct {
	n    int // 1 or less: all in one
	each func(n int, f func(i int)) error
}

const (
	// mostBands is the number of bands of a plane, and leastBand the number of pixels of one from which on sharing them
	// out pays.
	mostBands, leastBand = 16, 1 << 14
)

func newBands(pixels int, each func(n int, f func(i int)) error) bands {
	return bands{n: min(mostBands, pixels/leastBand), each: each}
}

// share calls f for ranges that together are 0 to n−1.
func (b bands) share(n int, f func(from, to int)) error {
	if b.n <= 1 || b.each == nil {
		f(0, n)
		return nil
	}
	return b.each(b.n, func(i int) { f(i*n/b.n, (i+1)*n/b.n) })
}

// moments are sums over the pixels that two planes have.
type moments struct {
	n                  int
	f, w, ff, ww, fw   float64
	covariance, vf, vw float64 // times n
}

// newRefiner returns a refiner that shares out planes by each; nil: it does not.
func newRefiner(fixed, moving *level, rotation bool, each func(n int, f func(i int)) error) *refiner {
	n := fixed.ny * fixed.nx
	b := newBands(n, each)
	r := &refiner{fixed: fixed, moving: moving, rotation: rotation, bands: b, least: leastCommon(fixed, moving)}
	r.row, r.products = make([]moments, fixed.ny), make([][20]float64, fixed.ny)
	if all, ok := spare.Get().(*[]float32); ok && cap(*all) >= (4+ofMeans)*n {
		r.memory = (*all)[:(4+ofMeans)*n]
	} else {
		r.memory = make([]float32, (4+ofMeans)*n)
	}
	all := r.memory
	r.warped, r.f, r.w, r.both = all[:n], all[n:2*n], all[2*n:3*n], all[3*n:4*n]
	r.mean = newLocalMean(fixed.ny, fixed.nx, b, all[4*n:])
	return r
}

// spare holds planes of refiners that have ended: fresh memory for each would take as long as a try.
var spare sync.Pool

// end gives the planes to another refiner.
func (r *refiner) end() { spare.Put(&r.memory) }

// leastCommon returns the number of pixels of a level that two planes must have in common.
func leastCommon(fixed, moving *level) int {
	return max(leastPixels, int(leastOverlap*float64(min(fixed.data, moving.data))))
}

func countData(v []float32) (n int) {
	for _, f := range v {
		if f == f {
			n++
		}
	}
	return n
}

// climb improves a transform, given in pixels of level 0, by Gauss-Newton steps on the squared difference of the fixed
// plane and a linear function of the moving one, whose least value lies where the squared correlation is highest. The
// gradient is the mean of both planes' (Benhimane and Malis 2004), which makes the steps accurate to second order. A
// step that does not raise the correlation is halved.
func (r *refiner) climb(t filter.Rigid) fit {
	at := r.try(r.fixed.at(t))
	for range maxSteps {
		step, ok := r.step(at.t)
		if !ok {
			break
		}
		// noise raises the products of gradients, which shortens steps by about the correlation
		gain := 1 / min(max(at.correlation, 0.3), 1)
		next := r.try(at.t.Then(gain*step[0], gain*step[1], gain*step[2]))
		for n := 0; n < maxHalvings && next.correlation <= at.correlation; n++ {
			gain /= 2
			next = r.try(at.t.Then(gain*step[0], gain*step[1], gain*step[2]))
		}
		if next.correlation <= at.correlation {
			break
		}
		at = next
		if gain*r.length(step) < closeEnough {
			break
		}
	}
	at.t = r.fixed.whole(at.t, t)
	return at
}

// length returns how far a step moves the corners of the plane at most.
func (r *refiner) length(step [3]float64) float64 {
	return root(step[1], step[2]) + math.Abs(step[0])*root(float64(r.fixed.ny), float64(r.fixed.nx))/2
}

// try resamples the moving plane and correlates. t is in pixels of the level.
func (r *refiner) try(t filter.Rigid) fit {
	r.share(r.fixed.ny, func(y0, y1 int) {
		resample(r.warped[y0*r.fixed.nx:], r.moving.smooth, r.fixed, r.moving, t, y0, y1)
	})
	c := r.compare()
	return fit{t, c, r.sum.n}
}

func (r *refiner) share(n int, f func(from, to int)) {
	if err := r.bands.share(n, f); err != nil && r.err == nil {
		r.err = err
	}
}

// compare correlates the detail of the fixed and the warped plane, which it overwrites.
func (r *refiner) compare() float64 {
	var changed atomic.Bool // pixels that both planes have
	nx := r.fixed.nx
	r.share(r.fixed.ny, func(y0, y1 int) {
		if r.overlap(y0*nx, y1*nx) {
			changed.Store(true)
		}
	})
	if err := r.mean.take(r.f, r.w, r.both, r.warped, !changed.Load()); err != nil && r.err == nil {
		r.err = err
	}
	r.share(r.fixed.ny, func(y0, y1 int) {
		for y := y0; y < y1; y++ {
			r.row[y] = moments{}
			r.row[y].add(r.f[y*nx:][:nx], r.w[y*nx:][:nx])
		}
	})
	r.sum = moments{}
	for y := range r.row {
		r.sum.join(&r.row[y])
	}
	if r.err != nil {
		return -1
	}
	return r.sum.correlation(r.least)
}

// overlap marks which of the pixels from … to−1 both planes have, and returns whether that has changed.
func (r *refiner) overlap(from, to int) (changed bool) {
	fixed, warped := r.fixed.smooth[from:to], r.warped[from:to]
	f, w, both := r.f[from:to], r.w[from:to], r.both[from:to]
	for i, b := range warped {
		a := fixed[i]
		known := float32(1)
		if d := a - b; d != d {
			a, b, known = 0, 0, 0
		}
		changed = changed || known != both[i]
		f[i], w[i], both[i] = a, b, known
	}
	return changed
}

// resample computes a form v of the moving plane under a transform, on the pixels of rows y0 to y1−1 of the fixed one.
func resample(dst, v []float32, fixed, moving *level, t filter.Rigid, y0, y1 int) {
	s, c := math.Sincos(t.Angle)
	for y := y0; y < y1; y++ {
		d := float64(y) - t.CY
		at := line{
			x: t.CX + t.TX - float64(c*t.CX) - float64(s*d), y: t.CY + t.TY - float64(s*t.CX) + float64(c*d), dx: c, dy: s,
		}
		at.sample(dst[(y-y0)*fixed.nx:][:fixed.nx], v, moving.ny, moving.nx)
	}
}

// add adds the pixels of a row.
func (m *moments) add(fixed, warped []float32) {
	var f, w, ff, ww, fw float64
	n := 0
	for i, b := range warped[:len(fixed)] {
		a := fixed[i]
		if d := a - b; d != d {
			continue
		}
		p, q := float64(a), float64(b)
		f, w = f+p, w+q
		ff, ww, fw = ff+float64(p*p), ww+float64(q*q), fw+float64(p*q)
		n++
	}
	m.join(&moments{n: n, f: f, w: w, ff: ff, ww: ww, fw: fw})
}

// join adds the sums of o.
func (m *moments) join(o *moments) {
	m.n += o.n
	m.f, m.w, m.ff, m.ww, m.fw = m.f+o.f, m.w+o.w, m.ff+o.ff, m.ww+o.ww, m.fw+o.fw
}

// correlation returns the normalised correlation; −1 if there are fewer than least pixels, and 0 if one plane is flat
// there.
func (m *moments) correlation(least int) float64 {
	if m.n < least {
		return -1
	}
	n := float64(m.n)
	m.vf, m.vw, m.covariance = m.ff-m.f*m.f/n, m.ww-m.w*m.w/n, m.fw-m.f*m.w/n
	if !(m.vf > 1e-10*n && m.vw > 1e-10*n) {
		return 0
	}
	return m.covariance / math.Sqrt(m.vf*m.vw)
}

// line is the line in the moving plane along which a row samples it: pixel i at (x + dx·i, y + dy·i).
type line struct{ x, y, dx, dy float64 }

// sample interpolates linearly; NaN where one of the four pixels lies outside or has no data.
func (l *line) sample(row, v []float32, ny, nx int) {
	mx, my := float64(nx-1), float64(ny-1)
	outside := func(i int) bool {
		x, y := l.at(i)
		return !(x >= 0 && x <= mx && y >= 0 && y <= my)
	}
	from, to := 0, len(row)
	for ; from < to && outside(from); from++ {
		row[from] = nan
	}
	for ; from < to && outside(to-1); to-- {
		row[to-1] = nan
	}
	for i := from; i < to; i++ { // a line crosses the plane once
		x, y := l.at(i)
		x0, y0 := min(int(x), nx-2), min(int(y), ny-2)
		a, b := float32(x-float64(x0)), float32(y-float64(y0))
		k := y0*nx + x0
		up, down := v[k:k+2:k+2], v[k+nx:k+nx+2:k+nx+2]
		top := up[0] + float32((up[1]-up[0])*a)
		bottom := down[0] + float32((down[1]-down[0])*a)
		row[i] = top + float32((bottom-top)*b)
	}
}

// at returns where pixel i lies in the moving plane.
func (l *line) at(i int) (x, y float64) {
	return l.x + float64(l.dx*float64(i)), l.y + float64(l.dy*float64(i))
}

// linear samples a plane at a place inside it. mx and my are its last pixel.
func linear(v []float32, nx int, x, y, mx, my float64) float32 {
	x0, y0 := min(int(x), int(mx)-1), min(int(y), int(my)-1)
	a, b := float32(x-float64(x0)), float32(y-float64(y0))
	k := y0*nx + x0
	up, down := v[k:k+2:k+2], v[k+nx:k+nx+2:k+nx+2]
	top := up[0] + float32((up[1]-up[0])*a)
	bottom := down[0] + float32((down[1]-down[0])*a)
	return top + float32((bottom-top)*b)
}

// step solves for the rotation about the centre and the translation (x, y), in the fixed plane's pixels, by which the
// agreement grows. The moving plane must have been resampled with t.
func (r *refiner) step(t filter.Rigid) (step [3]float64, ok bool) {
	m := &r.sum
	if m.n < r.least || !(m.vf > 0 && m.vw > 0 && m.covariance > 0) {
		return step, false
	}
	e := equations{
		f: float32(m.f / float64(m.n)), w: float32(m.w / float64(m.n)),
		scale: float32(math.Sqrt(m.vf / m.vw)), cx: t.CX, cy: t.CY,
	}
	nx := r.fixed.nx
	r.share(r.fixed.ny, func(y0, y1 int) {
		for y := max(y0, 1); y < min(y1, r.fixed.ny-1); y++ {
			r.products[y] = e.row(r.f[(y-1)*nx:(y+2)*nx], r.w[(y-1)*nx:(y+2)*nx], nx, y)
		}
	})
	for y := 1; y < r.fixed.ny-1; y++ {
		e.add(&r.products[y])
	}
	return e.solve(r.rotation)
}

// equations are the normal equations of a step. The unknowns are the rotation, the translation along x and y, and the
// gain and the offset of the brightness.
type equations struct {
	f, w, scale float32 // means of the planes, and the ratio of their contrasts
	cx, cy      float64
	a           [5][5]float64 // upper triangle
	b           [5]float64
}

// row returns the products of the pixels of row y, given with the rows above and below it: those of a by rows, then
// those of b.
func (e *equations) row(fixed, warped []float32, nx, y int) (s [20]float64) {
	v := float32(float64(y) - e.cy)
	up, f0, down := fixed[:nx], fixed[nx:][:nx], fixed[2*nx:][:nx]
	wUp, w0, wDown := warped[:nx], warped[nx:][:nx], warped[2*nx:][:nx]
	for x := 1; x < nx-1; x++ {
		gx := 0.25 * ((f0[x+1] - f0[x-1]) + float32(e.scale*(w0[x+1]-w0[x-1])))
		gy := 0.25 * ((down[x] - up[x]) + float32(e.scale*(wDown[x]-wUp[x])))
		f, w := f0[x]-e.f, w0[x]-e.w
		if d := gx + gy + f + w; d != d {
			continue
		}
		u := float32(float64(x) - e.cx)
		p, q, g := float64(gx), float64(gy), float64(float32(u*gy)-float32(v*gx))
		a, b := float64(f), float64(w)
		s[0] += float64(g * g)
		s[1] += float64(g * p)
		s[2] += float64(g * q)
		s[3] += float64(g * b)
		s[4] += g
		s[5] += float64(p * p)
		s[6] += float64(p * q)
		s[7] += float64(p * b)
		s[8] += p
		s[9] += float64(q * q)
		s[10] += float64(q * b)
		s[11] += q
		s[12] += float64(b * b)
		s[13] += b
		s[14]++
		s[15] += float64(g * a)
		s[16] += float64(p * a)
		s[17] += float64(q * a)
		s[18] += float64(b * a)
		s[19] += a
	}
	return s
}

// add adds the products of a row.
func (e *equations) add(s *[20]float64) {
	k := 0
	for i := range 5 {
		for j := i; j < 5; j++ {
			e.a[i][j] += s[k]
			k++
		}
		e.b[i] += s[15+i]
	}
}

// solve returns the rotation and the translation; ok is false if the planes do not determine them.
func (e *equations) solve(rotation bool) (step [3]float64, ok bool) {
	first := 0
	if !rotation {
		first = 1
	}
	// Cholesky's decomposition of the matrix scaled to a diagonal of ones
	var scale, z [5]float64
	var l [5][5]float64
	for i := first; i < 5; i++ {
		if scale[i] = math.Sqrt(e.a[i][i]); !(scale[i] > 0) {
			return step, false
		}
	}
	for i := first; i < 5; i++ {
		z[i] = e.b[i] / scale[i]
		for j := first; j <= i; j++ {
			s := e.a[j][i] / (scale[i] * scale[j])
			for k := first; k < j; k++ {
				s -= float64(l[i][k] * l[j][k])
			}
			if j < i {
				l[i][j] = s / l[j][j]
				continue
			}
			if !(s > 1e-10) {
				return step, false
			}
			l[i][i] = math.Sqrt(s)
		}
		for k := first; k < i; k++ {
			z[i] -= float64(l[i][k] * z[k])
		}
		z[i] /= l[i][i]
	}
	for i := 4; i >= first; i-- {
		for k := i + 1; k < 5; k++ {
			z[i] -= float64(l[k][i] * z[k])
		}
		z[i] /= l[i][i]
	}
	for i := first; i < 3; i++ {
		step[i] = z[i] / scale[i]
	}
	return step, true
}

// root returns the length of (x, y), with the same bits on every machine.
func root(x, y float64) float64 { return math.Sqrt(float64(x*x) + float64(y*y)) }
