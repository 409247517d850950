package consensus

import (
	"math"
	"math/rand/v2"
	"testing"
)

// dense solves the same equations by elimination with pivots; rows of groups that nothing holds are replaced by the
// condition that their mean is 0.
func dense(tiles int, links []Link, prior float64) [][2]float64 {
	n := 2 * tiles
	a := make([][]float64, n)
	for i := range a {
		a[i] = make([]float64, n+1)
		a[i][i] = prior
	}
	for _, l := range links {
		w := [2][2]float64{{l.w.YY, l.w.YX}, {l.w.YX, l.w.XX}}
		for i := range 2 {
			for k := range 2 {
				for _, f := range []struct {
					r, c int
					s    float64
				}{{l.A, l.A, 1}, {l.B, l.B, 1}, {l.A, l.B, -1}, {l.B, l.A, -1}} {
					a[2*f.r+i][2*f.c+k] += f.s * w[i][k]
				}
				a[2*l.B+i][n] += w[i][k] * l.D[k]
				a[2*l.A+i][n] -= w[i][k] * l.D[k]
			}
		}
	}
	if prior == 0 {
		group := groups(tiles, links)
		for t, o := range group {
			for k := range 2 {
				if o == t { // one equation of each group says nothing new
					clear(a[2*t+k])
				}
			}
		}
		for t, o := range group {
			for k := range 2 {
				a[2*o+k][2*t+k] = 1
			}
		}
	}
	for c := range n {
		p := c
		for r := c; r < n; r++ {
			if math.Abs(a[r][c]) > math.Abs(a[p][c]) {
				p = r
			}
		}
		a[c], a[p] = a[p], a[c]
		for r := range n {
			if f := a[r][c] / a[c][c]; r != c && f != 0 {
				for k := c; k <= n; k++ {
					a[r][k] -= f * a[c][k]
				}
			}
		}
	}
	out := make([][2]float64, tiles)
	for t := range out {
		out[t] = [2]float64{a[2*t][n] / a[2*t][2*t], a[2*t+1][n] / a[2*t+1][2*t+1]}
	}
	return out
}

// randomLinks links some neighbours of a grid: all, islands, or chains.
func randomLinks(rng *rand.Rand, ny, nx int) (links []Link) {
	kind := rng.IntN(3)
	keep := []float64{1, 0.5, 0.8}[kind]
	for t := range ny * nx {
		for axis, o := range []int{t - nx, t - 1} {
			if axis == 0 && t < nx || axis == 1 && t%nx == 0 || rng.Float64() > keep || kind == 2 && axis == 0 && t%nx > 0 {
				continue
			}
			// from the exact to the hardly known, as robust weights have it
			yy, xx := math.Pow(10, 3-4*rng.Float64()), math.Pow(10, 3-4*rng.Float64())
			l := Link{A: o, B: t, D: [2]float64{5 * rng.NormFloat64(), 5 * rng.NormFloat64()}, P: Sym{yy, 0.9 * (2*rng.Float64() - 1) * math.Sqrt(yy*xx), xx}}
			l.w = l.P
			links = append(links, l)
		}
	}
	return links
}

// The solution is that of elimination, whatever the links, with and without what holds the common shift.
func TestSolveIsLeastSquares(t *testing.T) {
	worst := 0.0
	for seed := range uint64(1000) {
		rng := rand.New(rand.NewPCG(seed, 1))
		ny, nx := 1+rng.IntN(6), 1+rng.IntN(6)
		links := randomLinks(rng, ny, nx)
		prior := []float64{0, 0.01, 4}[rng.IntN(3)]
		got := make([][2]float64, ny*nx)
		for k := range got {
			got[k] = [2]float64{rng.NormFloat64(), rng.NormFloat64()} // wherever it starts
		}
		solve(got, links, prior)
		for k, want := range dense(ny*nx, links, prior) {
			if e := math.Hypot(got[k][0]-want[0], got[k][1]-want[1]); !(e < 1e-9) {
				t.Errorf("seed %d, %d × %d tiles, %d links, prior %g: tile %d is off by %g", seed, ny, nx, len(links), prior, k, e)
				break
			} else {
				worst = max(worst, e)
			}
		}
	}
	t.Logf("off by %.1g px at most", worst)
}
