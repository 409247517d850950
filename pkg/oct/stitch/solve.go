package stitch

// edge is a measured difference between two tiles' residuals.
type edge struct {
	pair
	d    [2]float64
	p, w sym // precision, and weight in this round
}

// solve finds the least-squares residuals, starting from those in r, by conjugate gradients with the diagonal
// blocks as preconditioner. If steps is not 0, r[steps] and r[steps+1] are corrections that all edges of an axis
// share, and the others are held near 0 with the precision prior.
func solve(r [][2]float64, edges []edge, steps int, prior float64) {
	s := &leastSquares{edges: edges, steps: steps, free: len(r), prior: prior}
	if steps > 0 {
		s.free = steps
	}
	inverse := s.inverseDiagonal(len(r))
	n := len(r)
	left, next, down, image := s.left(r), make([][2]float64, n), make([][2]float64, n), make([][2]float64, n)
	condition := func() {
		for t := range next {
			next[t] = inverse[t].times(left[t])
		}
	}
	condition()
	copy(down, next)
	now := dot(left, next)
	for begin, round := now, 0; now > 1e-20*begin && now > 0 && round < 2*n+50; round++ {
		s.apply(image, down)
		curvature := dot(down, image)
		if !(curvature > 0) {
			return
		}
		step := now / curvature
		for t := range r {
			for k := range 2 {
				r[t][k] += step * down[t][k]
				left[t][k] -= step * image[t][k]
			}
		}
		condition()
		was := now
		now = dot(left, next)
		for t := range down {
			for k := range 2 {
				down[t][k] = next[t][k] + now/was*down[t][k]
			}
		}
	}
}

// leastSquares represents the normal equations of edges.
type leastSquares struct {
	edges []edge
	steps int // index of the corrections shared by an axis; 0: none
	free  int // number of unknowns that belong to a tile
	prior float64
}

// says returns the difference that the residuals v predict for an edge.
func (s *leastSquares) says(v [][2]float64, e *edge) (d [2]float64) {
	for k := range 2 {
		d[k] = v[e.b][k] - v[e.a][k]
		if s.steps > 0 {
			d[k] += v[s.steps+e.axis][k]
		}
	}
	return d
}

// give applies the transpose of says: it adds an edge's contribution f to the residuals.
func (s *leastSquares) give(out [][2]float64, e *edge, f [2]float64) {
	for k := range 2 {
		out[e.b][k] += f[k]
		out[e.a][k] -= f[k]
		if s.steps > 0 {
			out[s.steps+e.axis][k] += f[k]
		}
	}
}

// apply multiplies v by the matrix of the equations.
func (s *leastSquares) apply(out, v [][2]float64) {
	clear(out)
	for t := range s.free {
		out[t] = [2]float64{s.prior * v[t][0], s.prior * v[t][1]}
	}
	for i := range s.edges {
		e := &s.edges[i]
		s.give(out, e, e.w.times(s.says(v, e)))
	}
}

// left returns the right-hand side minus the matrix times r.
func (s *leastSquares) left(r [][2]float64) [][2]float64 {
	out := make([][2]float64, len(r))
	for t := range s.free {
		out[t] = [2]float64{-s.prior * r[t][0], -s.prior * r[t][1]}
	}
	for i := range s.edges {
		e := &s.edges[i]
		d := s.says(r, e)
		s.give(out, e, e.w.times([2]float64{e.d[0] - d[0], e.d[1] - d[1]}))
	}
	return out
}

// inverseDiagonal returns the inverses of the matrix's diagonal blocks; zero for a tile without information.
func (s *leastSquares) inverseDiagonal(n int) []sym {
	out := make([]sym, n)
	for t := range out[:s.free] {
		out[t] = sym{s.prior, 0, s.prior}
	}
	for _, e := range s.edges {
		out[e.a], out[e.b] = out[e.a].add(e.w), out[e.b].add(e.w)
		if s.steps > 0 {
			out[s.steps+e.axis] = out[s.steps+e.axis].add(e.w)
		}
	}
	for t, d := range out {
		if d.yy > 0 {
			out[t] = d.inverse()
		}
	}
	return out
}

func dot(a, b [][2]float64) (s float64) {
	for t := range a {
		s += float64(a[t][0]*b[t][0]) + float64(a[t][1]*b[t][1])
	}
	return s
}

// sym is a symmetric 2×2 matrix.
type sym struct{ yy, yx, xx float64 }

func (s sym) add(o sym) sym { return sym{s.yy + o.yy, s.yx + o.yx, s.xx + o.xx} }

func (s sym) scaled(f float64) sym { return sym{s.yy * f, s.yx * f, s.xx * f} }

func (s sym) times(v [2]float64) [2]float64 {
	return [2]float64{s.yy*v[0] + s.yx*v[1], s.yx*v[0] + s.xx*v[1]}
}

// inverse returns the inverse of a positive definite matrix.
func (s sym) inverse() sym {
	det := s.yy*s.xx - s.yx*s.yx
	return sym{s.xx / det, -s.yx / det, s.yy / det}
}
