package beamprofile

import (
	"encoding/json"
	"errors"
	"math"
	"slices"
	"testing"

	"strata/pkg/dtype"
	"strata/pkg/metrics"
	"strata/pkg/ngff"
	"strata/pkg/oct"
	"strata/pkg/zarr/store"
	"strata/tests/golden"
	"strata/tests/octtest"
)

// The profile and the volume are those of the golden set, whatever the workers, the memory and the chunks.
func TestBeamProfileGolden(t *testing.T) {
	for _, c := range golden.Cases(t, "psf") {
		t.Run(c.Name, func(t *testing.T) {
			var p struct {
				Percentile float64 `json:"percentile_max"`
				Fit        bool    `json:"fit_gaussian"`
			}
			var file struct {
				Planes    []int   `json:"plane_index"`
				Coverage  float64 `json:"agarose_coverage"`
				Tolerance struct {
					PSF    struct{ Rel, Abs float64 }
					Volume struct {
						Rel, Abs float64
						Int      float64 `json:"int_abs"`
					}
				}
			}
			p.Percentile = 100
			if err := errors.Join(json.Unmarshal(c.Params, &p), json.Unmarshal(c.File, &file)); err != nil {
				t.Fatal(err)
			}
			in := octtest.Open(t, store.Folder(golden.Image(t, c)))
			o := Options{PercentileMax: p.Percentile, FitGaussian: p.Fit}
			var first *ngff.Image
			for _, run := range []struct {
				workers int
				mem     int64
				chunks  []int
			}{{1, 64 << 20, nil}, {3, 64 << 20, []int{5, 20, 32}}, {2, 5 << 20, nil}} {
				im, r, err := Run(octtest.Ctx, in, store.Memory(), o, oct.Layout{Chunks: run.chunks}, oct.Resources{Workers: run.workers, Mem: run.mem})
				if err != nil {
					t.Fatal(err)
				}
				if first != nil {
					octtest.SameArrays(t, im, first)
					continue
				}
				first = im
				for z, want := range octtest.Numbers(c.Arrays["psf"]) {
					if math.Abs(r.PSF[z]-want) > file.Tolerance.PSF.Abs+file.Tolerance.PSF.Rel*want {
						t.Errorf("plane %d: %v, want %v", z, r.PSF[z], want)
					}
				}
				if r.Agarose.Coverage() != file.Coverage {
					t.Errorf("coverage %v, want %v", r.Agarose.Coverage(), file.Coverage)
				}
				for i, want := range octtest.Numbers(c.Arrays["agarose_mask"]) {
					if r.Agarose.Lines[i] != (want != 0) {
						t.Errorf("A-line %d is agarose: %v", i, r.Agarose.Lines[i])
					}
				}
				a := im.Levels[0].Array
				if a.DType() != in.Levels[0].Array.DType() {
					t.Errorf("data type %v", a.DType())
				}
				got, area := octtest.Values(t, a), len(r.Agarose.Lines)
				for k, want := range octtest.Numbers(c.Arrays["volume_planes"]) {
					tol := file.Tolerance.Volume.Abs + file.Tolerance.Volume.Rel*want
					if a.DType() != dtype.Float32 {
						tol, want = 0, math.RoundToEven(want)
					}
					if v := got[file.Planes[k/area]*area+k%area]; math.Abs(v-want) > tol {
						t.Fatalf("plane %d, pixel %d: %v, want %v", file.Planes[k/area], k%area, v, want)
					}
				}
			}
		})
	}
}

// slice is a volume with agarose (1, times the beam) beside tissue (10, times the beam), below two planes of water.
func slice(t *testing.T, beam []float32, change func(v []float32)) *ngff.Image {
	shape := []int{len(beam), 8, 10}
	v := octtest.Made3(shape, func(i int) float32 {
		if i%10 < 5 {
			return beam[i/80]
		}
		return 10 * beam[i/80]
	})
	change(v)
	return octtest.MosaicOf(t, ngff.ImageSpec{Shape: shape, Chunks: []int{3, 4, 4}}, v)
}

func run(t *testing.T, in *ngff.Image, o Options) ([]float32, *Result, []string) {
	t.Helper()
	var warnings []string
	res := octtest.Small()
	res.Warn = func(m string) { warnings = append(warnings, m) }
	im, r, err := Run(octtest.Ctx, in, store.Memory(), o, oct.Layout{}, res)
	if err != nil {
		t.Fatal(err)
	}
	if text, err := r.Step("a", "b", o).JSON(); err != nil || !json.Valid(text) {
		t.Errorf("metrics %s, %v", text, err)
	}
	return octtest.Read(t, im.Levels[0].Array), r, warnings
}

// The agarose of each plane is as bright as in the faintest, of the planes that count.
func TestLevels(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	beam := []float32{1, 1, 4, 8, 6, 5, 2}
	for below, level := range map[int][]float32{0: {1, 1, 1, 1, 1, 1, 1}, 2: {1, 1, 2, 2, 2, 2, 2}} {
		v, r, warnings := run(t, slice(t, beam, func(v []float32) { v[0], v[85], v[161], v[9] = nan, inf, nan, -inf }), Options{PercentileMax: 100, Below: below})
		for i, f := range v {
			want := level[i/80]
			if i%10 >= 5 {
				want *= 10
			}
			switch i {
			case 0, 161:
				want = nan
			case 85:
				want = inf
			case 9:
				want = -inf
			}
			if f != want && (f == f || want == want) {
				t.Fatalf("below %d: voxel %d: %v, want %v", below, i, f, want)
			}
		}
		if len(warnings) > 0 || r.Peak != 3 || r.Agarose.Coverage() != 0.5 || r.quality() != "warning" {
			t.Errorf("%v, peak %d, %s", warnings, r.Peak, r.quality())
		}
	}
}

// Without the water's signal, tissue and agarose have the same ratio at all depths, whatever the detector adds to both;
// planes above --below stay, and those of the water remain dark.
func TestSubtract(t *testing.T) {
	beam := []float32{0, 0, 4, 8, 6, 4, 0.25}
	add := func(v []float32) {
		for i := range v {
			v[i] += 2
		}
	}
	divisors := []float64{0.5, 0.5, 0.5, 1, 0.75, 0.5, leastSignal}
	for _, below := range []int{0, 1} {
		v, r, warnings := run(t, slice(t, beam, add), Options{PercentileMax: 100, Below: below, Subtract: true})
		if len(warnings) > 0 || r.Floor != 2 {
			t.Fatalf("%v, floor %v", warnings, r.Floor)
		}
		for i, f := range v {
			z := i / 80
			want := float32(float64(beam[z]) / divisors[z])
			if i%10 >= 5 {
				want = float32(10 * float64(beam[z]) / divisors[z])
			}
			if z < below {
				want = 2
			}
			if math.Abs(float64(f-want)) > 1e-5 {
				t.Fatalf("below %d: voxel %d: %v, want %v", below, i, f, want)
			}
		}
	}
	// The faintest plane lies below the brightest, or is hardly fainter: there is no water.
	for name, beam := range map[string][]float32{"below": {4, 8, 6, 5, 2}, "bright": {5, 8, 7, 6, 6}} {
		v, r, warnings := run(t, slice(t, beam, func([]float32) {}), Options{PercentileMax: 100, Subtract: true})
		plain, _, _ := run(t, slice(t, beam, func([]float32) {}), Options{PercentileMax: 100})
		if len(warnings) != 1 || r.Floor != 0 || !slices.Equal(v, plain) {
			t.Errorf("%s: %v, floor %v", name, warnings, r.Floor)
		}
	}
}

// A profile that does not fall to half of its peak is no Gaussian and stays; one that does becomes one.
func TestFit(t *testing.T) {
	flat := []float32{1, 2, 4, 8, 8, 8, 8}
	_, plain, _ := run(t, slice(t, flat, func([]float32) {}), Options{PercentileMax: 100})
	_, fit, _ := run(t, slice(t, flat, func([]float32) {}), Options{PercentileMax: 100, FitGaussian: true})
	for z := range flat {
		if fit.PSF[z] != plain.PSF[z] {
			t.Errorf("plane %d: %v, want %v", z, fit.PSF[z], plain.PSF[z])
		}
	}
	_, fit, _ = run(t, slice(t, []float32{1, 2, 4, 9, 7, 3, 2}, func([]float32) {}), Options{PercentileMax: 100, FitGaussian: true})
	for z, want := range []float64{8 * math.Pow(2, -2.25), 8 * math.Pow(2, -1), 8 * math.Pow(2, -0.25), 8, 8 * math.Pow(2, -0.25), 8 * math.Pow(2, -1), 8 * math.Pow(2, -2.25)} {
		if math.Abs(fit.PSF[z]-want) > 1e-12 {
			t.Errorf("plane %d: %v, want %v", z, fit.PSF[z], want)
		}
	}
}

// Without a profile the volume stays as it is, with a warning.
func TestNothing(t *testing.T) {
	nan := float32(math.NaN())
	for name, value := range map[string]float32{"constant": 7, "dark": 0, "NaN": nan, "negative": -2} {
		v, r, warnings := run(t, slice(t, []float32{1, 2, 3}, func(v []float32) {
			for i := range v {
				v[i] = value
			}
		}), Options{PercentileMax: 99.9})
		if len(warnings) != 1 || r.Agarose.Count > 0 {
			t.Errorf("%s: %v", name, warnings)
		}
		for i, f := range v {
			if f != value && (f == f || value == value) {
				t.Fatalf("%s: voxel %d: %v", name, i, f)
			}
		}
		if got := r.Step("", "", Options{}).Status(); got != metrics.Error {
			t.Errorf("%s: status %s", name, got)
		}
	}
	if _, _, err := Run(octtest.Ctx, slice(t, []float32{1, 2}, func([]float32) {}), store.Memory(), Options{Below: 2}, oct.Layout{}, octtest.Small()); !errors.Is(err, oct.ErrLayout) {
		t.Errorf("below the last plane: %v", err)
	}
}
