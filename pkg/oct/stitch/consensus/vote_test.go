package consensus

import (
	"math"
	"math/rand/v2"
	"testing"
)

// guesses returns pairs of which some have their true displacement among several false ones.
func guesses(rng *rand.Rand, n int, truth Steps, scatter, share float64) (pairs []Pair) {
	neighbours(n, n, func(a, b, axis int) {
		p := Pair{A: a, B: b, Axis: axis, Area: 100 * 100}
		for range 5 {
			p.Candidates = append(p.Candidates, Candidate{D: [2]float64{100 * rng.Float64(), 100 * rng.Float64()}, Score: 3 + rng.Float64()})
			if axis == 0 {
				p.Candidates[len(p.Candidates)-1].D[0] += 100
			} else {
				p.Candidates[len(p.Candidates)-1].D[1] += 100
			}
		}
		if rng.Float64() < share {
			d := [2]float64{truth[axis][0] + scatter*rng.NormFloat64(), truth[axis][1] + scatter*rng.NormFloat64()}
			p.Candidates = append([]Candidate{{D: d, Score: 6}}, p.Candidates[:4]...)
		}
		pairs = append(pairs, p)
	})
	return pairs
}

// The common displacement is found among false ones, also where few pairs show it, and where none does no displacement
// has as many votes.
func TestVoteFindsTheCommonDisplacement(t *testing.T) {
	truth := Steps{{150, 3}, {-4, 152}}
	expected := Steps{{160, 0}, {0, 160}}
	chance := [2]Chance{{3.5, 4.5}, {3.5, 4.5}}
	for seed := range uint64(30) {
		rng := rand.New(rand.NewPCG(seed, 3))
		for _, share := range []float64{1, 0.5, 0.25} {
			got, votes := Vote(guesses(rng, 6, truth, 2, share), chance, expected, 2)
			_, none := Vote(guesses(rng, 6, truth, 2, 0), chance, expected, 2)
			for axis := range got {
				if far := math.Hypot(got[axis][0]-truth[axis][0], got[axis][1]-truth[axis][1]); far > 6 || votes[axis].Votes < none[axis].Votes+3 {
					t.Errorf("seed %d, %g of the pairs: %v with %.1f votes, by chance %.1f", seed, share, got, votes[axis].Votes, none[axis].Votes)
				}
			}
		}
	}
}

// A few pairs that say the same of a group of tiles move it; pairs that agree by chance do not.
func TestVoteOffset(t *testing.T) {
	truth := [2]float64{15, -18}
	chance := [2]Chance{{3.5, 4.5}, {3.5, 4.5}}
	for seed := range uint64(30) {
		rng := rand.New(rand.NewPCG(seed, 8))
		pairs := guesses(rng, 2, Steps{truth, truth}, 1, 1)
		if got, v := VoteOffset(pairs, chance, 2); math.Hypot(got[0]-truth[0], got[1]-truth[1]) > 3 || v.Votes < 8 {
			t.Errorf("seed %d: %v with %.1f votes", seed, got, v.Votes)
		}
		if got, v := VoteOffset(guesses(rng, 2, Steps{}, 1, 0), chance, 2); v.Votes > 6 {
			t.Errorf("seed %d: %v with %.1f votes, by chance", seed, got, v.Votes)
		}
	}
	if _, v := VoteOffset([]Pair{{A: 0, B: 1}}, chance, 2); v.Votes != 0 {
		t.Errorf("%v of nothing", v)
	}
}

// Texture that repeats itself agrees as well a period away: what belongs to one rotation and scale wins, and of several
// candidates of a pair the one nearest to where the others put it.
func TestVoteWhereTextureRepeats(t *testing.T) {
	expected := Steps{{160, 0}, {0, 160}}
	var pairs []Pair
	neighbours(4, 4, func(a, b, axis int) {
		p := Pair{A: a, B: b, Axis: axis, Area: 1e4}
		for _, period := range []float64{0, 20, -20, 40} {
			d := expected[axis]
			d[axis] += period + 3 // 2 % farther, both axes alike
			p.Candidates = append(p.Candidates, Candidate{D: d, Score: 10 - math.Abs(period)/100})
		}
		if axis == 1 { // of this axis a wrong one agrees a little better
			p.Candidates[0].Score, p.Candidates[1].Score = p.Candidates[1].Score, p.Candidates[0].Score
		}
		pairs = append(pairs, p)
	})
	chance := [2]Chance{{2, 3}, {2, 3}}
	got, _ := Vote(pairs, chance, expected, 2)
	if got != (Steps{{163, 0}, {0, 163}}) {
		t.Fatalf("steps %v", got)
	}
	for i, k := range Choose(pairs, chance, 6, func(p *Pair) [2]float64 { return got[p.Axis] }) {
		if k != 0 {
			t.Errorf("pair %d: candidate %d", i, k)
		}
	}
}

// Of an edge that two tiles have in common, the place along it is open: such candidates say nothing of that direction,
// wherever they lie, and few others do.
func TestVoteAlongEdges(t *testing.T) {
	truth, expected := Steps{{150, 3}, {-4, 152}}, Steps{{160, 0}, {0, 160}}
	chance := [2]Chance{{2, 3}, {2, 3}}
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 5))
		var pairs []Pair
		neighbours(5, 5, func(a, b, axis int) {
			sin, cos := math.Sincos(rng.Float64() * math.Pi)
			along := -20 * rng.Float64() // where tiles overlap more, longer edges agree better
			d, width := truth[axis], Sym{}
			if len(pairs)%3 > 0 {
				if d[0]*sin+d[1]*cos < 0 {
					sin, cos = -sin, -cos
				}
				d = [2]float64{d[0] + along*sin, d[1] + along*cos}
				width = Sym{144 * sin * sin, 144 * sin * cos, 144 * cos * cos}
			}
			d = [2]float64{d[0] + rng.NormFloat64(), d[1] + rng.NormFloat64()}
			pairs = append(pairs, Pair{A: a, B: b, Axis: axis, Area: 1e4, Candidates: []Candidate{{D: d, Score: 9, Width: width}}})
		})
		got, _ := Vote(pairs, chance, expected, 2)
		for axis := range got {
			if far := math.Hypot(got[axis][0]-truth[axis][0], got[axis][1]-truth[axis][1]); far > 2 {
				t.Errorf("seed %d: %v, want %v", seed, got[axis], truth[axis])
			}
		}
	}
}

// Scores that tiles without overlap reach are the measure of those that have one.
func TestChance(t *testing.T) {
	var strangers []Pair
	for i := range 40 {
		strangers = append(strangers, Pair{Axis: 1, Candidates: []Candidate{{Score: 2 + float64(i)/10}}})
	}
	if c := ChanceOf(strangers, 1); c.Half != 4 || math.Abs(c.Most-1.2*5.6) > 1e-9 {
		t.Errorf("%+v", c)
	}
	if c := ChanceOf(strangers, 0); c.Most != leastScoreAlone {
		t.Errorf("without strangers %+v", c)
	}
}
