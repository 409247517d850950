package stitch

import (
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"

	"strata/pkg/ngff"
	"strata/pkg/oct"
	"strata/pkg/oct/stitch/affine"
	"strata/pkg/oct/stitch/consensus"
	"strata/pkg/phantom"
	"strata/pkg/zarr/store"
	"strata/tests/octtest"
	"strata/tests/race"
)

// A matrix, and the places of tiles, are the same whatever reads the tiles and
// however often, and several mosaics share the memory of one.
func TestEstimateIsTheSameHoweverDone(t *testing.T) {
	race.Leave(t)
	c := phantom.Default()
	c.Tile, c.Tiles, c.Crop, c.Matrix = [3]int{20, 96, 80}, [2]int{3, 4}, [2]int{13, 9}, stitchTurned(1, 1.01)
	var mosaics []*ngff.Image
	for seed := range uint64(4) {
		c.Seed = 10 + seed
		_, in := stitchSpecimen(t, c, phantom.Storage{Codecs: nil, Chunks: []int{7, 96, 80}})
		mosaics = append(mosaics, in)
	}
	var first affine.Transform
	var places []TilePlan
	total := int64(0)
	for _, m := range mosaics {
		shape := m.Levels[0].Array.Shape()
		total += int64(4 * shape[0] * shape[1] * shape[2])
	}
	for k, res := range []oct.Resources{{Workers: 1, Mem: 256 << 20}, {Workers: 5, Mem: 64 << 20}, {Workers: 2, Mem: 4 << 20}} {
		var done atomic.Int64
		res.Progress = func(n int64) { done.Add(n) }
		got, err := EstimateTransform(octtest.Ctx, mosaics, Options{Overlap: 0.2}, res)
		if err != nil {
			t.Fatal(err)
		}
		if done.Load() != total {
			t.Errorf("%d: progress of %d bytes of %d", k, done.Load(), total)
		}
		_, st, err := Run(octtest.Ctx, mosaics[0], store.Memory(), oct.Layout{}, Options{Overlap: 0.2, Estimate: true, MaxRefinement: 3}, res)
		if err != nil {
			t.Fatal(err)
		}
		if k == 0 {
			first, places = got, st.Tiles
			continue
		}
		if got != first {
			t.Errorf("%d: %+v, not %+v", k, got, first)
		}
		for i, p := range st.Tiles {
			if p != places[i] {
				t.Errorf("%d: tile %+v, not %+v", k, p, places[i])
			}
		}
	}
	_, err := EstimateTransform(octtest.Ctx, mosaics, Options{Overlap: 0.2}, oct.Resources{Workers: 2, Mem: 1 << 20})
	if err == nil || errors.Is(err, oct.ErrInput) || !strings.Contains(err.Error(), "MiB of buffers, --mem grants 1 MiB") {
		t.Errorf("too little memory: %v", err)
	}
}

// More mosaics say more: the errors of their tiles' places average out.
func TestSeveralMosaicsEstimateBetter(t *testing.T) {
	stitchAccuracy(t)
	c := phantom.Default()
	c.Tile, c.Tiles, c.Jitter, c.Matrix = [3]int{60, 128, 128}, [2]int{3, 3}, 1.5, stitchTurned(1, 1)
	want := stitchSteps(c, c.Matrix, c.Overlap)
	worst := func(in []*ngff.Image) float64 {
		got, err := EstimateTransform(octtest.Ctx, in, Options{Overlap: 0.2}, octtest.Small())
		if err != nil {
			t.Fatal(err)
		}
		e := 0.0
		for k, v := range stitchSteps(c, got.Matrix, 0.2) {
			e = max(e, math.Abs(v-want[k]))
		}
		return e
	}
	var all []*ngff.Image
	alone := 0.0
	const n = 8
	for seed := range uint64(n) {
		c.Seed = 100 + seed
		_, in := stitchSpecimen(t, c, phantom.Storage{})
		all = append(all, in)
		alone += worst(all[seed:]) / n
	}
	together := worst(all)
	t.Logf("step error %.3f px from one mosaic (mean of %d), %.3f px from all", alone, n, together)
	if !(together < 0.6*alone && together < 0.4) {
		t.Errorf("step error %.3f px from one mosaic, %.3f px from %d", alone, together, n)
	}
}

// Tiles in a row, or in a column: the other column of the matrix is that of a
// rotation and a scale, with a warning.
func TestEstimateAlongOneAxis(t *testing.T) {
	for axis, tiles := range [][2]int{{1, 5}, {5, 1}} {
		c := phantom.Default()
		c.Tile, c.Tiles, c.FillTissue, c.Jitter, c.Matrix = [3]int{60, 160, 140}, tiles, true, 0, stitchTurned(2, 1.02)
		_, in := stitchSpecimen(t, c, phantom.Storage{})
		res := octtest.Small()
		var warned string
		res.Warn = func(s string) { warned += s }
		got, err := EstimateTransform(octtest.Ctx, []*ngff.Image{in}, Options{Overlap: 0.2}, res)
		if err != nil {
			t.Fatal(err)
		}
		want := affine.Matrix(c.Matrix)
		for i := range got.Matrix {
			for j := range got.Matrix[i] {
				if d := got.Matrix[i][j] - want[i][j]; math.Abs(d) > 0.2/80 {
					t.Errorf("%v tiles: matrix %v, want %v", tiles, got.Matrix, want)
				}
			}
		}
		if along := "neighbours along " + string("xy"[axis]) + " only"; !strings.Contains(warned, along) {
			t.Errorf("%v tiles: warned of %q", tiles, warned)
		}
	}
}

// Tiles beside the tissue see noise. They do not vote: neither for the matrix, nor
// are they moved.
func TestTilesWithoutTissueDoNotVote(t *testing.T) {
	stitchAccuracy(t)
	c := phantom.Default()
	c.Tile, c.Tiles, c.Agarose, c.Floor, c.Speckle = [3]int{60, 80, 80}, [2]int{9, 9}, 0, 0.05, 0.15
	s, in := stitchSpecimen(t, c, phantom.Storage{})
	_, st, err := Run(octtest.Ctx, in, store.Memory(), oct.Layout{}, Options{Overlap: 0.2, Estimate: true, MaxRefinement: 4}, octtest.Small())
	if err != nil {
		t.Fatal(err)
	}
	// the tissue is an ellipse in the middle; a tile is beside it if its overlaps are
	bare := func(i, j int) bool { return (i == 0 || i == 8) && (j == 0 || j == 8) }
	silent := 0
	for _, p := range st.Pairs {
		if !p.Used {
			silent++
			if p.Reason == "" {
				t.Errorf("%+v: no reason", p)
			}
		}
		for _, at := range p.Tiles {
			if bare(at[0], at[1]) && p.Used {
				t.Errorf("%+v votes", p)
			}
		}
	}
	for _, p := range st.Tiles {
		if bare(p.Tile[0], p.Tile[1]) && (p.Used || math.Hypot(p.Residual[0], p.Residual[1]) > 0.5 || p.Correlation != 0) {
			t.Errorf("%+v: a tile without tissue", p)
		}
	}
	if silent < 4 || silent > 70 { // many overlaps are dim
		t.Errorf("%d of %d pairs are silent", silent, len(st.Pairs))
	}
	a, b := stitchSteps(c, st.Transform.Matrix, 0.2), stitchRealised(s)
	t.Logf("%d of %d pairs are silent, steps %.2f, truth %.2f", silent, len(st.Pairs), a, b)
	for k := range a {
		if math.Abs(a[k]-b[k]) > 0.2 {
			t.Errorf("steps %.3f, want %.3f", a, b)
		}
	}
}

// Refinement is solved over the whole grid: with errors in every pair, a tile at
// the far end is no worse placed than one beside the first, and pairs that are
// plainly wrong do no harm. A chain of pairs would be off by the root of its length.
func TestRefinementDoesNotAccumulateErrors(t *testing.T) {
	const ny, nx = 12, 12
	g := &grid{ny: ny, nx: nx, tile: [2]int{100, 100}, shape: [2]int{100 * ny, 100 * nx}}
	rng := rand.New(rand.NewPCG(7, 7))
	truth := make([][2]float64, ny*nx)
	for i := range truth {
		truth[i] = [2]float64{1.5 * rng.NormFloat64(), 1.5 * rng.NormFloat64()}
	}
	expected := [2][2]float64{{80, 0}, {0, 80}}
	var all []measure
	wrong := 0
	for _, p := range g.pairs() {
		m := measure{pair: p, correlation: 0.8, precision: consensus.Diagonal(100)}
		for k := range 2 {
			m.d[k] = expected[p.axis][k] + truth[p.b][k] - truth[p.a][k] + 0.1*rng.NormFloat64()
		}
		if rng.IntN(20) == 0 {
			m.d[rng.IntN(2)] += 7
			wrong++
		}
		all = append(all, m)
	}
	at := g.nominals(affine.Matrix{{0.8, 0}, {0, 0.8}}, 0)
	got := refine(at, all, refinement{farthest: 17, most: 8}).Residuals(at)
	var mean [2]float64
	for i := range got {
		for k := range 2 {
			mean[k] += (got[i][k] - truth[i][k]) / float64(len(got))
		}
	}
	worst, sum := 0.0, 0.0
	for i := range got {
		e := math.Hypot(got[i][0]-truth[i][0]-mean[0], got[i][1]-truth[i][1]-mean[1])
		worst, sum = max(worst, e), sum+e*e
	}
	outliers := 0
	for _, m := range all {
		if m.reason == Outlier {
			outliers++
		}
	}
	t.Logf("error %.3f px rms, at most %.3f px, from pairs with 0.14 px; %d of %d wrong pairs found", math.Sqrt(sum/ny/nx), worst, outliers, wrong)
	if rms := math.Sqrt(sum / ny / nx); rms > 0.14 || worst > 0.4 || outliers != wrong {
		t.Errorf("error %.3f px rms, at most %.3f px; %d of %d wrong pairs found", rms, worst, outliers, wrong)
	}
}
