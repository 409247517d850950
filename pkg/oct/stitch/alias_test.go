package stitch

import (
	"math"
	"math/rand/v2"
	"testing"

	"strata/pkg/ngff"
	"strata/pkg/oct"
	"strata/pkg/oct/stitch/affine"
	"strata/pkg/oct/stitch/consensus"
	"strata/tests/octtest"
)

// periodic returns a mosaic of tiles of a wall with a period in px along both axes, each stone a little different,
// under noise relative to that; tiles overlap by a part.
func periodic(t *testing.T, overlap, noise, different float64) *ngff.Image {
	const tiles, side, period = 5, 128, 32
	rng := rand.New(rand.NewPCG(4, 4))
	stones := map[[2]int]float64{}
	wall := func(y, x int) float64 {
		stone := [2]int{y / period, x / period}
		if _, known := stones[stone]; !known {
			stones[stone] = rng.NormFloat64()
		}
		v := 1.0
		if y%period < 6 || x%period < 6 {
			v = 0
		}
		return 2 + v + different*stones[stone]
	}
	step := side * (1 - overlap)
	in, _ := octtest.Made(t, []int{1, tiles * side, tiles * side}, []int{1, side, side}, nil, nil, func(i int) float32 {
		y, x := i/(tiles*side), i%(tiles*side)
		at := func(v int) int { return int(math.Round(step*float64(v/side))) + v%side }
		return float32(max(0, wall(at(y), at(x))+noise*rng.NormFloat64()))
	})
	return in
}

// Where neighbours fit a period away from where they should be no better than tiles fit themselves there, nothing tells
// which is true; where what they show differs from period to period, it does, and the true overlap is found.
func TestTextureThatRepeatsItself(t *testing.T) {
	stitchAccuracy(t)
	const period = 32
	expected := consensus.Steps{{72 + period, 0}, {0, 72 + period}}
	for _, c := range []struct {
		name      string
		different float64
		steps     consensus.Steps
		known     [2]bool
		want      bool
	}{
		{"all periods alike", 0, consensus.Steps{{72, 0}, {0, 72}}, [2]bool{true, true}, true},
		{"one axis", 0, consensus.Steps{{72, 0}, {0, 72 + period}}, [2]bool{true, false}, true},
		{"one of two axes", 0, consensus.Steps{{72, 0}, {0, 72 + period + 2}}, [2]bool{true, true}, false},
		{"no period", 0, consensus.Steps{{72 + 48, 0}, {0, 72 + 48}}, [2]bool{true, true}, false},
		{"each different", 1, consensus.Steps{{72, 0}, {0, 72}}, [2]bool{true, true}, false},
	} {
		m, err := oct.OpenFrames(periodic(t, 0.4375, 0.2, c.different), 0)
		if err != nil {
			t.Fatal(err)
		}
		res := octtest.Small()
		all, err := newAligners([]*oct.Mosaic{m}, 0.1875, res)
		if err != nil {
			t.Fatal(err)
		}
		e := newEstimator(all, Options{Overlap: 0.1875, Transform: affine.Identity}, res)
		if e.grid.Expected != expected {
			t.Fatal(e.grid.Expected)
		}
		if _, err := e.look(octtest.Ctx); err != nil {
			t.Fatal(err)
		}
		if got := e.repeats(c.steps, [2]consensus.Verdict{{Scatter: 2}, {Scatter: 2}}, c.known); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
	got, err := EstimateTransform(octtest.Ctx, []*ngff.Image{periodic(t, 0.4375, 0.2, 1)}, Options{Overlap: 0.1875}, octtest.Small())
	if o := got.Overlaps(); err != nil || math.Abs(o[0]-0.4375) > 0.01 || math.Abs(o[1]-0.4375) > 0.01 {
		t.Errorf("overlaps %v, %v", o, err)
	}
}

// A displacement that neighbours contradict is no better than the expected one.
func TestBetterAsExpected(t *testing.T) {
	m, err := oct.OpenFrames(periodic(t, 0.4375, 0.2, 1), 0)
	if err != nil {
		t.Fatal(err)
	}
	res := octtest.Small()
	truth, wrong := consensus.Steps{{72, 0}, {0, 72}}, consensus.Steps{{72, 0}, {0, 72 + 32}}
	for _, c := range []struct {
		overlap float64
		steps   consensus.Steps
		known   [2]bool
		want    bool
	}{
		{0.4375, truth, [2]bool{true, true}, false},
		{0.4375, wrong, [2]bool{true, true}, true},
		{0.4375, wrong, [2]bool{true, false}, false},
		{0.1875, truth, [2]bool{true, true}, false},
	} {
		all, err := newAligners([]*oct.Mosaic{m}, c.overlap, res)
		if err != nil {
			t.Fatal(err)
		}
		e := newEstimator(all, Options{Overlap: c.overlap, Transform: affine.Identity}, res)
		if _, err := e.look(octtest.Ctx); err != nil {
			t.Fatal(err)
		}
		if got := e.better(c.steps, [2]consensus.Verdict{{Scatter: 2}, {Scatter: 2}}, c.known); got != c.want {
			t.Errorf("overlap %g, found %v: %v", c.overlap, c.steps, got)
		}
	}
}

// Pairs that lie farther away than they may vote if they agree about as well as the others do, and so do those that
// overviews hardly support.
func TestReadmit(t *testing.T) {
	all := []measure{{correlation: 0.99}, {correlation: 0.98}, {correlation: 0.9},
		{correlation: 0.965, reason: TooFar}, {correlation: 0.95, reason: TooFar},
		{correlation: 0.7, evidence: 1.5, reason: noTexture}, {correlation: 0.999, evidence: 0.5, reason: noTexture}, {correlation: 0.49, evidence: 2, reason: noTexture}}
	readmit(all)
	for i, want := range []string{"", "", "", "", TooFar, "", noTexture, noTexture} {
		if all[i].reason != want {
			t.Errorf("pair %d: %q, want %q", i, all[i].reason, want)
		}
	}
	readmit(all[6:]) // nothing to compare with
	if all[6].reason != noTexture {
		t.Error("readmitted without others")
	}
}
