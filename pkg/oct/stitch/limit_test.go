package stitch

import (
	"path/filepath"
	"testing"

	"strata/pkg/oct"
	"strata/pkg/oct/stitch/affine"
	"strata/tests/octtest"
	"strata/tests/tilescan"
)

// What no search can find: of the pictures that tilescan.Hidden lists, tiles are misplaced even where each pair is
// compared at its true displacement, in one of three scans at least.
func TestPairsAtTheirTruePlaces(t *testing.T) {
	stitchAccuracy(t)
	wheels, err := filepath.Glob("../../../build/pictures/*.whl")
	if err != nil || len(wheels) == 0 {
		t.Skip("build/pictures has no wheels: make quality QUALITY=tiles gets them")
	}
	all, err := tilescan.Open(wheels...)
	if err != nil {
		t.Fatal(err)
	}
	defer all.Close()
	for _, c := range tilescan.Cases() {
		for _, picture := range c.Pictures() {
			if tilescan.Hidden[[2]string{c.Name, picture}] == "" {
				continue
			}
			worst := 0.0
			for seed := range uint64(3) {
				worst = max(worst, placedByTruePairs(t, all, &c, c.Of(picture, seed+1)))
			}
			t.Logf("%s, %s: up to %.2f px", c.Name, picture, worst)
			if worst <= tilescan.MostRMS {
				t.Errorf("%s, %s: the pairs say where tiles are, within %.2f px", c.Name, picture, worst)
			}
		}
	}
}

// placedByTruePairs returns the error in px of the places that follow from pairs which are compared at their true
// displacements.
func placedByTruePairs(t *testing.T, all *tilescan.Pictures, c *tilescan.Case, s *tilescan.Scan) float64 {
	t.Helper()
	r, err := s.Render(all)
	if err != nil {
		t.Fatal(err)
	}
	in, _ := octtest.Made(t, s.Shape(), []int{s.Shape()[0], s.Side, s.Side}, nil, nil, func(i int) float32 { return r.Pixels[i] })
	m, err := oct.OpenFrames(in, 0)
	if err != nil {
		t.Fatal(err)
	}
	res := octtest.Small()
	res.Mem = 2 << 30
	as, err := newAligners([]*oct.Mosaic{m}, c.Stated, res)
	if err != nil {
		t.Fatal(err)
	}
	e := newEstimator(as, Options{Overlap: s.Overlap, Transform: affine.Identity}, res)
	if _, err := e.look(octtest.Ctx); err != nil {
		t.Fatal(err)
	}
	truth := func(p pair) [2]float64 {
		a, b := r.Places[p.a], r.Places[p.b]
		return [2]float64{b[0] - a[0], b[1] - a[1]}
	}
	if err := findShading(octtest.Ctx, as, []expectation{truth}); err != nil {
		t.Fatal(err)
	}
	measures, err := e.compare(octtest.Ctx, []expectation{truth}, func(int, pair) int { return 0 }, leastEvidence)
	if err != nil {
		t.Fatal(err)
	}
	a, _ := arrange(e.grid, measures, nil, e.loose())
	rms, _, _ := r.Misplaced(a.Place)
	return rms
}
