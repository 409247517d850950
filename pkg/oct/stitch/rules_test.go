package stitch

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"

	"strata/pkg/ngff"
	"strata/pkg/oct"
	"strata/pkg/oct/stitch/affine"
	"strata/pkg/zarr/store"
	"strata/tests/golden"
	"strata/tests/octtest"
)

// stepped is a mosaic of 4 × 4 tiles of one or three planes of 100 × 100 pixels, cut from a random texture at these
// steps (y, x) in whole pixels. Only the middle plane shows it: the others are the same in all tiles, and would put
// them on top of each other. A sparse tile has other content, in a corner.
func stepped(t *testing.T, planes int, down, right [2]int, sparse int) *ngff.Image {
	t.Helper()
	const tiles, side = 4, 100
	texture := func(y, x int) float32 {
		rng := rand.New(rand.NewPCG(uint64(y+1000), uint64(x+1000)))
		return 1 + rng.Float32()
	}
	in, _ := octtest.Made(t, []int{planes, tiles * side, tiles * side}, []int{planes, side, side}, nil, nil, func(k int) float32 {
		z, y, x := k/(tiles*side*tiles*side), k/(tiles*side)%(tiles*side), k%(tiles*side)
		i, j := y/side, x/side
		y, x = y%side, x%side
		switch {
		case z != planes/2:
			return 5 * texture(y-500, x)
		case i*tiles+j == sparse && (y >= 30 || x >= 30):
			return 0
		case i*tiles+j == sparse:
			return texture(x, y-700)
		}
		return texture(y+i*down[0]+j*right[0], x+i*down[1]+j*right[1])
	})
	return in
}

// stepsOf returns the displacements of neighbours below and to the right in px.
func stepsOf(t affine.Transform) (out [4]float64) {
	step := 100 * (1 - t.Overlap)
	return [4]float64{t.Matrix[0][0] * step, t.Matrix[1][0] * step, t.Matrix[0][1] * step, t.Matrix[1][1] * step}
}

// The reference's rules find the steps between tiles from the middle planes, without tiles that are mostly empty, of
// one mosaic or several, and in whatever memory.
func TestReferenceRules(t *testing.T) {
	truth := [4]float64{78, 3, -4, 83}
	opt := Options{Overlap: 0.2, Rules: affine.RulesReference}
	in := stepped(t, 3, [2]int{78, 3}, [2]int{-4, 83}, 5)
	var first affine.Transform
	for k, res := range []oct.Resources{{Workers: 1, Mem: 64 << 20}, {Workers: 3, Mem: 4 << 20}} {
		var done atomic.Int64
		res.Progress = func(n int64) { done.Add(n) }
		got, err := EstimateTransform(octtest.Ctx, []*ngff.Image{in, stepped(t, 3, [2]int{78, 3}, [2]int{-4, 83}, -1)}, opt, res)
		if err != nil {
			t.Fatal(err)
		}
		for i, v := range stepsOf(got) {
			if math.Abs(v-truth[i]) > 0.5 {
				t.Errorf("step %d is %.3f px, want %g", i, v, truth[i])
			}
		}
		if got.Pairs != 20+24 || got.Of != got.Pairs || got.Spread > 0.1 || got.Rules != affine.RulesReference {
			t.Errorf("%+v", got)
		}
		if want := "tiles overlap by 21.9 % along y and 16.9 % along x, not 20 %: 44 of 44 pairs, spread 0.007 px, by the reference's rules"; got.Summary() != want {
			t.Errorf("%q, want %q", got.Summary(), want)
		}
		if n := 2 * octtest.Stored(in.Levels[0].Array); done.Load() != n {
			t.Errorf("progress of %d bytes of %d", done.Load(), n)
		}
		if k == 0 {
			first = got
		} else if got != first {
			t.Errorf("%+v, not %+v", got, first)
		}
	}
}

// Tiles lie where the matrix puts them, or where the usual refinement does.
func TestReferenceRulesPlaceTiles(t *testing.T) {
	in := stepped(t, 3, [2]int{78, 3}, [2]int{-4, 83}, -1)
	run := func(most float64) (*Result, int64, error) {
		res := octtest.Small()
		var done atomic.Int64
		res.Progress = func(n int64) { done.Add(n) }
		_, s, err := Run(octtest.Ctx, in, store.Memory(), oct.Layout{}, Options{Overlap: 0.2, Estimate: true, Rules: affine.RulesReference, MaxRefinement: most}, res)
		return s, done.Load(), err
	}
	plain, once, err := run(0)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range plain.Tiles {
		i, j := float64(p.Tile[0]), float64(p.Tile[1])
		if p.Residual != [2]float64{} || math.Abs(p.Position[0]-78*i+4*j) > 0.5 || math.Abs(p.Position[1]-3*i-83*j) > 0.5 {
			t.Errorf("%+v", p)
		}
	}
	if a := plain.Agreement(); a.Rules != affine.RulesReference || a.Votes != 24 || a.Compared != 24 || len(plain.Pairs) != 24 {
		t.Errorf("%+v", a)
	}
	refined, twice, err := run(4)
	if err != nil {
		t.Fatal(err)
	}
	if refined.Transform != plain.Transform || once != twice {
		t.Errorf("refinement changes %+v to %+v, and %d bytes of progress to %d", plain.Transform, refined.Transform, once, twice)
	}
	// the projections, which refinement compares, have more than the middle plane
	if c := refined.Pairs[0].Correlation; c == plain.Pairs[0].Correlation {
		t.Errorf("both correlations are %v", c)
	}
	if _, _, err := run(math.Inf(1)); err == nil || !strings.Contains(err.Error(), "--max_refinement_px +Inf") {
		t.Errorf("unlimited: %v", err)
	}
	opt := Options{Rules: "other"}
	if err := opt.check(); err == nil || err.Error() != `--estimate_rules "other" is not one of [consensus reference]` {
		t.Error(err)
	}
}

// Where the stated overlap has nothing of the true one in the middle, the highest peak means nothing. The consensus
// finds it.
func TestReferenceRulesNeedTheStatedOverlap(t *testing.T) {
	in := stepped(t, 1, [2]int{92, 0}, [2]int{0, 92}, -1)
	for _, rules := range []affine.Rules{affine.RulesConsensus, affine.RulesReference} {
		got, err := EstimateTransform(octtest.Ctx, []*ngff.Image{in}, Options{Overlap: 0.2, Rules: rules}, octtest.Small())
		if err != nil {
			t.Fatal(err)
		}
		worst := 0.0
		for i, v := range stepsOf(got) {
			worst = max(worst, math.Abs(v-[4]float64{92, 0, 0, 92}[i]))
		}
		t.Logf("%s: steps %.2f px", got.Summary(), stepsOf(got))
		if wrong := rules == affine.RulesReference; got.Pairs != 24 || wrong && worst < 5 || !wrong && worst > 0.5 {
			t.Errorf("%s: %.2f px off", rules, worst)
		}
	}
}

// Without an overlap, or tissue in it, the matrix stays as it began.
func TestReferenceRulesFindNothing(t *testing.T) {
	in, _ := octtest.Made(t, []int{2, 40, 40}, []int{2, 20, 20}, nil, nil, func(i int) float32 { return 1 })
	for _, overlap := range []float64{0, 0.2} {
		var warned string
		res := octtest.Small()
		res.Warn = func(s string) { warned += s }
		got, err := EstimateTransform(octtest.Ctx, []*ngff.Image{in}, Options{Overlap: overlap, Rules: affine.RulesReference}, res)
		if err != nil || got.Matrix != affine.Identity || got.Pairs != 0 || got.Of != 4 || got.Rules != affine.RulesReference || !strings.Contains(warned, "the matrix stays as it began") {
			t.Errorf("%+v, %v, %q", got, err, warned)
		}
	}
}

// The steps are those that scikit-image's phase correlation of the same overlaps finds; its medians are of whole
// projections.
func TestReferenceRulesFindWhatSkimageFinds(t *testing.T) {
	cases := 0
	for _, c := range golden.Cases(t, "stitch") {
		if _, ok := c.Arrays["position_px"]; !ok {
			continue
		}
		cases++
		var g stitchGolden
		if err := json.Unmarshal(c.File, &g); err != nil {
			t.Fatal(err)
		}
		in := octtest.Open(t, store.Folder(golden.Input(t, c)))
		got, err := EstimateTransform(octtest.Ctx, []*ngff.Image{in}, Options{Overlap: g.Params.Overlap, Rules: affine.RulesReference}, octtest.Small())
		if err != nil {
			t.Fatal(err)
		}
		for axis, n := range TileSize(in) {
			nominal := float64(n) * (1 - g.Params.Overlap)
			for k := range 2 {
				if d := math.Abs(got.Matrix[k][axis]-g.MatrixSkimage[k][axis]) * nominal; !(d <= g.Tolerance.StepSkimage) {
					t.Errorf("%s: element %d,%d is %v, %.3f px a step from scikit-image's %v", c.Name, k, axis, got.Matrix[k][axis], d, g.MatrixSkimage[k][axis])
				}
			}
		}
	}
	if cases != 2 {
		t.Errorf("%d cases", cases)
	}
}
