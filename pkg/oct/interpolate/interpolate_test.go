package interpolate

import (
	"encoding/json"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"strata/pkg/dtype"
	"strata/pkg/filter"
	"strata/pkg/ngff"
	"strata/pkg/oct"
	"strata/pkg/zarr/store"
	"strata/tests/golden"
	"strata/tests/octtest"
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

// disc is a slice whose planes show a textured disc, with 0 around it, that moves by (2, 1) pixels per plane gap.
func disc(t *testing.T, shape [3]int, dy, dx float64) *ngff.Image {
	t.Helper()
	im, _ := octtest.Made(t, shape[:], []int{4, 16, 16}, nil, nil, func(i int) float32 {
		x, y := float64(i%shape[2])-dx, float64(i/shape[2]%shape[1])-dy
		if math.Hypot(x-30, y-28) > 20 {
			return 0
		}
		return float32(100 + 40*math.Sin(x/3)*math.Cos(y/4) + 30*math.Sin((x+y)/7))
	})
	return im
}

// The voxels depend neither on workers, nor on memory, nor on chunks, by any method.
func TestSameVoxels(t *testing.T) {
	before, after := disc(t, [3]int{9, 60, 64}, 0, 0), disc(t, [3]int{7, 63, 58}, 2, 3)
	for _, o := range []Options{{Method: Average}, {Method: Weighted}, {Method: ZMorph, Blend: Gaussian}, {Method: ZMorph, Blend: Linear}} {
		all := DefaultOptions()
		all.Method, all.Blend = o.Method, o.Blend
		var first []float32
		for _, res := range []oct.Resources{{Workers: 1, Mem: 64 << 20}, {Workers: 4, Mem: 64 << 20}, {Workers: 3, Mem: 1 << 20}} {
			for _, chunks := range [][]int{nil, {7, 21, 32}} {
				p, err := Decide(octtest.Ctx, before, after, all, res)
				if err != nil || p.Skipped != "" {
					t.Fatal(err, p.Skipped, p.Found)
				}
				a := written(t, p, oct.Layout{Chunks: chunks}, res).Levels[0].Array
				if !slices.Equal(a.Shape(), []int{7, 63, 64}) {
					t.Fatalf("shape %v", a.Shape())
				}
				v := octtest.Read(t, a)
				if first == nil {
					first = v
				}
				octtest.SameBits(t, v, first)
			}
		}
	}
}

// A disc that lies 4 and 6 pixels further after the gap is in between half-way, at full brightness; the ends are the
// neighbours' planes.
func TestTruth(t *testing.T) {
	before, after := disc(t, [3]int{5, 64, 72}, 0, 0), disc(t, [3]int{5, 64, 72}, 4, 6)
	half := octtest.Read(t, disc(t, [3]int{1, 64, 72}, 2, 3).Levels[0].Array)
	for _, metric := range []filter.Metric{filter.MeanSquares, filter.Correlation, filter.MutualInformation} {
		for _, blend := range []Blend{Gaussian, Linear} {
			o := DefaultOptions()
			o.Metric, o.Blend = metric, blend
			p, err := Decide(octtest.Ctx, before, after, o, octtest.Small())
			if err != nil || p.Skipped != "" || !p.Found.Registered {
				t.Fatalf("%s: %v, %q, %+v", metric, err, p.Skipped, p.Found)
			}
			v := octtest.Read(t, written(t, p, oct.Layout{}, octtest.Small()).Levels[0].Array)
			sum, n := 0.0, 0
			for i, w := range half {
				if w > 0 && math.Hypot(float64(i%72)-33, float64(i/72)-30) < 17 {
					sum, n = sum+math.Abs(float64(v[2*64*72+i]-w)), n+1
				}
			}
			if mean := sum / float64(n); mean > 2.5 {
				t.Errorf("%s, %s: mean difference %.3g of values around 100", metric, blend, mean)
			}
			first, last := octtest.Read(t, before.Levels[0].Array), octtest.Read(t, after.Levels[0].Array)
			octtest.SameBits(t, v[:64*72], first[4*64*72:])
			octtest.SameBits(t, v[4*64*72:], last[:64*72])
		}
	}
}

func TestSkips(t *testing.T) {
	empty, _ := octtest.Made(t, []int{3, 64, 72}, []int{3, 16, 16}, nil, nil, func(int) float32 { return 0 })
	noise, _ := octtest.Made(t, []int{3, 64, 72}, []int{3, 16, 16}, nil, nil, func(i int) float32 { return float32((i * 7919 % 1009) * (i * 31 % 97)) })
	one := disc(t, [3]int{3, 64, 72}, 0, 0)
	for _, c := range []struct {
		after *ngff.Image
		want  string
	}{{empty, NoForeground}, {noise, LowOverlap}} {
		p, err := Decide(octtest.Ctx, one, c.after, DefaultOptions(), octtest.Small())
		if err != nil || p.Skipped != c.want {
			t.Errorf("%v, skipped %q, want %s", err, p.Skipped, c.want)
			continue
		}
		text, err := p.Diagnostics(Paths{Before: "a", After: "b", Output: "c"})
		var d map[string]any
		if err != nil || json.Unmarshal(text, &d) != nil || d["fallback_reason"] != c.want || d["output_path"] != nil || d["method_used"] != nil || d["interpolation_failed"] != true {
			t.Errorf("%v: %s", err, text)
		}
		if _, there := d["top_boundary_residual_mean"]; there {
			t.Errorf("residuals of a gap that stays: %s", text)
		}
	}
	other := disc(t, [3]int{3, 64, 72}, 0, 0)
	other.VoxelSize[1] = 9
	if _, err := Decide(octtest.Ctx, one, other, DefaultOptions(), octtest.Small()); err == nil || !strings.Contains(err.Error(), "voxel size is 9 µm along y") {
		t.Errorf("other voxels: %v", err)
	}
	if _, err := Decide(octtest.Ctx, one, one, DefaultOptions(), oct.Resources{Workers: 1, Mem: 1 << 10}); err == nil || !strings.Contains(err.Error(), "--mem grants") {
		t.Errorf("too little memory: %v", err)
	}
}
