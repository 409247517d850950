package normalize

import (
	"encoding/json"
	"math"
	"slices"
	"testing"

	"strata/pkg/metrics"
	"strata/pkg/ngff"
	"strata/pkg/oct"
	"strata/pkg/zarr/store"
	"strata/tests/golden"
	"strata/tests/octtest"
)

// The numbers are linumpy's, whatever the workers, the memory and the chunks.
func TestNormalizeGolden(t *testing.T) {
	for _, c := range golden.Cases(t, "normalize") {
		t.Run(c.Name, func(t *testing.T) {
			o := Options{PercentileMax: 99.9, SpanPercentile: 90, Sigma: 1}
			var p struct {
				Percentile *float64 `json:"percentile_max"`
				Sigma      *float64
			}
			var file struct {
				Planes    []int `json:"plane_index"`
				Tolerance struct {
					Volume struct{ Rel, Abs float64 }
					Otsu   float64 `json:"otsu_rel"`
					Agar   float64 `json:"agarose_coverage_abs"`
				}
				Metrics struct {
					Metrics map[string]struct{ Value any }
				}
			}
			if err := json.Unmarshal(c.Params, &p); err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal(c.File, &file); err != nil {
				t.Fatal(err)
			}
			if p.Percentile != nil {
				o.PercentileMax, o.Sigma = *p.Percentile, *p.Sigma
			}
			in := octtest.Open(t, store.Folder(golden.Image(t, c)))
			var first []float32
			for _, run := range []struct {
				workers int
				mem     int64
				chunks  []int
			}{{1, 64 << 20, nil}, {3, 64 << 20, []int{5, 20, 32}}, {2, 3 << 20, nil}} {
				layout := oct.Layout{Chunks: run.chunks}
				im, r, err := Run(octtest.Ctx, in, store.Memory(), o, layout, oct.Resources{Workers: run.workers, Mem: run.mem})
				if err != nil {
					t.Fatal(err)
				}
				got := octtest.Read(t, im.Levels[0].Array)
				if first != nil {
					octtest.SameBits(t, got, first)
					continue
				}
				first = got
				area := r.Shape[1] * r.Shape[2]
				tol := file.Tolerance.Volume
				for k, want := range octtest.Numbers(c.Arrays["volume_planes"]) {
					v := float64(got[file.Planes[k/area]*area+k%area])
					if math.Abs(v-want) > tol.Abs+tol.Rel*math.Abs(want) {
						t.Fatalf("plane %d, pixel %d: %v, want %v", file.Planes[k/area], k%area, v, want)
					}
				}
				for z, want := range octtest.Numbers(c.Arrays["mean_per_plane"]) {
					sum := 0.0
					for _, f := range got[z*area:][:area] {
						sum += float64(f)
					}
					if mean := sum / float64(area); math.Abs(mean-want) > tol.Abs+tol.Rel*math.Abs(want) {
						t.Errorf("plane %d: mean %v, want %v", z, mean, want)
					}
				}
				for z, want := range octtest.Numbers(c.Arrays["background"]) {
					if v := float64(r.Background[z]); math.Abs(v-want) > 1e-6*want {
						t.Errorf("plane %d: background %v, want %v", z, v, want)
					}
				}
				s := r.Step("a", "b", o)
				for name, tol := range map[string]float64{"agarose_coverage": file.Tolerance.Agar, "mean_background": 1e-4, "std_background": 1e-4,
					"otsu_threshold": file.Tolerance.Otsu * r.Agarose.Threshold} {
					m, _ := s.Metric(name)
					want := file.Metrics.Metrics[name].Value.(float64)
					if v := m.Value.(float64); math.Abs(v-want) > tol {
						t.Errorf("%s: %v, want %v", name, v, want)
					}
				}
				if c.Name == "f32" && s.Status() != metrics.OK {
					t.Errorf("a good slice is %q: %v %v", s.Status(), s.Warnings, s.Errors)
				}
			}
		})
	}
}

// With 100 the largest span becomes 1: the golden volume, divided by its largest voxel. The brightest plane of the
// golden slice is above 1.
func TestLargestSpanGolden(t *testing.T) {
	for _, c := range golden.Cases(t, "normalize") {
		if c.Name != "f32" {
			continue
		}
		var file struct {
			Planes []int `json:"plane_index"`
		}
		if err := json.Unmarshal(c.File, &file); err != nil {
			t.Fatal(err)
		}
		largest := slices.Max(octtest.Numbers(c.Arrays["max_per_plane"]))
		if !(largest > 1.01) {
			t.Fatalf("the golden slice has nothing above 1: %v", largest)
		}
		for _, memory := range []int64{64 << 20, 3 << 20} {
			im, _, err := Run(octtest.Ctx, octtest.Open(t, store.Folder(golden.Image(t, c))), store.Memory(),
				Options{PercentileMax: 99.9, SpanPercentile: 100, Sigma: 1}, oct.Layout{}, oct.Resources{Workers: 2, Mem: memory})
			if err != nil {
				t.Fatal(err)
			}
			got := octtest.Read(t, im.Levels[0].Array)
			if top := slices.Max(got); top != 1 {
				t.Errorf("in %d bytes: the largest voxel is %v, want 1", memory, top)
			}
			area := im.Levels[0].Array.Shape()[1] * im.Levels[0].Array.Shape()[2]
			for k, want := range octtest.Numbers(c.Arrays["volume_planes"]) {
				if v := float64(got[file.Planes[k/area]*area+k%area]); math.Abs(v-want/largest) > 5e-6 {
					t.Fatalf("plane %d, pixel %d: %v, want %v", file.Planes[k/area], k%area, v, want/largest)
				}
			}
		}
	}
}

// halves is a volume of agarose (10) beside tissue (100), as float32.
func halves(t *testing.T, change func(v []float32)) *ngff.Image {
	shape := []int{4, 8, 10}
	v := octtest.Made3(shape, func(i int) float32 {
		if i%10 < 5 {
			return 10
		}
		return 100
	})
	change(v)
	return octtest.MosaicOf(t, ngff.ImageSpec{Shape: shape, Chunks: []int{2, 4, 4}}, v)
}

func TestEdgeCases(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	run := func(in *ngff.Image) ([]float32, *Result, []string) {
		t.Helper()
		var warnings []string
		res := octtest.Small()
		res.Warn = func(m string) { warnings = append(warnings, m) }
		im, r, err := Run(octtest.Ctx, in, store.Memory(), Options{PercentileMax: 99.9, SpanPercentile: 90}, oct.Layout{}, res)
		if err != nil {
			t.Fatal(err)
		}
		return octtest.Read(t, im.Levels[0].Array), r, warnings
	}
	v, r, warnings := run(halves(t, func(v []float32) {
		v[0], v[9], v[89], v[81] = nan, nan, inf, -inf
		for i := range 10 { // an A-line in each row: no data
			v[2*80+i], v[3*80+i] = nan, nan
		}
	}))
	if len(warnings) > 0 || r.Divisor != 90 || r.Background[1] != 10 || r.Agarose.Count != 40 {
		t.Errorf("%v, divisor %v, background %v, %d A-lines of agarose", warnings, r.Divisor, r.Background, r.Agarose.Count)
	}
	for i, f := range v {
		want := float32(i % 10 / 5)
		switch {
		case i == 0, i == 9, i >= 160 && i < 170, i >= 240 && i < 250:
			want = nan
		case i == 81:
			want = 0
		case i == 89:
			want = 1
		}
		if f != want && (f == f || want == want) {
			t.Errorf("voxel %d: %v, want %v", i, f, want)
		}
	}
	for name, change := range map[string]func(v []float32){
		"constant": func(v []float32) { fill(v, 7) }, "dark": func(v []float32) { fill(v, 0) }, "NaN": func(v []float32) { fill(v, nan) },
	} {
		v, r, warnings := run(halves(t, change))
		if len(warnings) != 1 || r.Agarose.Count != 0 {
			t.Errorf("%s: warnings %v, %d A-lines of agarose", name, warnings, r.Agarose.Count)
		}
		for i, f := range v {
			if want := map[string]float32{"constant": 1, "dark": 0, "NaN": nan}[name]; f != want && (f == f || want == want) {
				t.Fatalf("%s: voxel %d is %v", name, i, f)
			}
		}
		if text, err := r.Step("a", "b", Options{}).JSON(); err != nil || !json.Valid(text) {
			t.Errorf("%s: metrics %s, %v", name, text, err)
		}
	}
}

func fill(v []float32, by float32) {
	for i := range v {
		v[i] = by
	}
}
