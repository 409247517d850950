package oct

import (
	"math"
)

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
	solveRobustly(r, edges)
	k := 0
	for i := range all {
		if m := &all[i]; m.reason == "" {
			if edges[k].misfit(r) > 2 {
				m.reason = "outlier"
			}
			k++
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

// solveRobustly solves several times, with less weight for what does not fit.
func solveRobustly(r [][2]float64, edges []edge) {
	if len(edges) == 0 {
		return
	}
	far := make([]float64, len(edges))
	for range 8 {
		solve(r, edges, 0, 0)
		for i := range edges {
			far[i] = edges[i].misfit(r)
		}
		// how well the pairs fit; few tiles fit exactly
		scale := math.Hypot(3*median(far), 0.25)
		for i := range edges {
			u := far[i] / scale
			edges[i].w = edges[i].p.scaled(1 / ((1 + u*u) * (1 + u*u)))
		}
	}
}

// misfit is by how many px the residuals r contradict an edge.
func (e *edge) misfit(r [][2]float64) float64 {
	return math.Hypot(r[e.b][0]-r[e.a][0]-e.d[0], r[e.b][1]-r[e.a][1]-e.d[1])
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
