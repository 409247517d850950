package stitch

import (
	"encoding/json"
	"math"
	"slices"
	"testing"

	"strata/pkg/oct"
	"strata/pkg/oct/stitch/affine"
	"strata/pkg/oct/stitch/canvas"
	"strata/pkg/zarr/store"
	"strata/tests/golden"
	"strata/tests/octtest"
)

// stitchGolden is what a golden case of stitch has besides arrays.
type stitchGolden struct {
	Params struct {
		Overlap     float64
		Blending    string
		Interpolate bool
		Transform   *affine.Matrix
		Estimate    bool
		Refinement  float64 `json:"max_refinement_px"`
	}
	Size          [2]int   `json:"size_px"`
	First         [][4]int `json:"first_px"` // i, j, y, x
	Matrix        affine.Matrix
	MatrixSkimage affine.Matrix `json:"matrix_skimage"`
	Tolerance     struct {
		Weight      float64 `json:"weight_abs"`
		Step        float64 `json:"step_px"`
		StepSkimage float64 `json:"step_skimage_px"`
		Position    float64 `json:"position_px"`
	}
}

// stitched runs a golden case.
func stitched(t *testing.T, c golden.Case) (g stitchGolden, s *Result, level0 []float64) {
	t.Helper()
	if err := json.Unmarshal(c.File, &g); err != nil {
		t.Fatal(err)
	}
	opt := Options{Overlap: g.Params.Overlap, Blending: canvas.Blending(g.Params.Blending), Interpolate: g.Params.Interpolate,
		Estimate: g.Params.Estimate, MaxRefinement: g.Params.Refinement}
	if g.Params.Transform != nil {
		opt.Transform = *g.Params.Transform
	}
	out, s, err := Run(octtest.Ctx, octtest.Open(t, store.Folder(golden.Input(t, c))), store.Memory(), oct.Layout{}, opt, octtest.Small())
	if err != nil {
		t.Fatal(err)
	}
	return g, s, octtest.Values(t, out.Levels[0].Array)
}

// The fused voxels are those of numpy, scipy's interpolation and, for diffusion,
// Laplace's equation solved directly by scipy's sparse LU.
func TestStitchGoldenFusion(t *testing.T) {
	for _, c := range golden.Cases(t, "stitch") {
		if _, fused := c.Arrays["level0"]; !fused {
			continue
		}
		t.Run(c.Name, func(t *testing.T) {
			g, s, got := stitched(t, c)
			if s.Size != g.Size {
				t.Fatalf("size %v, want %v", s.Size, g.Size)
			}
			for _, f := range g.First {
				i := slices.IndexFunc(s.Tiles, func(p TilePlan) bool { return p.Tile == [2]int{f[0], f[1]} })
				if i < 0 {
					t.Fatalf("no tile %v", f[:2])
				}
				at := [2]int{int(math.RoundToEven(s.Tiles[i].Position[0])) - s.Origin[0], int(math.RoundToEven(s.Tiles[i].Position[1])) - s.Origin[1]}
				if at != [2]int{f[2], f[3]} {
					t.Errorf("tile %v begins at %v of the slice, want %v", f[:2], at, f[2:])
				}
			}
			want := octtest.Numbers(c.Arrays["level0"])
			var span []float64
			if a, ok := c.Arrays["span"]; ok {
				span = octtest.Numbers(a)
			}
			off, nans, worst := 0, 0, 0.0
			for i, w := range want {
				limit := c.Tolerance.Abs + c.Tolerance.Rel*math.Abs(w)
				if span != nil {
					limit += g.Tolerance.Weight * span[i]
				}
				d := math.Abs(got[i] - w)
				switch {
				case math.IsNaN(w) != math.IsNaN(got[i]):
					nans++
				case d > limit:
					off, worst = off+1, max(worst, d)
				}
			}
			if len(got) != len(want) || nans > 0 || float64(off) > c.Tolerance.Off*float64(len(want)) {
				t.Errorf("%d of %d voxels differ, by up to %v; %d are NaN on one side", off, len(want), worst, nans)
			}
		})
	}
}

// Tiles that ITK cut from one image at known positions are found there; where
// scikit-image's phase correlation finds them is near.
func TestStitchGoldenEstimation(t *testing.T) {
	for _, c := range golden.Cases(t, "stitch") {
		places, ok := c.Arrays["position_px"]
		if !ok {
			continue
		}
		t.Run(c.Name, func(t *testing.T) {
			g, s, _ := stitched(t, c)
			for axis := range 2 {
				nominal := float64(s.Tile[axis]) * (1 - g.Params.Overlap)
				for k := range 2 {
					got := s.Transform.Matrix[k][axis]
					if d := math.Abs(got-g.Matrix[k][axis]) * nominal; !(d <= g.Tolerance.Step) {
						t.Errorf("element %d,%d of M is %v, %.3f px a step from the truth %v", k, axis, got, d, g.Matrix[k][axis])
					}
					if d := math.Abs(got-g.MatrixSkimage[k][axis]) * nominal; !(d <= g.Tolerance.StepSkimage) {
						t.Errorf("element %d,%d of M is %v, %.3f px a step from scikit-image's %v", k, axis, got, d, g.MatrixSkimage[k][axis])
					}
				}
			}
			at, n := octtest.Numbers(places), len(s.Tiles)
			var mean [2]float64 // the origin is nobody's
			for i, p := range s.Tiles {
				for axis := range 2 {
					mean[axis] += (p.Position[axis] - at[2*i+axis]) / float64(n)
				}
			}
			for i, p := range s.Tiles {
				for axis := range 2 {
					if d := p.Position[axis] - at[2*i+axis] - mean[axis]; !(math.Abs(d) <= g.Tolerance.Position) {
						t.Errorf("tile %v is %.3f px off along axis %d", p.Tile, d, axis)
					}
				}
			}
		})
	}
}
