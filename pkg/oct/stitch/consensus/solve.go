// Package consensus finds where the tiles of a mosaic lie from measured displacements of neighbouring tiles, some of
// which may be wrong. It computes only: no files, no goroutines.
package consensus

// Link is a measured displacement of two tiles: how much farther the second deviates from its expected place than the
// first.
type Link struct {
	A, B int        // tiles
	D    [2]float64 // (y, x) in px
	P    Sym        // precision, 1/px²
	Sure bool       // says enough to be believed alone
	Weak bool       // says too little to hold a tile alone along a direction
	w    Sym        // weight in this round
}

// solve finds the least-squares deviations r of tiles from their expected places,
//
//	Σ (r_b − r_a − d)ᵀ W (r_b − r_a − d) + prior·Σ |r|² → min,
//
// by conjugate gradients with the diagonal blocks as preconditioner, starting from r. Without prior, nothing holds the
// common shift of a group of connected tiles: its mean is 0.
func solve(r [][2]float64, links []Link, prior float64) {
	s := &system{links: links, prior: prior}
	if prior == 0 {
		s.group = groups(len(r), links)
	}
	s.invert(len(r))
	s.centre(r)
	begin := s.size(s.left(make([][2]float64, len(r))))
	// what rounding leaves of the residual shows only when it is computed anew
	for last, k := begin, 0; k < restarts; k++ {
		now := s.descend(r, begin)
		if !(now > tolerance*begin && now < last/4) {
			break
		}
		last = now
	}
	s.centre(r)
}

const (
	// restarts is the maximum number of times that conjugate gradients begin.
	restarts = 6
	// tolerance is the size of the residual, squared and relative to that of the right-hand side, that counts as
	// rounding.
	tolerance = 1e-30
)

// system represents the normal equations of links.
type system struct {
	links   []Link
	prior   float64
	group   []int // by tile; nil: the prior holds the tiles
	inverse []Sym // of the diagonal blocks
}

// descend runs conjugate gradients, and returns the squared size of the residual afterwards.
func (s *system) descend(r [][2]float64, begin float64) float64 {
	n := len(r)
	left, next, down, image := s.left(r), make([][2]float64, n), make([][2]float64, n), make([][2]float64, n)
	s.condition(next, left)
	copy(down, next)
	now := dot(left, next)
	for round := 0; now > tolerance*begin && round < 4*n+50; round++ {
		s.apply(image, down)
		curvature := dot(down, image)
		if !(curvature > 0) {
			break
		}
		step := now / curvature
		for t := range r {
			for k := range 2 {
				r[t][k] += step * down[t][k]
				left[t][k] -= step * image[t][k]
			}
		}
		s.condition(next, left)
		was := now
		now = dot(left, next)
		for t := range down {
			for k := range 2 {
				down[t][k] = next[t][k] + now/was*down[t][k]
			}
		}
	}
	return s.size(s.left(r))
}

// size returns the squared size of a residual, as the preconditioner measures it.
func (s *system) size(left [][2]float64) float64 {
	next := make([][2]float64, len(left))
	s.condition(next, left)
	return dot(left, next)
}

// condition applies the preconditioner, and takes out the shifts that no link sees.
func (s *system) condition(next, left [][2]float64) {
	for t := range next {
		next[t] = s.inverse[t].times(left[t])
	}
	s.centre(next)
}

// centre subtracts its mean from each group of tiles that nothing else holds.
func (s *system) centre(v [][2]float64) {
	if s.group != nil {
		centre(v, s.group)
	}
}

// apply multiplies v by the matrix of the equations.
func (s *system) apply(out, v [][2]float64) {
	for t := range out {
		out[t] = [2]float64{s.prior * v[t][0], s.prior * v[t][1]}
	}
	for i := range s.links {
		l := &s.links[i]
		l.give(out, l.w.times([2]float64{v[l.B][0] - v[l.A][0], v[l.B][1] - v[l.A][1]}))
	}
}

// left returns the right-hand side minus the matrix times r.
func (s *system) left(r [][2]float64) [][2]float64 {
	out := make([][2]float64, len(r))
	for t := range out {
		out[t] = [2]float64{-s.prior * r[t][0], -s.prior * r[t][1]}
	}
	for i := range s.links {
		l := &s.links[i]
		l.give(out, l.w.times([2]float64{l.D[0] - r[l.B][0] + r[l.A][0], l.D[1] - r[l.B][1] + r[l.A][1]}))
	}
	return out
}

// give adds a link's contribution f to its tiles.
func (l *Link) give(out [][2]float64, f [2]float64) {
	for k := range 2 {
		out[l.B][k] += f[k]
		out[l.A][k] -= f[k]
	}
}

// invert inverts the matrix's diagonal blocks; zero for a tile without information.
func (s *system) invert(tiles int) {
	s.inverse = make([]Sym, tiles)
	for t := range s.inverse {
		s.inverse[t] = Diagonal(s.prior)
	}
	for _, l := range s.links {
		s.inverse[l.A], s.inverse[l.B] = s.inverse[l.A].Add(l.w), s.inverse[l.B].Add(l.w)
	}
	for t, d := range s.inverse {
		if d.YY > 0 {
			s.inverse[t] = d.Inverse()
		}
	}
}

func dot(a, b [][2]float64) (s float64) {
	for t := range a {
		s += float64(a[t][0]*b[t][0]) + float64(a[t][1]*b[t][1])
	}
	return s
}

// groups returns for each tile a representative of the group of tiles that links connect it to.
func groups(tiles int, links []Link) []int {
	group := make([]int, tiles)
	for t := range group {
		group[t] = t
	}
	find := func(t int) int {
		for group[t] != t {
			group[t] = group[group[t]]
			t = group[t]
		}
		return t
	}
	for _, l := range links {
		group[find(l.A)] = find(l.B)
	}
	for t := range group {
		group[t] = find(t)
	}
	return group
}

// centre subtracts its mean from each group.
func centre(v [][2]float64, group []int) {
	sums, count := make([][2]float64, len(v)), make([]float64, len(v))
	for t, o := range group {
		sums[o] = [2]float64{sums[o][0] + v[t][0], sums[o][1] + v[t][1]}
		count[o]++
	}
	for t, o := range group {
		for k := range 2 {
			v[t][k] -= sums[o][k] / count[o]
		}
	}
}
