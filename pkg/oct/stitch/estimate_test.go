package stitch

import (
	"math"
	"testing"

	"strata/pkg/ngff"
	"strata/pkg/oct"
	"strata/pkg/oct/stitch/affine"
	"strata/pkg/phantom"
	"strata/pkg/zarr/store"
	"strata/tests/octtest"
)

// stitchAccuracy skips a test of how good the numbers are in a short run, as that
// with the race detector is: others do the same work on less.
func stitchAccuracy(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("accuracy")
	}
}

func stitchTurned(degrees, scale float64) [2][2]float64 {
	sin, cos := math.Sincos(degrees * math.Pi / 180)
	return [2][2]float64{{scale * cos, -scale * sin}, {scale * sin, scale * cos}}
}

// stitchSteps are the displacements of neighbours below and to the right.
func stitchSteps(c phantom.Config, m affine.Matrix, overlap float64) (out [4]float64) {
	h, w := float64(c.Tile[1])*(1-overlap), float64(c.Tile[2])*(1-overlap)
	return [4]float64{m[0][0] * h, m[1][0] * h, m[0][1] * w, m[1][1] * w}
}

// stitchRealised are the displacements of neighbours that fit the true positions of a
// phantom's tiles best: what its matrix says, and what the jitter of these tiles
// adds to it.
func stitchRealised(s *phantom.Specimen) (out [4]float64) {
	c := s.Config()
	mi, mj := float64(c.Tiles[0]-1)/2, float64(c.Tiles[1]-1)/2
	var di, dj float64
	for i := range c.Tiles[0] {
		for j := range c.Tiles[1] {
			p := s.TilePosition(0, i, j)
			v, u := float64(i)-mi, float64(j)-mj
			di, dj = di+v*v, dj+u*u
			for k := range 2 {
				out[k] += v * p[k]
				out[2+k] += u * p[k]
			}
		}
	}
	return [4]float64{out[0] / di, out[1] / di, out[2] / dj, out[3] / dj}
}

// Known overlap, rotation and scale come back within 0.2 px a tile, from noisy tiles
// with shading, curvature and errors of position.
func TestEstimateFindsWhatThePhantomDid(t *testing.T) {
	stitchAccuracy(t)
	type change func(*phantom.Config)
	for _, c := range []struct {
		name    string
		nominal float64
		change  change
	}{
		{"as it is", 0.2, func(c *phantom.Config) {}},
		{"no jitter", 0.2, func(c *phantom.Config) { c.Jitter, c.Matrix = 0, stitchTurned(0.7, 1.01) }},
		{"rotated", 0.2, func(c *phantom.Config) { c.Matrix = stitchTurned(2, 1) }},
		{"longer steps", 0.2, func(c *phantom.Config) { c.Matrix = stitchTurned(-1, 1.04) }},
		{"sheared", 0.2, func(c *phantom.Config) { c.Matrix = [2][2]float64{{0.98, 0.03}, {-0.01, 1.02}} }},
		{"smaller overlap", 0.25, func(c *phantom.Config) { c.Overlap = 0.18 }},
		{"larger overlap", 0.2, func(c *phantom.Config) { c.Overlap = 0.3 }},
		{"bright speckle", 0.2, func(c *phantom.Config) { c.Speckle, c.Matrix = 0.6, stitchTurned(1, 0.99) }},
		{"no noise", 0.2, func(c *phantom.Config) { *c = c.Ideal(); c.Matrix = stitchTurned(3, 1) }},
		{"partial tiles", 0.2, func(c *phantom.Config) { c.Crop, c.Matrix = [2]int{50, 40}, stitchTurned(1.5, 1) }},
	} {
		cfg := phantom.Default()
		cfg.Tile = [3]int{40, 200, 200}
		c.change(&cfg)
		s, in := stitchSpecimen(t, cfg, phantom.Storage{})
		got, err := EstimateTransform(octtest.Ctx, []*ngff.Image{in}, Options{Overlap: c.nominal}, oct.Resources{Workers: 2, Mem: 256 << 20})
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		a, b := stitchSteps(cfg, got.Matrix, c.nominal), stitchRealised(s)
		worst := 0.0
		for k := range a {
			worst = max(worst, math.Abs(a[k]-b[k]))
		}
		t.Logf("%-16s %2d pairs, spread %.2f px, worst step error %.3f px", c.name, got.Pairs, got.Spread, worst)
		if limit := map[bool]float64{true: 0.35, false: 0.2}[c.name == "bright speckle"]; worst > limit {
			t.Errorf("%s: steps %.3f, want %.3f", c.name, a, b)
		}
	}
}

// Refined positions are the tiles' true ones, up to a translation of all.
func TestRefinementFindsTheJitter(t *testing.T) {
	stitchAccuracy(t)
	for _, c := range []struct {
		name   string
		limit  float64 // of the root mean square, px
		change func(*phantom.Config)
	}{
		{"as it is", 0.2, func(c *phantom.Config) {}},
		{"no speckle", 0.1, func(c *phantom.Config) { c.Speckle = 0 }},
		{"no noise", 0.05, func(c *phantom.Config) { j := c.Jitter; *c = c.Ideal(); c.Jitter = j }},
		{"large jitter", 0.25, func(c *phantom.Config) { c.Jitter = 2 }},
		{"more depth", 0.2, func(c *phantom.Config) { c.Tile[0] = 120 }},
	} {
		cfg := phantom.Default()
		cfg.Tile, cfg.FillTissue = [3]int{60, 192, 192}, true
		c.change(&cfg)
		s, in := stitchSpecimen(t, cfg, phantom.Storage{})
		_, st, err := Run(octtest.Ctx, in, store.Memory(), oct.Layout{}, Options{Overlap: 0.2, MaxRefinement: 8}, oct.Resources{Workers: 2, Mem: 256 << 20})
		if err != nil {
			t.Fatal(err)
		}
		var mean [2]float64
		var before, after float64
		for pass := range 2 {
			for _, p := range st.Tiles {
				want := s.TilePosition(0, p.Tile[0], p.Tile[1])
				for k := range 2 {
					e := p.Position[k] - want[k]
					if pass == 0 {
						mean[k] += e / float64(len(st.Tiles))
					} else {
						after += (e - mean[k]) * (e - mean[k])
						before += math.Pow(e-p.Residual[k], 2)
					}
				}
			}
		}
		n := float64(2 * len(st.Tiles))
		before, after = math.Sqrt(before/n), math.Sqrt(after/n)
		t.Logf("%-14s position error per axis %.3f px before, %.3f px after (rms)", c.name, before, after)
		if after > c.limit {
			t.Errorf("%s: %.3f px", c.name, after)
		}
	}
}

// Two by two tiles with overlaps of a dozen pixels: four pairs in all, whose common
// maximum is not to be lost in what lies beside it.
func TestEstimateOfFewSmallTiles(t *testing.T) {
	for seed := range uint64(4) {
		c := phantom.Default()
		c.Tiles, c.Tile, c.Bowl, c.Seed = [2]int{2, 2}, [3]int{48, 64, 64}, 0, seed
		s, in := octtest.Specimen(t, c, nil, nil, nil)
		got, err := EstimateTransform(octtest.Ctx, []*ngff.Image{in}, Options{Overlap: 0.2, Transform: affine.Identity}, octtest.Small())
		if err != nil {
			t.Errorf("seed %d: %v", seed, err)
			continue
		}
		want := stitchRealised(s)
		for k, v := range stitchSteps(c, got.Matrix, 0.2) {
			if d := math.Abs(v - want[k]); d > 3 { // of four noisy pairs
				t.Errorf("seed %d: step %d is %.2f px, should be %.2f", seed, k, v, want[k])
			}
		}
	}
}
