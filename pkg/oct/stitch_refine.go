package oct

import (
	"math"
	"slices"
)

// refinement bounds what becomes of measured pairs.
type refinement struct {
	farthest float64 // displacements that differ by more than this from what is expected do not vote, px
	limit    float64 // residuals are cut to it, px
	hold     float64 // precision, 1/px², with which pairs without a vote keep the displacement that is expected; 0: they do not
}

// refine finds by how much each tile is to be moved from where it is expected: the least squares over all pairs at once,
// each weighted with its precision,
//
//	Σ (r_b − r_a − e)ᵀ P (r_b − r_a − e) → min,  e = measured − expected
//
// solved by conjugate gradients. Pairs that do not fit the others are given
// less weight, round by round (Geman and McClure's estimator). Tiles without a
// vote stay, or follow their neighbours where these are held to them; the mean of a group of tiles that hang together is 0.
func refine(tiles int, expected expectation, all []measure, how refinement) [][2]float64 {
	var edges, held []edge
	for i := range all {
		m := &all[i]
		e := expected(m.pair)
		d := [2]float64{m.d[0] - e[0], m.d[1] - e[1]}
		if m.reason == "" && math.Hypot(d[0], d[1]) > how.farthest {
			m.reason = "too far from where it should be"
		}
		if m.reason == "" {
			edges = append(edges, edge{m.pair, d, m.precision, m.precision})
		} else if how.hold > 0 {
			p := sym{how.hold, 0, how.hold}
			held = append(held, edge{m.pair, [2]float64{}, p, p})
		}
	}
	r := make([][2]float64, tiles)
	every := slices.Concat(edges, held)
	solveRobustly(r, every, len(edges))
	k := 0
	for i := range all {
		if m := &all[i]; m.reason == "" {
			if edges[k].misfit(r) > 2 {
				m.reason = "outlier"
			}
			k++
		}
	}
	centre(r, every)
	for t := range r {
		if l := math.Hypot(r[t][0], r[t][1]); l > how.limit {
			r[t][0], r[t][1] = r[t][0]*how.limit/l, r[t][1]*how.limit/l
		}
		r[t] = [2]float64{milli(r[t][0]), milli(r[t][1])}
	}
	return r
}

// solveRobustly solves several times, with less weight for those of the first edges, which were measured, that do not fit.
func solveRobustly(r [][2]float64, edges []edge, measured int) {
	if measured == 0 {
		return
	}
	far := make([]float64, measured)
	for range 8 {
		solve(r, edges, 0, 0)
		for i := range far {
			far[i] = edges[i].misfit(r)
		}
		// how well the pairs fit; few tiles fit exactly
		scale := math.Hypot(3*median(far), 0.25)
		for i := range far {
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
