package stitch

import (
	"math"
	"testing"

	"strata/pkg/oct/stitch/consensus"
)

// ofGrid returns an estimator of so many mosaics of side × side tiles, expected 100 px apart, with the neighbours of
// each.
func ofGrid(mosaics, side int) (e *estimator, pairs []pair) {
	e = &estimator{grid: &consensus.Grid{Expected: consensus.Steps{{100, 0}, {0, 100}}}, step: [2]int{2, 2}, chance: [2]consensus.Chance{{Half: 3, Most: 4}, {Half: 3, Most: 4}}}
	g := grid{ny: side, nx: side}
	for range mosaics {
		n := len(e.grid.Row)
		e.first = append(e.first, n)
		e.grid.Add(side, side)
		for _, p := range g.pairs() {
			pairs = append(pairs, pair{p.a + n, p.b + n, p.axis})
		}
	}
	return e, pairs
}

// A tile that no pair joins to the others is looked for where the overviews of its pairs agree, in its mosaic; where
// they do not, it stays.
func TestRejoin(t *testing.T) {
	e, neighbours := ofGrid(2, 3)
	const slipped, lost, second = 8, 9, 9 // the last tile of the first mosaic, the first one of the second
	slip := [2]float64{24, -17}
	var measured []consensus.Measured
	var pairs []consensus.Pair
	for i, p := range neighbours {
		d := e.grid.Expected[p.axis]
		c := []consensus.Candidate{{D: [2]float64{d[0] + float64(7*i%40) - 20, d[1] + float64(11*i%40) - 20}, Score: 4}}
		switch {
		case p.b == slipped:
			c = append([]consensus.Candidate{{D: [2]float64{d[0] + slip[0], d[1] + slip[1]}, Score: 6}}, c...)
		case p.a != lost:
			measured = append(measured, consensus.Measured{A: p.a, B: p.b, D: d, P: consensus.Diagonal(100)})
		}
		pairs = append(pairs, consensus.Pair{A: p.a, B: p.b, Axis: p.axis, Candidates: c, Area: 80 * 80})
	}
	a := consensus.Arrange(e.grid, measured, nil, 10)
	for tile, got := range e.rejoin(a, pairs) {
		want := [2]float64{}
		if tile == slipped {
			want = slip
		}
		if math.Hypot(got[0]-want[0], got[1]-want[1]) > 1 {
			t.Errorf("tile %d: %v, want %v", tile, got, want)
		}
	}
	if main := e.main(a.Fit); main[slipped] || main[lost] || !main[0] || !main[second+1] {
		t.Errorf("%v", main)
	}
}

// A consensus is weak if most of its tiles hang on pairs that nothing checks, in whichever mosaic, and not if few tiles
// show anything.
func TestWeak(t *testing.T) {
	for _, c := range []struct {
		name    string
		mosaics int
		rows    bool // pairs join rows, and nothing checks them
		tiles   int  // of each mosaic, from the first
		faint   bool // no pair is sure
		want    bool
	}{
		{"all pairs", 1, false, 25, false, false},
		{"two mosaics", 2, false, 25, false, false},
		{"rows", 1, true, 25, false, true},
		{"rows of two mosaics", 2, true, 25, false, true},
		{"rows of a few tiles", 1, true, 10, false, false},
		{"rows that may be chance", 1, true, 25, true, false},
	} {
		e, neighbours := ofGrid(c.mosaics, 5)
		var measures []measure
		for _, p := range neighbours {
			if p.b%25 < c.tiles && !(c.rows && p.axis == 0) {
				measures = append(measures, measure{pair: p, d: e.grid.Expected[p.axis], precision: consensus.Diagonal(100), sure: !c.faint})
			}
		}
		a, _ := arrange(e.grid, measures, nil, 10)
		if got := e.weak(a.Fit, measures); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}
