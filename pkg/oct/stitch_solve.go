package oct

import (
	"context"
	"errors"
	"fmt"
	"math"

	"strata/pkg/ngff"
)

// errNothingCommon says that no pair of neighbours agreed anywhere.
var errNothingCommon = errors.New("no two neighbouring tiles have tissue in common where they may overlap")

// EstimateTransform estimates the matrix that places the tiles of one or several
// mosaics that were taken alike: the least squares over the displacements of all
// pairs of neighbouring tiles, found by phase correlation of their average
// projections. Pairs without tissue in common, and outliers, do not vote. Where
// the tiles have neighbours along one axis only, the other column of the matrix is
// that of a rotation and a scale.
//
// Only opt's overlap and transform, what the search begins with, are used. Of
// several mosaics all must have tiles of one size.
func EstimateTransform(ctx context.Context, in []*ngff.Image, opt StitchOptions, res Resources) (Transform, error) {
	if err := opt.check(); err != nil {
		return Transform{}, err
	}
	var all []*aligner
	defer func() {
		for _, a := range all {
			a.in.close()
		}
	}()
	share := res
	share.Mem = res.Mem / int64(max(len(in), 1))
	for _, image := range in {
		m, err := openMosaic(image)
		if err != nil {
			return Transform{}, err
		}
		if g := m.grid(); len(all) > 0 && g.tile != all[0].grid.tile {
			return Transform{}, badInput("%s: tiles of %v voxels (y, x), %s has %v: one matrix is for tiles of one size", m.where, g.tile, all[0].mosaic.where, all[0].grid.tile)
		}
		a, err := newAligner(m, opt.Overlap, share)
		if err != nil {
			return Transform{}, err
		}
		all = append(all, a)
	}
	if len(all) == 0 {
		return Transform{}, badInput("no mosaic to estimate a matrix from")
	}
	t, _, err := estimateTransform(ctx, all, opt, res)
	if errors.Is(err, errNothingCommon) {
		err = badInput("%s: %w", all[0].mosaic.where, err)
	}
	return t, err
}

// estimateReach is how far a pair may lie, in px, from what all have in common.
const estimateReach = 6

func estimateTransform(ctx context.Context, all []*aligner, opt StitchOptions, res Resources) (Transform, []measure, error) {
	var found [2]bool
	whole, err := common(ctx, all, opt.Transform, &found)
	if err != nil {
		return Transform{}, nil, err
	}
	g := &all[0].grid
	var expected [2][2]float64
	for axis := range 2 {
		expected[axis] = g.expected(opt.Transform, opt.Overlap, axis)
		if found[axis] {
			expected[axis] = [2]float64{float64(whole[axis][0]), float64(whole[axis][1])}
		}
	}
	if err := findShading(ctx, all, expected); err != nil {
		return Transform{}, nil, err
	}
	var every []measure
	tiles := 0 // of the mosaics so far
	for _, a := range all {
		ms, err := a.compareAll(ctx, expected, estimateReach)
		if err != nil {
			return Transform{}, nil, err
		}
		for _, m := range ms {
			m.a, m.b = m.a+tiles, m.b+tiles
			every = append(every, m)
		}
		tiles += len(a.kept)
	}
	t := Transform{Overlap: opt.Overlap}
	var columns, means [2][2]float64
	var known [2]bool
	var spread float64
	for axis := range 2 {
		d, n, s := robustMean(every, axis)
		means[axis], known[axis] = d, n > 0
		t.Pairs += n
		spread += s * s * float64(n)
	}
	if t.Pairs > 0 {
		t.Spread = math.Sqrt(spread / float64(t.Pairs))
	}
	for axis, d := range commonSteps(every, means, tiles, t.Spread) {
		step := float64(g.tile[axis]) * (1 - opt.Overlap)
		columns[axis] = [2]float64{d[0] / step, d[1] / step}
	}
	switch {
	case !known[0] && !known[1]:
		return t, every, errNothingCommon
	case !known[0]:
		columns[0] = [2]float64{columns[1][1], -columns[1][0]}
		res.warn("%s: neighbours along x only: the matrix's other column is that of a rotation and a scale", all[0].mosaic.where)
	case !known[1]:
		columns[1] = [2]float64{-columns[0][1], columns[0][0]}
		res.warn("%s: neighbours along y only: the matrix's other column is that of a rotation and a scale", all[0].mosaic.where)
	}
	t.Matrix = Matrix{{columns[0][0], columns[1][0]}, {columns[0][1], columns[1][1]}}
	t.Spread = digits(t.Spread)
	if err := t.Matrix.check(); err != nil {
		return t, every, badInput("%s: estimated %w", all[0].mosaic.where, err)
	}
	return t, every, nil
}

// robustMean is the mean displacement of an axis's pairs, weighted with their
// precision, the number of pairs, and how far they scatter. Each pair's variance is
// its own plus that of the tiles' positions, which is estimated from the
// scatter; pairs further away than four standard deviations (Tukey's biweight)
// do not count, and get a reason.
func robustMean(all []measure, axis int) (mean [2]float64, n int, spread float64) {
	var votes []*measure
	for i := range all {
		if m := &all[i]; m.axis == axis && m.reason == "" {
			votes = append(votes, m)
		}
	}
	if len(votes) == 0 {
		return mean, 0, 0
	}
	for k := range 2 {
		var v []float64
		for _, m := range votes {
			v = append(v, m.d[k])
		}
		mean[k] = median(v)
	}
	for range 10 {
		var far []float64
		for _, m := range votes {
			far = append(far, math.Hypot(m.d[0]-mean[0], m.d[1]-mean[1]))
		}
		// the median distance of a plane normal distribution is 1.1774 σ
		scatter := median(far) / 1.1774
		var weights sym
		var sum [2]float64
		n, spread = 0, 0
		var used float64
		for i, m := range votes {
			cutoff := 4 * math.Hypot(scatter, 0.1)
			u := far[i] / cutoff
			if u >= 1 && len(votes) > 2 {
				continue
			}
			w := m.precision.inverse().add(sym{scatter * scatter, 0, scatter * scatter}).inverse()
			if len(votes) > 2 {
				w = w.scaled((1 - u*u) * (1 - u*u))
			}
			v := w.times(m.d)
			weights = weights.add(w)
			sum[0], sum[1] = sum[0]+v[0], sum[1]+v[1]
			n++
			used += far[i] * far[i]
		}
		if n == 0 {
			break
		}
		mean = weights.inverse().times(sum)
		spread = math.Sqrt(used / float64(2*n))
	}
	for _, m := range votes {
		if d := math.Hypot(m.d[0]-mean[0], m.d[1]-mean[1]); len(votes) > 2 && d > 4*math.Hypot(1.5*spread, 0.1) {
			m.reason = "outlier"
		}
	}
	return mean, n, spread
}

// commonSteps are the displacements of neighbours along each axis that fit all
// pairs best, when every tile may also be off its place by itself: each pair says
//
//	d = step + r_b − r_a + error
//
// with r of a variance that the spread of the pairs tells. Both are solved for at
// once: the mean of the pairs alone would count the errors of tiles' positions as
// if each pair had its own.
func commonSteps(all []measure, begin [2][2]float64, tiles int, spread float64) [2][2]float64 {
	var edges []edge
	noise := 0.0
	for _, m := range all {
		if m.reason != "" {
			continue
		}
		b := begin[m.axis]
		edges = append(edges, edge{m.a, m.b, m.axis, [2]float64{m.d[0] - b[0], m.d[1] - b[1]}, m.precision, m.precision})
		v := m.precision.inverse()
		noise += (v.yy + v.xx) / 2
	}
	if len(edges) == 0 {
		return begin
	}
	// of a pair: twice that of a tile, and the measurement's
	variance := max((spread*spread-noise/float64(len(edges)))/2, 0.02*0.02)
	x := make([][2]float64, tiles+2)
	solve(x, edges, tiles, 1/variance)
	for axis := range begin {
		for k := range 2 {
			begin[axis][k] += x[tiles+axis][k]
		}
	}
	return begin
}

// position finds where the tiles go, and notes it.
func position(ctx context.Context, m *mosaic, g grid, opt StitchOptions, s *Stitching, res Resources) ([][2]float64, error) {
	residuals := make([][2]float64, g.ny*g.nx)
	var measures []measure
	if opt.Estimate || opt.MaxRefinement > 0 {
		a, err := newAligner(m, opt.Overlap, res)
		if err != nil {
			return nil, err
		}
		defer a.in.close()
		if opt.Estimate {
			t, ms, err := estimateTransform(ctx, []*aligner{a}, opt, res)
			switch {
			case errors.Is(err, errNothingCommon):
				res.warn("%s: %v: the tiles stay where the matrix %v puts them", m.where, err, opt.Transform)
			case err != nil:
				return nil, err
			default:
				s.Transform = t
			}
			measures = ms
		}
		if opt.MaxRefinement > 0 {
			expected := [2][2]float64{g.expected(s.Transform.Matrix, opt.Overlap, 0), g.expected(s.Transform.Matrix, opt.Overlap, 1)}
			if err := findShading(ctx, []*aligner{a}, expected); err != nil {
				return nil, err
			}
			reach := min(int(math.Ceil(2*opt.MaxRefinement)), max(g.tile[0], g.tile[1]))
			if measures, err = a.compareAll(ctx, expected, reach); err != nil {
				return nil, err
			}
			residuals = refine(&g, expected, measures, opt.MaxRefinement)
		}
	}
	positions := make([][2]float64, g.ny*g.nx)
	for t := range positions {
		i, j := t/g.nx, t%g.nx
		positions[t] = g.nominal(s.Transform.Matrix, opt.Overlap, i, j)
		for k := range 2 {
			positions[t][k] += residuals[t][k]
			if math.Abs(positions[t][k]) > 1e15 {
				return nil, badInput("%s: tile (%d, %d) would lie at %g px along %c", m.where, i, j, positions[t][k], "yx"[k])
			}
		}
		s.Tiles = append(s.Tiles, TilePlan{Tile: [2]int{i, j}, Position: positions[t], Residual: residuals[t]})
	}
	count := make([]int, len(positions))
	for _, m := range measures {
		s.Pairs = append(s.Pairs, TilePair{Tiles: [2][2]int{s.Tiles[m.a].Tile, s.Tiles[m.b].Tile},
			Measured: [2]float64{milli(m.d[0]), milli(m.d[1])}, Correlation: digits(m.correlation), Used: m.reason == "", Reason: m.reason})
		if m.reason != "" {
			continue
		}
		for _, t := range []int{m.a, m.b} {
			s.Tiles[t].Used = true
			s.Tiles[t].Correlation += m.correlation
			count[t]++
		}
	}
	for t, n := range count {
		if n > 0 {
			s.Tiles[t].Correlation = digits(s.Tiles[t].Correlation / float64(n))
		}
	}
	return positions, nil
}

// milli rounds to a thousandth of a pixel, so that the last bits of a Fourier
// transform do not show.
func milli(v float64) float64 { return math.Round(v*1000) / 1000 }

// refine finds by how much each tile is to be moved from where the matrix puts
// it: the least squares over all pairs at once, each weighted with its
// precision,
//
//	Σ (r_b − r_a − e)ᵀ P (r_b − r_a − e) → min,  e = measured − expected
//
// solved by conjugate gradients. Pairs that do not fit the others are given
// less weight, round by round (Geman and McClure's estimator). Tiles without a
// vote stay; the mean of a group of tiles that hang together is 0. Residuals longer
// than limit are cut to it.
func refine(g *grid, expected [2][2]float64, all []measure, limit float64) [][2]float64 {
	n := g.ny * g.nx
	var edges []edge
	for i := range all {
		m := &all[i]
		if m.reason != "" {
			continue
		}
		e := expected[m.axis]
		d := [2]float64{m.d[0] - e[0], m.d[1] - e[1]}
		if math.Hypot(d[0], d[1]) > 2*limit+1 {
			m.reason = "too far from where it should be"
			continue
		}
		edges = append(edges, edge{m.a, m.b, m.axis, d, m.precision, m.precision})
	}
	r := make([][2]float64, n)
	for range 8 {
		solve(r, edges, 0, 0)
		// how well the pairs fit; few tiles fit exactly
		var far []float64
		for _, e := range edges {
			far = append(far, math.Hypot(r[e.b][0]-r[e.a][0]-e.d[0], r[e.b][1]-r[e.a][1]-e.d[1]))
		}
		if len(far) == 0 {
			break
		}
		scale := math.Hypot(3*median(far), 0.25)
		for i := range edges {
			u := far[i] / scale
			edges[i].w = edges[i].p.scaled(1 / ((1 + u*u) * (1 + u*u)))
		}
	}
	k := 0
	for i := range all {
		if m := &all[i]; m.reason == "" {
			e := edges[k]
			k++
			if math.Hypot(r[e.b][0]-r[e.a][0]-e.d[0], r[e.b][1]-r[e.a][1]-e.d[1]) > 2 {
				m.reason = "outlier"
			}
		}
	}
	centre(r, edges)
	for t := range r {
		if l := math.Hypot(r[t][0], r[t][1]); l > limit {
			r[t][0], r[t][1] = r[t][0]*limit/l, r[t][1]*limit/l
		}
		r[t] = [2]float64{milli(r[t][0]), milli(r[t][1])}
	}
	return r
}

// edge is a measured difference of two tiles' residuals.
type edge struct {
	a, b int
	axis int
	d    [2]float64
	p, w sym // precision, and weight of this round
}

// solve finds the residuals with the least squares, from those in r, by
// conjugate gradients with the diagonal blocks as preconditioner. If steps is not
// 0, r[steps] and r[steps+1] are corrections that all edges of an axis share, and
// the others are held near 0 with the precision prior.
func solve(r [][2]float64, edges []edge, steps int, prior float64) {
	n := len(r)
	diagonal := make([]sym, n)
	free := n
	if steps > 0 {
		free = steps
	}
	for t := range diagonal[:free] {
		diagonal[t] = sym{prior, 0, prior}
	}
	for _, e := range edges {
		diagonal[e.a], diagonal[e.b] = diagonal[e.a].add(e.w), diagonal[e.b].add(e.w)
		if steps > 0 {
			diagonal[steps+e.axis] = diagonal[steps+e.axis].add(e.w)
		}
	}
	for t, d := range diagonal {
		if d.yy > 0 {
			diagonal[t] = d.inverse()
		}
	}
	// says is what the residuals v say of an edge
	says := func(v [][2]float64, e *edge) (d [2]float64) {
		for k := range 2 {
			d[k] = v[e.b][k] - v[e.a][k]
			if steps > 0 {
				d[k] += v[steps+e.axis][k]
			}
		}
		return d
	}
	give := func(out [][2]float64, e *edge, f [2]float64) {
		for k := range 2 {
			out[e.b][k] += f[k]
			out[e.a][k] -= f[k]
			if steps > 0 {
				out[steps+e.axis][k] += f[k]
			}
		}
	}
	apply := func(out, v [][2]float64) {
		clear(out)
		for t := range free {
			out[t] = [2]float64{prior * v[t][0], prior * v[t][1]}
		}
		for i := range edges {
			e := &edges[i]
			give(out, e, e.w.times(says(v, e)))
		}
	}
	dot := func(a, b [][2]float64) (s float64) {
		for t := range a {
			s += float64(a[t][0]*b[t][0]) + float64(a[t][1]*b[t][1])
		}
		return s
	}
	left, next, down, image := make([][2]float64, n), make([][2]float64, n), make([][2]float64, n), make([][2]float64, n)
	for t := range free {
		left[t] = [2]float64{-prior * r[t][0], -prior * r[t][1]}
	}
	for i := range edges {
		e := &edges[i]
		d := says(r, e)
		give(left, e, e.w.times([2]float64{e.d[0] - d[0], e.d[1] - d[1]}))
	}
	condition := func() {
		for t := range next {
			next[t] = diagonal[t].times(left[t])
		}
	}
	condition()
	copy(down, next)
	now := dot(left, next)
	for begin, round := now, 0; now > 1e-20*begin && now > 0 && round < 2*n+50; round++ {
		apply(image, down)
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

// centre takes the mean from the residuals of each group of tiles that pairs
// connect.
func centre(r [][2]float64, edges []edge) {
	group := make([]int, len(r))
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
	for _, e := range edges {
		group[find(e.a)] = find(e.b)
	}
	sums, count := make([][2]float64, len(r)), make([]float64, len(r))
	for t, v := range r {
		o := find(t)
		sums[o] = [2]float64{sums[o][0] + v[0], sums[o][1] + v[1]}
		count[o]++
	}
	for t := range r {
		o := find(t)
		for k := range 2 {
			r[t][k] -= sums[o][k] / count[o]
		}
	}
}

func (m Matrix) String() string {
	return fmt.Sprintf("[[%.6g %.6g] [%.6g %.6g]]", m[0][0], m[0][1], m[1][0], m[1][1])
}
