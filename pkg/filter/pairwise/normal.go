package pairwise

import (
	"math"

	"strata/pkg/filter/bspline"
)

// normal are the normal equations of a step of the displacements. The unknowns are those of the control points along x
// and y. A control point shares pixels with those up to 3 from it along both axes: the matrix is kept as 7 × 7 numbers
// for each point.
type normal struct {
	control [2]int
	a       [3][]float64    // of x with x, x with y and y with y
	b       [2][]float64    // right-hand sides of x and y
	band    [3][][4]float64 // of a row of pixels: the products of control points i and i + k along x
	side    [2][]float64    // and the right-hand sides
}

const (
	span = 3          // control points are linked to those this far away
	side = 2*span + 1 // of the square of links
)

func newNormal(control [2]int) *normal {
	n := &normal{control: control}
	size := control[0] * control[1]
	for i := range n.a {
		n.a[i], n.band[i] = make([]float64, side*side*size), make([][4]float64, control[1])
	}
	for i := range n.b {
		n.b[i], n.side[i] = make([]float64, size), make([]float64, control[1])
	}
	return n
}

// assemble makes the equations at the warp that was tried last, per pixel. The gradient is the mean of both planes', as
// in [refiner.climb].
func (g *grower) assemble(w *bspline.Warp) {
	m, q := g.moving, g.coeff
	for i := range q.a {
		clear(q.a[i])
	}
	clear(q.b[0])
	clear(q.b[1])
	offset := (m.scale - 1) / 2
	down, right := w.Taps(0, m.ny, offset, m.scale), w.Taps(1, m.nx, offset, m.scale)
	s := &g.sum
	scale := float32(math.Sqrt(s.vf / s.vw))
	f0, w0 := float32(s.f/float64(s.n)), float32(s.w/float64(s.n))
	for y := 1; y < m.ny-1; y++ {
		for i := range q.band {
			clear(q.band[i])
		}
		clear(q.side[0])
		clear(q.side[1])
		fu, f, fd := g.f[(y-1)*m.nx:][:m.nx], g.f[y*m.nx:][:m.nx], g.f[(y+1)*m.nx:][:m.nx]
		wu, w, wd := g.w[(y-1)*m.nx:][:m.nx], g.w[y*m.nx:][:m.nx], g.w[(y+1)*m.nx:][:m.nx]
		for x := 1; x < m.nx-1; x++ {
			gx := 0.25 * ((f[x+1] - f[x-1]) + float32(scale*(w[x+1]-w[x-1])))
			gy := 0.25 * ((fd[x] - fu[x]) + float32(scale*(wd[x]-wu[x])))
			rest := (f[x] - f0) - float32(scale*(w[x]-w0))
			if d := gx + gy + rest; d != d {
				continue
			}
			q.pixel(&right[x], float64(gx), float64(gy), float64(rest))
		}
		q.row(down[y])
	}
	// the unknowns are in pixels of level 0, gradients in those of the level
	q.perPixel(float64(s.n), m.scale)
	if g.reach == 0 {
		g.reach = q.reach()
	}
}

// pixel adds a pixel to its row: its gradient and the rest of the difference.
func (n *normal) pixel(t *bspline.Tap, gx, gy, rest float64) {
	xx, xy, yy := gx*gx, gx*gy, gy*gy
	gx, gy = gx*rest, gy*rest
	for i, u := range t.Weight {
		at := t.First + i
		n.side[0][at] += float64(u * gx)
		n.side[1][at] += float64(u * gy)
		a, b, c := &n.band[0][at], &n.band[1][at], &n.band[2][at]
		for j := i; j < 4; j++ {
			v := u * t.Weight[j]
			a[j-i] += float64(v * xx)
			b[j-i] += float64(v * xy)
			c[j-i] += float64(v * yy)
		}
	}
}

// row adds a row of pixels to the equations.
func (n *normal) row(t bspline.Tap) {
	nx := n.control[1]
	for i, u := range t.Weight {
		for k := range n.b {
			b := n.b[k][(t.First+i)*nx:][:nx]
			for x, v := range n.side[k] {
				b[x] += float64(u * v)
			}
		}
		for j, v := range t.Weight {
			w := u * v
			for k := range n.a {
				for x, products := range n.band[k] {
					at := ((t.First+i)*nx + x) * side * side
					line := n.a[k][at+(span+j-i)*side:][:side]
					line[span] += float64(w * products[0])
					for d := 1; d < 4 && x+d < nx; d++ {
						p := w * products[d]
						line[span+d] += p
						// and from the other point to this one
						n.a[k][at+d*side*side+(span+j-i)*side+span-d] += p
					}
				}
			}
		}
	}
}

// perPixel divides the equations by the number of pixels, and turns them into pixels of level 0.
func (n *normal) perPixel(pixels, scale float64) {
	for k := range n.a {
		for i := range n.a[k] {
			n.a[k][i] /= pixels * scale * scale
		}
	}
	for k := range n.b {
		for i := range n.b[k] {
			n.b[k][i] /= pixels * scale
		}
	}
}

// reach returns the mean weight that pixels have on a control point.
func (n *normal) reach() float64 {
	sum := 0.0
	size := n.control[0] * n.control[1]
	for i := range size {
		at := i*side*side + span*side + span
		sum += n.a[0][at] + n.a[2][at]
	}
	return sum / float64(2*size)
}

// penalty returns the weighted squares of one component of a warp.
func penalty(v []float64, control [2]int) (sum float64) {
	nx := control[1]
	add := func(weight float64, d float64) { sum += float64(weight * float64(d*d)) }
	for i, f := range v {
		y, x := i/nx, i%nx
		add(ridge, f)
		if x > 0 && x < nx-1 {
			add(bending, v[i-1]-2*f+v[i+1])
		}
		if y > 0 && y < control[0]-1 {
			add(bending, v[i-nx]-2*f+v[i+nx])
		}
		if y > 0 && x > 0 {
			add(2*bending, f-v[i-1]-v[i-nx]+v[i-nx-1])
		}
	}
	return sum
}

// stiffen adds half the gradient of [penalty], times a factor, to out.
func stiffen(out, v []float64, control [2]int, factor float64) {
	nx := control[1]
	for i, f := range v {
		y, x := i/nx, i%nx
		out[i] += float64(factor * ridge * f)
		line := func(step int) {
			d := factor * bending * (v[i-step] - float64(2*f) + v[i+step])
			out[i-step] += d
			out[i] -= float64(2 * d)
			out[i+step] += d
		}
		if x > 0 && x < nx-1 {
			line(1)
		}
		if y > 0 && y < control[0]-1 {
			line(nx)
		}
		if y > 0 && x > 0 {
			d := factor * 2 * bending * (f - v[i-1] - v[i-nx] + v[i-nx-1])
			out[i] += d
			out[i-1] -= d
			out[i-nx] -= d
			out[i-nx-1] += d
		}
	}
}

// times multiplies the matrix, with the penalties, by a vector.
func (n *normal) times(out, v [2][]float64, reach float64) {
	ny, nx := n.control[0], n.control[1]
	for y := range ny {
		for x := range nx {
			i := y*nx + x
			var sum [2]float64
			for dy := max(-span, -y); dy <= min(span, ny-1-y); dy++ {
				for dx := max(-span, -x); dx <= min(span, nx-1-x); dx++ {
					at, j := i*side*side+(span+dy)*side+span+dx, i+dy*nx+dx
					sum[0] += float64(n.a[0][at]*v[0][j]) + float64(n.a[1][at]*v[1][j])
					sum[1] += float64(n.a[1][at]*v[0][j]) + float64(n.a[2][at]*v[1][j])
				}
			}
			out[0][i], out[1][i] = sum[0], sum[1]
		}
	}
	for k := range out {
		stiffen(out[k], v[k], n.control, reach)
	}
}

// solve returns the step from a warp, by conjugate gradients.
func (n *normal) solve(w *bspline.Warp, reach float64) *bspline.Warp {
	size := len(w.DX)
	pair := func() (v [2][]float64) {
		v[0], v[1] = make([]float64, size), make([]float64, size)
		return v
	}
	rest, step, product, out := pair(), pair(), pair(), pair()
	for k, v := range [2][]float64{w.DX, w.DY} {
		stiffen(rest[k], v, n.control, reach)
		for i := range rest[k] {
			rest[k][i] = n.b[k][i] - rest[k][i]
			step[k][i] = rest[k][i]
		}
	}
	first := dot(rest, rest)
	for now, left := first, 4*size; left > 0 && now > 1e-12*first; left-- {
		n.times(product, step, reach)
		length := dot(step, product)
		if !(length > 0) {
			break
		}
		a := now / length
		for k := range out {
			for i := range out[k] {
				out[k][i] += float64(a * step[k][i])
				rest[k][i] -= float64(a * product[k][i])
			}
		}
		next := dot(rest, rest)
		for k := range step {
			for i := range step[k] {
				step[k][i] = rest[k][i] + float64(next/now*step[k][i])
			}
		}
		now = next
	}
	return &bspline.Warp{Control: w.Control, Origin: w.Origin, Spacing: w.Spacing, DX: out[0], DY: out[1]}
}

func dot(a, b [2][]float64) (sum float64) {
	for k := range a {
		for i, v := range a[k] {
			sum += float64(v * b[k][i])
		}
	}
	return sum
}
