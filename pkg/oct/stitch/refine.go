package stitch

import (
	"math"
	"slices"

	"strata/pkg/filter"
)

// refinement limits the influence of measured pairs.
type refinement struct {
	farthest float64 // displacements further than this from the expected one do not vote, px
	limit    float64 // maximum length of residuals, px
	record   float64 // upper limit of the expected displacements' standard deviation, px; 0: they say nothing
}

// refine returns the residual of each tile: its deviation from the expected position, by least squares over all
// pairs together, each weighted with its precision,
//
//	Σ (r_b − r_a − e)ᵀ P (r_b − r_a − e) → min,  e = measured − expected
//
// solved by conjugate gradients. Pairs that contradict the others get less weight, round by round (Geman and
// McClure's estimator). Tiles without a vote stay, or follow neighbours to which they are held; the mean of each
// connected group of tiles is 0.
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
		} else if how.record > 0 {
			held = append(held, edge{pair: m.pair})
		}
	}
	r := make([][2]float64, tiles)
	if how.record > 0 {
		solveWithRecord(r, edges, held, how.record)
	} else {
		solveRobustly(r, edges)
	}
	k := 0
	for i := range all {
		if m := &all[i]; m.reason == "" {
			if edges[k].misfit(r) > 2 {
				m.reason = "outlier"
			}
			k++
		}
	}
	centre(r, slices.Concat(edges, held))
	for t := range r {
		if l := math.Hypot(r[t][0], r[t][1]); l > how.limit {
			r[t][0], r[t][1] = r[t][0]*how.limit/l, r[t][1]*how.limit/l
		}
		r[t] = [2]float64{milli(r[t][0]), milli(r[t][1])}
	}
	return r
}

// solveRobustly solves repeatedly, with less weight for edges that do not fit.
func solveRobustly(r [][2]float64, edges []edge) {
	if len(edges) == 0 {
		return
	}
	for range rounds {
		solve(r, edges, 0, 0)
		for i, k := range trust(misfits(r, edges)) {
			edges[i].w = edges[i].p.scaled(k)
		}
	}
}

// rounds is the number of rounds of a robust fit.
const rounds = 8

// trust returns the weight of each edge by its misfit: Geman and McClure's estimator.
func trust(far []float64) []float64 {
	out := make([]float64, len(far))
	// how well the pairs fit; few tiles fit exactly
	scale := math.Hypot(3*filter.MedianOf(far), 0.25)
	for i, f := range far {
		u := f / scale
		out[i] = 1 / ((1 + u*u) * (1 + u*u))
	}
	return out
}

// solveWithRecord solves like solveRobustly if the expected displacements were recorded with an error of their
// own, at most most px: it weighs the edges against the record. The errors of both are estimated: that of the
// edges from how much they contradict each other, beyond their precision, and that of the record from how much the
// edges differ from it. Tiles that show little in their overlaps stay near their record; where they show much, the
// record hardly counts. Held edges assert that two tiles are as far apart as recorded.
func solveWithRecord(r [][2]float64, edges, held []edge, most float64) {
	if len(edges) == 0 {
		return
	}
	n, tiles := float64(len(edges)), float64(len(r))
	free := float64(unknowns(len(r), edges)) // positions that follow the edges
	differ := squared(misfits(make([][2]float64, len(r)), edges))
	every := slices.Concat(edges, held)
	solve(r, edges, 0, 0)
	weight := slices.Repeat([]float64{1}, len(edges))
	for range rounds {
		// misfits are smaller than errors, because positions follow the edges
		follow := n / max(n-free, n/10)
		far := misfits(r, edges)
		noise := follow * squared(far)
		worse := max(follow*squared(counted(far, edges)), 1)
		variance := min(max((differ-noise)/2, exactness*exactness), most*most)
		info := variance * 2 * n / tiles // of the edges of a tile against that of its record, times noise
		free = float64(unknowns(len(r), edges)) * info / (info + noise)
		for i := range every {
			if e := &every[i]; i < len(edges) {
				e.w = e.p.scaled(weight[i] / worse)
			} else {
				e.w = sym{1 / (2 * variance), 0, 1 / (2 * variance)}
			}
		}
		solve(r, every, 0, 1/variance)
		weight = trust(misfits(r, edges))
	}
}

// counted returns misfits in units of the standard deviations of their edges.
func counted(far []float64, edges []edge) []float64 {
	out := make([]float64, len(far))
	for i, f := range far {
		p := edges[i].p
		out[i] = f * math.Sqrt((p.yy+p.xx)/2)
	}
	return out
}

// squared returns the variance along an axis of vectors, robustly from their lengths: the median length of a plane
// normal distribution is 1.1774 σ.
func squared(lengths []float64) float64 {
	m := filter.MedianOf(lengths) / 1.1774
	return m * m
}

// misfits returns by how many px the residuals r contradict each edge.
func misfits(r [][2]float64, edges []edge) []float64 {
	out := make([]float64, len(edges))
	for i := range edges {
		out[i] = edges[i].misfit(r)
	}
	return out
}

// misfit returns by how many px the residuals r contradict an edge.
func (e *edge) misfit(r [][2]float64) float64 {
	return math.Hypot(r[e.b][0]-r[e.a][0]-e.d[0], r[e.b][1]-r[e.a][1]-e.d[1])
}

// groups returns for each tile a representative of the group of tiles that edges connect it to.
func groups(tiles int, edges []edge) []int {
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
	for _, e := range edges {
		group[find(e.a)] = find(e.b)
	}
	for t := range group {
		group[t] = find(t)
	}
	return group
}

// unknowns returns how many positions the edges determine: one less than the number of tiles in each group.
func unknowns(tiles int, edges []edge) (n int) {
	for t, g := range groups(tiles, edges) {
		if g != t {
			n++
		}
	}
	return n
}

// centre subtracts the mean from the residuals of each group of connected tiles.
func centre(r [][2]float64, edges []edge) {
	group := groups(len(r), edges)
	sums, count := make([][2]float64, len(r)), make([]float64, len(r))
	for t, v := range r {
		o := group[t]
		sums[o] = [2]float64{sums[o][0] + v[0], sums[o][1] + v[1]}
		count[o]++
	}
	for t := range r {
		o := group[t]
		for k := range 2 {
			r[t][k] -= sums[o][k] / count[o]
		}
	}
}
