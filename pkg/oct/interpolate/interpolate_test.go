package interpolate

import (
	"encoding/json"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"strata/pkg/dtype"
	"strata/pkg/ngff"
	"strata/pkg/oct"
	"strata/pkg/oct/octtest"
	"strata/pkg/zarr/store"
	"strata/tests/golden"
)

// goldenCase is what a case expects, besides arrays.
type goldenCase struct {
	Interpolated bool
	Fix          string
	Plane        []int `json:"plane_index"`
	Diagnostics  struct {
		RefBefore *int          `json:"ref_before"`
		RefAfter  *int          `json:"ref_after"`
		Pre       *float64      `json:"pre_reg_ncc"`
		Post      *float64      `json:"post_reg_ncc"`
		Matrix    [2][2]float64 `json:"affine_matrix"`
		T         [2]float64    `json:"affine_translation"`
		C         *[2]float64   `json:"affine_center"`
	}
	Tolerance struct {
		Volume struct {
			Rel, Abs float64
			IntAbs   float64 `json:"int_abs"`
			MeanAbs  float64 `json:"mean_abs"`
			Off30    float64 `json:"max_fraction_off_by_30"`
		}
	}
	FixTolerance struct {
		MeanAbs float64 `json:"mean_abs"`
	} `json:"fix_tolerance"`
}

// options returns those of a case.
func options(t *testing.T, c golden.Case) Options {
	t.Helper()
	o := DefaultOptions()
	var p struct {
		Method Method
		Blend  Blend    `json:"blend_method"`
		Min    *float64 `json:"min_overlap_correlation"`
	}
	if err := json.Unmarshal(c.Params, &p); err != nil {
		t.Fatal(err)
	}
	o.Method = p.Method
	if p.Blend != "" {
		o.Blend = p.Blend
	}
	if p.Min != nil {
		o.MinCorrelation = *p.Min
	}
	return o
}

// pair opens the volumes of a case.
func pair(t *testing.T, c golden.Case) (before, after *ngff.Image) {
	t.Helper()
	var p struct{ Pair string }
	if err := json.Unmarshal(c.Params, &p); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(golden.Unpack(t, p.Pair), "pair")
	return octtest.Open(t, store.Folder(filepath.Join(dir, "slice_z04_normalize.ome.zarr"))), octtest.Open(t, store.Folder(filepath.Join(dir, "slice_z06_normalize.ome.zarr")))
}

func written(t *testing.T, p *Plan, layout oct.Layout, res oct.Resources) *ngff.Image {
	t.Helper()
	im, err := p.Run(octtest.Ctx, store.Memory(), layout, res)
	if err != nil {
		t.Fatal(err)
	}
	return im
}

func TestGolden(t *testing.T) {
	for _, c := range golden.Cases(t, "interpolate") {
		t.Run(c.Name, func(t *testing.T) {
			var want goldenCase
			if err := json.Unmarshal(c.File, &want); err != nil {
				t.Fatal(err)
			}
			before, after := pair(t, c)
			o := options(t, c)
			p, err := Decide(octtest.Ctx, before, after, o, octtest.Small())
			if err != nil {
				t.Fatal(err)
			}
			if f := p.Found; f != nil {
				d := want.Diagnostics
				t.Logf("%+v, map %+v, skipped %q", *f, f.Map, p.Skipped)
				if f.RefBefore != *d.RefBefore || f.RefAfter != *d.RefAfter || math.Abs(f.PlaneNCC-*d.Pre) > 1e-4 {
					t.Errorf("planes %d and %d correlate by %v, want %d, %d, %v", f.RefBefore, f.RefAfter, f.PlaneNCC, *d.RefBefore, *d.RefAfter, *d.Pre)
				}
			}
			switch {
			case strings.Contains(want.Fix, Implausible):
				if p.Skipped != Implausible {
					t.Errorf("skipped %q, want %s", p.Skipped, Implausible)
				}
				return
			case p.Skipped != "":
				t.Fatalf("skipped: %s", p.Skipped)
			case want.Fix == "" && o.Method == ZMorph:
				checkMap(t, p, want)
			}
			a := written(t, p, oct.Layout{Levels: 1}, octtest.Small()).Levels[0].Array
			checkPlanes(t, octtest.Values(t, a), octtest.Numbers(c.Arrays["volume_planes"]), want, a.Shape(), a.DType())
		})
	}
}

// checkMap compares the registered map with that of the reference.
func checkMap(t *testing.T, p *Plan, want goldenCase) {
	t.Helper()
	f, d := p.Found, want.Diagnostics
	if !f.Registered || math.Abs(f.RegisteredNCC-*d.Post) > 0.02 {
		t.Errorf("correlation after registration %v, want %v (used: %v)", f.RegisteredNCC, *d.Post, f.Registered)
	}
	for i := range 2 {
		if math.Abs(f.Map.T[i]-d.T[i]) > 0.3 || math.Abs(f.Map.C[i]-d.C[i]) > 0.01 {
			t.Errorf("translation %v about %v, want %v about %v", f.Map.T, f.Map.C, d.T, *d.C)
		}
		for j := range 2 {
			if math.Abs(f.Map.M[i][j]-d.Matrix[i][j]) > 0.01 {
				t.Errorf("matrix %v, want %v", f.Map.M, d.Matrix)
			}
		}
	}
	if f.Residual != [2]float64{} {
		t.Errorf("residuals at the ends %v", f.Residual)
	}
}

// checkPlanes compares planes of the volume with those of a case.
func checkPlanes(t *testing.T, got, expected []float64, want goldenCase, shape []int, of dtype.Type) {
	t.Helper()
	area := shape[1] * shape[2]
	if len(expected) != len(want.Plane)*area {
		t.Fatalf("shape %v for %d pixels expected", shape, len(expected))
	}
	sum, far, worst := 0.0, 0, 0.0
	for k, z := range want.Plane {
		for i, v := range expected[k*area:][:area] {
			d := math.Abs(got[z*area+i] - v)
			sum += d
			if d > 30 {
				far++
			}
			worst = max(worst, d-want.Tolerance.Volume.Rel*math.Abs(v))
		}
	}
	mean := sum / float64(len(expected))
	limit := want.Tolerance.Volume
	if want.Fix != "" {
		limit.MeanAbs = want.FixTolerance.MeanAbs
	}
	t.Logf("mean difference %.4g, largest %.4g, %d of %d beyond 30", mean, worst, far, len(expected))
	switch {
	case limit.MeanAbs > 0:
		if mean > limit.MeanAbs || limit.Off30 > 0 && float64(far) > limit.Off30*float64(len(expected)) {
			t.Errorf("mean difference %v, %d of %d beyond 30", mean, far, len(expected))
		}
	case of.String() == "float32" && worst > limit.Abs, worst > max(limit.IntAbs, limit.Abs):
		t.Errorf("differs by up to %v", worst)
	}
}

var _ = slices.Equal[[]int]
