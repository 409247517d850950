package stack

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"strata/pkg/dtype"
	"strata/pkg/ngff"
	"strata/pkg/oct"
	"strata/pkg/registration"
	"strata/pkg/zarr/codec"
	"strata/pkg/zarr/store"
	"strata/tests/octtest"
	"strata/tests/race"
)

// stored writes a slice and opens it.
func (s *oracleSlice) stored(t *testing.T, typ dtype.Type, format int, chunks, shard []int, codecName string, scale []float64) *ngff.Image {
	t.Helper()
	values := make([]float32, len(s.v))
	for i, v := range s.v {
		values[i] = float32(v)
	}
	data := make([]byte, len(s.v)*typ.Size())
	if err := dtype.Convert(data, typ, dtype.Bytes(values), dtype.Float32); err != nil {
		t.Fatal(err)
	}
	chain, err := codec.FromFlag(codecName, typ, format)
	if err != nil {
		t.Fatal(err)
	}
	st := store.Memory()
	w, err := ngff.Create(octtest.Ctx, st, "", ngff.ImageSpec{
		Format: format, Shape: []int{s.z, s.y, s.x}, Chunks: chunks, Shard: shard, DType: typ, Codecs: chain, Scale: scale,
		Axes: []ngff.Axis{{Name: "z", Type: ngff.TypeSpace, Unit: "micrometer"}, {Name: "y", Type: ngff.TypeSpace, Unit: "micrometer"}, {Name: "x", Type: ngff.TypeSpace, Unit: "micrometer"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.WriteTile(octtest.Ctx, []int{0, 0, 0}, []int{s.z, s.y, s.x}, data); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(octtest.Ctx); err != nil {
		t.Fatal(err)
	}
	return octtest.Open(t, st)
}

// write writes a transform as the files of a registration.
func (o *oracleTransform) write(t *testing.T, dir string) {
	t.Helper()
	put := func(name, text string) {
		if err := os.MkdirAll(dir, 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	put("transform.tfm", fmt.Sprintf("#Insight Transform File V1.0\n#Transform 0\nTransform: Euler2DTransform_double_2_2\nParameters: %v %v %v\nFixedParameters: %v %v\n", o.angle, o.tx, o.ty, o.cx, o.cy))
	if o.offsets != nil {
		put("offsets.txt", fmt.Sprintf("%d\n%d\n", o.offsets[0], o.offsets[1]))
	}
	if o.metrics {
		put("pairwise_registration_metrics.json", fmt.Sprintf(`{"overall_status": %q, "metrics": {"registration_confidence": {"value": %v}, "translation_x": {"value": %v},
 "translation_y": {"value": %v}, "z_correlation": {"value": %v}, "rotation": {"value": %v}}}`, o.status, o.conf, o.mtx, o.mty, o.zcorr, o.rot))
	}
}

func randomTransform(rng *rand.Rand, s, fixed *oracleSlice) *oracleTransform {
	t := &oracleTransform{angle: rng.NormFloat64() * 0.02, tx: rng.NormFloat64() * 2, ty: rng.NormFloat64() * 2, cx: float64(s.x) / 2, cy: float64(s.y) / 2, conf: 1}
	if rng.IntN(4) == 0 {
		t.angle, t.tx, t.ty = t.angle*0.01, t.tx*0.1, 0
	}
	if rng.IntN(2) == 0 {
		t.offsets = &[2]int{max(0, fixed.z-2-rng.IntN(6)), rng.IntN(3)}
		if rng.IntN(6) == 0 { // an overlap that may be larger than the slice
			t.offsets = &[2]int{0, rng.IntN(s.z)}
		}
	}
	if rng.IntN(5) > 0 {
		t.metrics, t.status = true, []string{"ok", "warning", "error"}[rng.IntN(3)]
		t.conf, t.mtx, t.mty, t.zcorr, t.rot = rng.Float64(), t.tx+0.25, t.ty-0.5, rng.Float64(), t.angle*180/math.Pi
	}
	return t
}

func randomOptions(rng *rand.Rand, step float64) Options {
	o := referenceOptions()
	coin := func(n int) bool { return rng.IntN(n) == 0 }
	o.PyramidResolutions = nil
	o.NoXYShift, o.Blend, o.UseExpectedOverlap = coin(4), !coin(4), coin(3)
	o.SlicingIntervalMM, o.SearchRangeMM = step/1000*(0.8+0.4*rng.Float64()), float64(rng.IntN(5))*10/1000
	o.MovingZFirstIndex = rng.IntN(3)
	if coin(3) {
		o.ZOverlapMinCorr = 0
	}
	if coin(3) {
		o.BlendRefinementPx = 1 + 4*rng.Float64()
	}
	o.BlendZRefineVox = rng.IntN(4)
	o.RotationOnly, o.SkipErrorTransforms, o.SkipWarningTransforms = coin(4), coin(2), coin(3)
	if coin(4) {
		o.MaxRotationDeg = 0
	}
	o.SmoothWindow = rng.IntN(5)
	if coin(3) {
		o.LoadMinZCorr, o.LoadMaxRotation = 0.3, 1.2
	}
	if coin(2) {
		o.AccumulateTranslations, o.ConfidenceWeightTranslations = true, coin(2)
		o.MaxPairwiseTranslation = float64(rng.IntN(2)) * 3
		o.TranslationSmoothSigma = float64(rng.IntN(3)) * 0.7
		o.MaxCumulativeDriftPx = float64(rng.IntN(2)) * 2
		if coin(3) {
			o.TranslationMinZCorr = 0
		}
	}
	return o
}

// Any slices, transforms and flags: what the plain way makes of them, whatever
// the workers, the memory and the storage.
func TestStackModel(t *testing.T) {
	race.Leave(t)
	trials := 40
	if testing.Short() {
		trials = 15
	}
	seen := map[string]int{}
	for trial := range trials {
		rng := rand.New(rand.NewPCG(uint64(trial), 77))
		sl := oracleSpecimen(rng, 2+rng.IntN(4), trial%3 == 0)
		var rows strings.Builder
		rows.WriteString("fixed_id,moving_id,x_shift_mm,y_shift_mm\n")
		shifts := map[[2]int][2]float64{}
		auto, manual := t.TempDir(), t.TempDir()
		config := map[int]registration.SliceConfig{}
		for i, s := range sl[1:] {
			d := [2]float64{math.Round(rng.NormFloat64()*200) / 10000, math.Round(rng.NormFloat64()*200) / 10000}
			if rng.IntN(6) > 0 {
				shifts[[2]int{sl[i].id, s.id}] = d
				fmt.Fprintf(&rows, "%d,%d,%v,%v\n", sl[i].id, s.id, d[0], d[1])
			}
			if trial%2 == 0 {
				if rng.IntN(4) > 0 {
					s.auto = randomTransform(rng, s, sl[i])
					s.auto.write(t, filepath.Join(auto, fmt.Sprintf("slice_z%02d", s.id)))
				}
				if rng.IntN(5) == 0 {
					s.manual = randomTransform(rng, s, sl[i])
					s.manual.write(t, filepath.Join(manual, fmt.Sprintf("z%d", s.id)))
				}
				if rng.IntN(5) == 0 {
					s.configSkip = true
					config[s.id] = registration.SliceConfig{Use: rng.IntN(2) == 0, AutoExcluded: true}
				}
			}
		}
		opt := randomOptions(rng, 60)
		want := oracleStack(sl, shifts, [3]float64{10, 10, 10}, opt)

		for variant := range 2 {
			var in Input
			var err error
			if in.Shifts, err = registration.ReadShifts(strings.NewReader(rows.String()), "shifts"); err != nil {
				t.Fatal(err)
			}
			if in.Transforms, err = registration.OpenFolder(auto); err != nil {
				t.Fatal(err)
			}
			if in.Manual, err = registration.OpenFolder(manual); err != nil {
				t.Fatal(err)
			}
			in.Config = config
			for _, s := range sl {
				typ, format, chunks := dtype.Float32, 2, []int{s.z, 8, 9}
				var shard []int
				name := "raw"
				if variant == 1 {
					typ = []dtype.Type{dtype.Uint16, dtype.Float64, dtype.Int32, dtype.Float32}[rng.IntN(4)]
					format, name = 3, []string{"raw", "blosc-zstd:1", "zstd:1"}[rng.IntN(3)]
					chunks = []int{1 + rng.IntN(4), 5 + rng.IntN(20), 5 + rng.IntN(20)}
					shard = []int{chunks[0] * 2, chunks[1], chunks[2] * 3}
				}
				in.Slices = append(in.Slices, Slice{s.id, fmt.Sprintf("slice %d", s.id), s.stored(t, typ, format, chunks, shard, name, []float64{10, 10, 10})})
			}
			res := oct.Resources{Workers: 1 + 3*variant, Mem: 64 << 20}
			layout := oct.Layout{Chunks: []int{3, 10, 12}, Codec: "raw"}
			if variant == 1 { // just enough memory
				res.Mem = leastMemory(t, in, opt, layout, res)
			}
			got, err := Run(octtest.Ctx, in, opt, store.Memory(), layout, res)
			if err != nil {
				t.Fatalf("trial %d, %+v: %v", trial, opt, err)
			}
			compareStack(t, trial, opt, got, want, seen)
			if t.Failed() {
				return
			}
		}
	}
	t.Log(seen)
	for _, key := range []string{"gain", "refined", "fallback", "corrected", "manual", "full", "rotation", "identity", "skip", "less blended"} {
		if seen[key] == 0 && !testing.Short() {
			t.Errorf("no trial had %s", key)
		}
	}
}

// leastMemory is about the least memory that a stack takes.
func leastMemory(t *testing.T, in Input, opt Options, layout oct.Layout, res oct.Resources) int64 {
	t.Helper()
	lo, hi := int64(1<<10), res.Mem
	for hi > lo+lo/8 {
		res.Mem = (lo + hi) / 2
		if _, err := Run(octtest.Ctx, in, opt, store.Memory(), layout, res); err == nil {
			hi = res.Mem
		} else if strings.Contains(err.Error(), "--mem grants") {
			lo = res.Mem
		} else {
			t.Fatal(err)
		}
	}
	return hi
}

func compareStack(t *testing.T, trial int, opt Options, got *Result, want *oracleResult, seen map[string]int) {
	t.Helper()
	bad := func(format string, args ...any) {
		t.Helper()
		t.Errorf("trial %d: %s (%+v)", trial, fmt.Sprintf(format, args...), opt)
	}
	for i, w := range want.matches {
		m := got.Matches[i]
		if math.Abs(m.Correlation-w.Correlation) > 1e-6 {
			bad("correlation %d is %v, want %v", i, m.Correlation, w.Correlation)
		}
		m.Correlation = w.Correlation
		if m != w {
			bad("match %d is %+v, want %+v", i, m, w)
			return
		}
		if w.Fallback {
			seen["fallback"]++
		}
		if w.Blend < w.Overlap {
			seen["less blended"]++
		}
	}
	for i, w := range want.decisions {
		d := got.Decisions[i]
		if !d.Loaded {
			d.Confidence = 0
		}
		d.Correlation = w.Correlation
		if d != w {
			bad("decision %d is %+v, want %+v", i, d, w)
			return
		}
		if w.Manual {
			seen["manual"]++
		}
		if w.Overlap != want.matches[i].Overlap || w.Blend != want.matches[i].Blend {
			seen["corrected"]++
		}
	}
	for id, w := range want.actions {
		if got.Actions[id] != w {
			bad("transform of slice %d: %s, want %s", id, got.Actions[id], w)
		}
		seen[w]++
	}
	for id, w := range want.gains {
		if math.Abs(got.Gains[id]-w) > 1e-5 {
			bad("gain of slice %d is %v, want %v", id, got.Gains[id], w)
		}
		seen["gain"]++
	}
	for id, w := range want.refined {
		if got.Refinements[id] != w {
			bad("slice %d is moved by %v, want %v", id, got.Refinements[id], w)
		}
		seen["refined"]++
	}
	if len(got.Gains) != len(want.gains) || len(got.Refinements) != len(want.refined) {
		bad("gains %v and refinements %v, want %v and %v", got.Gains, got.Refinements, want.gains, want.refined)
	}
	if got.Shape != [3]int{want.nz, want.ny, want.nx} {
		bad("shape %v, want %v", got.Shape, []int{want.nz, want.ny, want.nx})
		return
	}
	v := octtest.Read(t, got.Image.Levels[0].Array)
	if !slices.Equal(got.Image.Levels[0].Array.Shape(), got.Shape[:]) {
		bad("level 0 has shape %v, want %v", got.Image.Levels[0].Array.Shape(), got.Shape)
	}
	off := 0
	for i, w := range want.v {
		if math.Abs(float64(v[i])-w) > 1e-4*math.Abs(w)+1e-3 {
			if off++; off == 1 {
				bad("voxel (%d, %d, %d) is %v, want %v", i/want.ny/want.nx, i/want.nx%want.ny, i%want.nx, v[i], w)
			}
		}
	}
	if off > 0 {
		bad("%d voxels differ", off)
	}
}
