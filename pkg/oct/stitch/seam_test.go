package stitch

import (
	"math"
	"testing"

	"strata/pkg/dtype"
	"strata/pkg/ngff"
	"strata/pkg/oct"
	"strata/pkg/oct/stitch/canvas"
	"strata/pkg/phantom"
	"strata/pkg/zarr/store"
	"strata/tests/octtest"
)

// stitchCover says for each pixel of the canvas which tiles make it: the one that
// canvas.BlendNone chooses, or else all that cover it, as a number. several is where
// more than one do.
func stitchCover(st *Result, c phantom.Config) (who []uint64, several []bool) {
	ny, nx := st.Size[0], st.Size[1]
	who, several = make([]uint64, ny*nx), make([]bool, ny*nx)
	best := make([]int, ny*nx)
	for t, p := range st.Tiles {
		oy, ox := int(math.RoundToEven(p.Position[0]))-st.Origin[0], int(math.RoundToEven(p.Position[1]))-st.Origin[1]
		for y := range c.Tile[1] {
			for x := range c.Tile[2] {
				i := (oy+y)*nx + ox + x
				several[i] = who[i] != 0
				if st.Blending != canvas.BlendNone {
					who[i] |= 1 << t
				} else if w := min(2*y+1, 2*(c.Tile[1]-y)-1) * min(2*x+1, 2*(c.Tile[2]-x)-1); w > best[i] {
					who[i], best[i] = 1<<t, w
				}
			}
		}
	}
	return who, several
}

// stitchError is the error of a stitched slice's average projection against its
// truth, in per cent of the truth's mean: root mean squares of the difference where
// tiles overlap, and of what it jumps by from pixel to pixel where one set of
// tiles takes over from another.
func stitchError(t *testing.T, s *phantom.Specimen, in *ngff.Image, opt Options) (overlaps, jumps float64) {
	t.Helper()
	out, st, err := Run(octtest.Ctx, in, store.Memory(), oct.Layout{}, opt, octtest.Small())
	if err != nil {
		t.Fatal(err)
	}
	// where all lies as a whole nobody can tell
	var off [2]float64
	for _, p := range st.Tiles {
		want := s.TilePosition(0, p.Tile[0], p.Tile[1])
		for d := range 2 {
			off[d] += (p.Position[d] - want[d]) / float64(len(st.Tiles))
		}
	}
	c := s.Config()
	ny, nx := st.Size[0], st.Size[1]
	b := make([]byte, 4*c.Tile[0]*ny*nx)
	if err := s.RenderTruth(b, 0, [2]float64{float64(st.Origin[0]) - off[0], float64(st.Origin[1]) - off[1]}, ny, nx); err != nil {
		t.Fatal(err)
	}
	e, mean := stitchDifference(octtest.Read(t, out.Levels[0].Array), b, ny*nx)
	who, several := stitchCover(st, c)
	var n, sum, seams, steps float64
	for i, d := range e {
		if several[i] {
			n, sum = n+1, sum+d*d
		}
		for k, o := range [2]int{i + nx, i + 1} {
			if o < len(e) && (k == 0 || o%nx != 0) && who[o] != who[i] && (several[i] || several[o]) {
				seams, steps = seams+1, steps+(e[o]-d)*(e[o]-d)
			}
		}
	}
	return 100 * math.Sqrt(sum/n) / mean, 100 * math.Sqrt(steps/seams) / mean
}

// stitchDifference is the difference of two float32 volumes' average projections,
// and the mean of the second.
func stitchDifference(got []float32, truth []byte, plane int) (e []float64, mean float64) {
	e = make([]float64, plane)
	depth := float64(len(got) / plane)
	for i, v := range dtype.Slice[float32](truth) {
		e[i%plane] += (float64(got[i]) - float64(v)) / depth
		mean += float64(v) / float64(len(got))
	}
	return e, mean
}

// What is left of errors at the seams, for each blending, with tiles where they
// should be, refined, and refined and interpolated; docs/stages/stitch.md has some of these numbers.
// Numbers are per cent of the truth's mean: in the overlaps, and what they jump by
// at seams; they may become smaller.
func TestSeamErrors(t *testing.T) {
	stitchAccuracy(t)
	c := phantom.Default().Ideal()
	c.Tile, c.Tiles, c.FillTissue, c.Water, c.Jitter = [3]int{24, 128, 128}, [2]int{3, 3}, true, 14, 1
	placement, shifted := stitchSpecimen(t, c, phantom.Storage{})
	d := phantom.Default()
	c.Bowl, c.Speckle, c.Floor, c.Vignette = d.Bowl, d.Speckle, d.Floor, d.Vignette
	everything, noisy := stitchSpecimen(t, c, phantom.Storage{})
	mosaics := map[*phantom.Specimen]*ngff.Image{placement: shifted, everything: noisy}
	asTheyAre, refined := Options{Overlap: 0.2}, Options{Overlap: 0.2, MaxRefinement: 4}
	between := refined
	between.Interpolate = true
	for _, r := range []struct {
		name     string
		specimen *phantom.Specimen
		blending canvas.Blending
		opt      Options
		overlaps float64
		jumps    float64
	}{
		{"as they are", placement, canvas.BlendNone, asTheyAre, 1.07, 1.10},
		{"as they are", placement, canvas.BlendAverage, asTheyAre, 0.81, 0.65},
		{"as they are", placement, canvas.BlendFeather, asTheyAre, 0.93, 0.21},
		{"as they are", placement, canvas.BlendDiffusion, asTheyAre, 0.92, 0.21},
		{"refined", placement, canvas.BlendNone, refined, 0.43, 0.35},
		{"refined", placement, canvas.BlendAverage, refined, 0.36, 0.22},
		{"refined", placement, canvas.BlendFeather, refined, 0.39, 0.09},
		{"refined", placement, canvas.BlendDiffusion, refined, 0.39, 0.09},
		{"interpolated", placement, canvas.BlendNone, between, 0.07, 0.07},
		{"interpolated", placement, canvas.BlendAverage, between, 0.06, 0.09},
		{"interpolated", placement, canvas.BlendFeather, between, 0.06, 0.02},
		{"interpolated", placement, canvas.BlendDiffusion, between, 0.06, 0.02},
		{"with noise, as they are", everything, canvas.BlendNone, asTheyAre, 15.0, 9.9},
		{"with noise, as they are", everything, canvas.BlendDiffusion, asTheyAre, 15.8, 9.8},
		{"with noise, interpolated", everything, canvas.BlendNone, between, 13.9, 7.1},
		{"with noise, interpolated", everything, canvas.BlendDiffusion, between, 15.1, 5.9},
	} {
		r.opt.Blending = r.blending
		overlaps, jumps := stitchError(t, r.specimen, mosaics[r.specimen], r.opt)
		t.Logf("%-24s %-9s overlaps %5.2f %%, jumps %5.2f %%", r.name, r.blending, overlaps, jumps)
		if overlaps > 1.02*r.overlaps+0.005 || jumps > 1.02*r.jumps+0.005 {
			t.Errorf("%s, %s: %.2f %% in overlaps, jumps of %.2f %%; stated are %.2f %% and %.2f %%", r.name, r.blending, overlaps, jumps, r.overlaps, r.jumps)
		}
	}
}
