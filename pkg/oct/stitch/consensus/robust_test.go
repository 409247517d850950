package consensus

import (
	"math"
	"math/rand/v2"
	"testing"
)

// neighbours calls f with all pairs of neighbours of a grid.
func neighbours(ny, nx int, f func(a, b, axis int)) {
	for t := range ny * nx {
		if t >= nx {
			f(t-nx, t, 0)
		}
		if t%nx > 0 {
			f(t-1, t, 1)
		}
	}
}

// scattered returns random deviations of tiles.
func scattered(rng *rand.Rand, n int, px float64) [][2]float64 {
	out := make([][2]float64, n)
	for t := range out {
		out[t] = [2]float64{px * rng.NormFloat64(), px * rng.NormFloat64()}
	}
	return out
}

// worst returns the largest distance of two solutions, up to a shift of all tiles.
func worst(a, b [][2]float64) float64 {
	var mean [2]float64
	for t := range a {
		for k := range 2 {
			mean[k] += (a[t][k] - b[t][k]) / float64(len(a))
		}
	}
	most := 0.0
	for t := range a {
		most = max(most, math.Hypot(a[t][0]-b[t][0]-mean[0], a[t][1]-b[t][1]-mean[1]))
	}
	return most
}

// Consistent pairs give the places of their tiles, at every size of the mosaic and every noise: all pairs together are
// no worse than a few times one of them.
func TestRobustPlacesByConsistentPairs(t *testing.T) {
	for _, n := range []int{3, 6, 12, 20} {
		for _, noise := range []float64{0, 0.01, 0.1, 0.3} {
			for seed := range uint64(20) {
				rng := rand.New(rand.NewPCG(seed, uint64(n)))
				truth := scattered(rng, n*n, 3)
				var links []Link
				neighbours(n, n, func(a, b, _ int) {
					v := 1 / (0.0009 + noise*noise)
					links = append(links, Link{A: a, B: b, P: Sym{v, 0, v}, D: [2]float64{truth[b][0] - truth[a][0] + noise*rng.NormFloat64(), truth[b][1] - truth[a][1] + noise*rng.NormFloat64()}})
				})
				f := Robust(n*n, links, nil, 10)
				if e := worst(f.R, truth); !(e < 0.1+5*noise) {
					t.Errorf("%d × %d tiles, noise %g px, seed %d: off by %.3f px", n, n, noise, seed, e)
				}
			}
		}
	}
}

// Wrong pairs are dropped, and one tile that slipped is placed by the pairs that show it.
func TestRobustDropsWrongPairs(t *testing.T) {
	const n = 6
	for seed := range uint64(50) {
		rng := rand.New(rand.NewPCG(seed, 7))
		truth := scattered(rng, n*n, 2)
		truth[14] = [2]float64{20, -15}
		var links []Link
		wrong, touched := map[int]bool{}, map[int]bool{}
		neighbours(n, n, func(a, b, _ int) {
			l := Link{A: a, B: b, P: Diagonal(100), D: [2]float64{truth[b][0] - truth[a][0] + 0.1*rng.NormFloat64(), truth[b][1] - truth[a][1] + 0.1*rng.NormFloat64()}}
			// of two pairs of a corner, and of four that fall out two to two, none can tell which are wrong
			if !touched[a] && !touched[b] && a != 14 && b != 14 && a > n && b < n*n-n && a%n > 0 && b%n < n-1 && rng.IntN(10) == 0 {
				l.D[rng.IntN(2)] += 8
				wrong[len(links)], touched[a], touched[b] = true, true, true
			}
			links = append(links, l)
		})
		f := Robust(n*n, links, nil, 10)
		if e := worst(f.R, truth); e > 0.5 {
			t.Errorf("seed %d, %d wrong pairs: off by %.2f px", seed, len(wrong), e)
		}
		for i, bad := range f.Bad {
			if bad != wrong[i] {
				t.Errorf("seed %d: pair %d of tiles %d and %d is bad: %v", seed, i, links[i].A, links[i].B, bad)
			}
		}
	}
}

// A link that nothing checks and that puts its tile where no other lies is not believed; one that does not is, but is
// told.
func TestLinksThatNothingChecks(t *testing.T) {
	for _, far := range []float64{0.3, 30} {
		links := []Link{{A: 4, B: 5, P: Diagonal(100), D: [2]float64{far, 0}}}
		neighbours(2, 2, func(a, b, _ int) { links = append(links, Link{A: a, B: b, P: Diagonal(100), D: [2]float64{0.2, 0.1}}) })
		links = append(links, Link{A: 3, B: 4, P: Diagonal(100), Sure: true}, Link{A: 2, B: 4, P: Diagonal(100)})
		f := Robust(7, links, nil, 10)
		if f.Bad[0] != (far > 10) {
			t.Errorf("%g px: bad %v", far, f.Bad[0])
		}
		if far < 10 && (!f.Doubtful[5] || f.Doubtful[4] || f.Connected(5) != 6 || f.Connected(6) != 1) {
			t.Errorf("%g px: doubtful %v, %d tiles connected", far, f.Doubtful, f.Connected(5))
		}
	}
}

// bridges are found in trees, loops and islands.
func TestBridges(t *testing.T) {
	at := [][2]int{{0, 1}, {1, 2}, {2, 0}, {2, 3}, {3, 4}, {5, 6}, {7, 8}, {8, 9}, {9, 7}, {4, 3}}
	want := []bool{false, false, false, true, false, true, false, false, false, false}
	var links []Link
	for _, p := range at {
		links = append(links, Link{A: p[0], B: p[1]})
	}
	for i, b := range bridges(11, links) {
		if b != want[i] {
			t.Errorf("link %v: %v", at[i], b)
		}
	}
}

// A pair that says little along an edge may differ from the others there, but not across it.
func TestRobustAlongEdges(t *testing.T) {
	var links []Link
	truth := make([][2]float64, 16)
	neighbours(4, 4, func(a, b, _ int) { links = append(links, Link{A: a, B: b, P: Diagonal(100)}) })
	edge := Sym{YY: 100, XX: 0.01}
	along, across := 3, 12
	links[along].P, links[along].D = edge, [2]float64{0, 15}
	links[across].P, links[across].D = edge, [2]float64{15, 0}
	f := Robust(len(truth), links, nil, 10)
	if f.Bad[along] || !f.Bad[across] || worst(f.R, truth) > 0.1 {
		t.Errorf("bad along the edge: %v, across: %v; off by %.2f px", f.Bad[along], f.Bad[across], worst(f.R, truth))
	}
}
