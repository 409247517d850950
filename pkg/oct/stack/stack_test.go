package stack

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"strata/pkg/dtype"
	"strata/pkg/oct"
	"strata/pkg/oct/slicefiles"
	"strata/pkg/oct/stack/tables"
	"strata/pkg/registration"
	"strata/pkg/zarr/store"
	"strata/tests/golden"
	"strata/tests/octtest"
	"strata/tests/race"
)

// stackGolden is what only stack's cases have.
type stackGolden struct {
	Params struct {
		SlicingInterval *float64  `json:"slicing_interval_mm"`
		SearchRange     *float64  `json:"search_range_mm"`
		MovingZ         *int      `json:"moving_z_first_index"`
		Expected        bool      `json:"use_expected_overlap"`
		Blend           bool      `json:"blend"`
		RefineZ         int       `json:"blend_z_refine_vox"`
		NoXYShift       bool      `json:"no_xy_shift"`
		Accumulate      bool      `json:"accumulate_translations"`
		MaxPairwise     float64   `json:"max_pairwise_translation"`
		Weight          bool      `json:"confidence_weight_translations"`
		Smooth          float64   `json:"translation_smooth_sigma"`
		MaxDrift        float64   `json:"max_cumulative_drift_px"`
		SmoothWindow    int       `json:"smooth_window"`
		SkipError       bool      `json:"skip_error_transforms"`
		Isotropic       *bool     `json:"make_isotropic"`
		Resolutions     []float64 `json:"pyramid_resolutions"`
	}
	Tolerance struct {
		Volume, Levels struct {
			Rel, Abs float64
			Off      float64 `json:"max_fraction_off"`
		}
		Correlation float64 `json:"correlation_abs"`
	}
	Shape    [3]int                `json:"volume_shape"`
	Planes   []int                 `json:"plane_index"`
	Levels   [][]int               `json:"level_shapes"`
	Canvas   [2]int                `json:"canvas"`
	Position map[string][2]float64 `json:"position_px"`
	Matches  []struct {
		Fixed       int     `json:"fixed_id"`
		Moving      int     `json:"moving_id"`
		Overlap     int     `json:"overlap_voxels"`
		Blend       int     `json:"blend_overlap_voxels"`
		Start       int     `json:"moving_z_start"`
		Correlation float64 `json:"correlation"`
		Fallback    bool    `json:"correlation_fallback_used"`
	} `json:"z_matches"`
	Decisions []struct {
		Slice       int     `json:"slice_id"`
		Fixed       int     `json:"fixed_id"`
		Loaded      bool    `json:"transform_loaded"`
		Source      string  `json:"transform_source"`
		Manual      bool    `json:"manual_override"`
		Confidence  any     `json:"confidence"`
		Overlap     int     `json:"overlap_voxels"`
		From        string  `json:"overlap_source"`
		Blend       int     `json:"blend_overlap_voxels"`
		Correlation float64 `json:"correlation"`
	} `json:"decisions"`
	Corrections [][4]any           `json:"corrections"`
	Actions     map[string]string  `json:"actions"`
	Gains       map[string]float64 `json:"gains"`
}

func (g *stackGolden) options() Options {
	o, p := referenceOptions(), &g.Params
	if p.SlicingInterval != nil {
		o.SlicingIntervalMM = *p.SlicingInterval
	}
	if p.SearchRange != nil {
		o.SearchRangeMM = *p.SearchRange
	}
	if p.MovingZ != nil {
		o.MovingZFirstIndex = *p.MovingZ
	}
	if p.Isotropic != nil {
		o.MakeIsotropic = *p.Isotropic
	}
	if p.Resolutions != nil {
		o.PyramidResolutions = p.Resolutions
	}
	o.UseExpectedOverlap, o.Blend, o.BlendZRefineVox, o.NoXYShift = p.Expected, p.Blend, p.RefineZ, p.NoXYShift
	o.AccumulateTranslations, o.MaxPairwiseTranslation, o.ConfidenceWeightTranslations = p.Accumulate, p.MaxPairwise, p.Weight
	o.TranslationSmoothSigma, o.MaxCumulativeDriftPx, o.SmoothWindow, o.SkipErrorTransforms = p.Smooth, p.MaxDrift, p.SmoothWindow, p.SkipError
	return o
}

// stackInput opens the slices of a folder and the files beside them.
func stackInput(t *testing.T, dir, shifts, transforms string) Input {
	t.Helper()
	files, err := slicefiles.Find(context.Background(), dir)
	if err != nil {
		t.Fatal(err)
	}
	var in Input
	for _, f := range files {
		in.Slices = append(in.Slices, Slice{f.ID, f.Path, octtest.Open(t, store.Folder(f.Path))})
	}
	f, err := os.Open(shifts)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if in.Shifts, err = registration.ReadShifts(f, shifts); err != nil {
		t.Fatal(err)
	}
	if transforms != "" {
		if in.Transforms, err = registration.OpenFolder(transforms); err != nil {
			t.Fatal(err)
		}
	}
	return in
}

// differing is the fraction of values that differ by more than a tolerance.
func differing(got, want []float32, rel, abs float64) (fraction, worst float64) {
	off := 0
	for i, w := range want {
		d := math.Abs(float64(got[i]) - float64(w))
		worst = max(worst, d)
		if !(d <= abs+rel*math.Abs(float64(w))) {
			off++
		}
	}
	return float64(off) / float64(max(len(want), 1)), worst
}

func TestStackGolden(t *testing.T) {
	race.Leave(t)
	for _, c := range golden.Cases(t, "stack") {
		t.Run(c.Name, func(t *testing.T) {
			var g stackGolden
			if err := json.Unmarshal(c.File, &g); err != nil {
				t.Fatal(err)
			}
			dir, shifts, transforms := golden.Slices(t, c)
			in := stackInput(t, dir, shifts, transforms)
			opt := g.options()
			got, err := Run(octtest.Ctx, in, opt, store.Memory(), oct.Layout{Levels: 5}, octtest.Small())
			if err != nil {
				t.Fatal(err)
			}
			g.decisions(t, in, got)
			if len(got.Image.Levels) != len(g.Levels) {
				t.Fatalf("%d levels, want %d", len(got.Image.Levels), len(g.Levels))
			}
			for k, l := range got.Image.Levels {
				if !slices.Equal(l.Array.Shape(), g.Levels[k]) {
					t.Fatalf("level %d has shape %v, want %v", k, l.Array.Shape(), g.Levels[k])
				}
				a, ok := c.Arrays[fmt.Sprintf("level%d", k)]
				if !ok {
					continue
				}
				tol := g.Tolerance.Levels
				if off, worst := differing(octtest.Read(t, l.Array), dtype.Slice[float32](a.Data), tol.Rel, tol.Abs); off > 0 {
					t.Errorf("level %d: %.3g of the voxels differ, by up to %v", k, off, worst)
				}
			}
			// the assembled volume itself: without a pyramid
			opt.PyramidResolutions = nil
			levels := got.Image.Levels
			got, err = Run(octtest.Ctx, in, opt, store.Memory(), oct.Layout{Levels: 5}, octtest.Small())
			if err != nil {
				t.Fatal(err)
			}
			base := got.Image.Levels[0]
			for k, l := range levels { // all fill the same box
				for d, n := range l.Array.Shape() {
					if want := base.Scale[d] * float64(base.Array.Shape()[d]) / float64(n); math.Abs(l.Scale[d]-want) > 1e-12 {
						t.Errorf("level %d: voxel size %v mm along axis %d, want %v", k, l.Scale[d], d, want)
					}
				}
			}
			volume := octtest.Read(t, base.Array)
			want := c.Arrays["volume_planes"]
			size := want.Shape[1] * want.Shape[2]
			var planes []float32
			for _, z := range g.Planes {
				planes = append(planes, volume[z*size:(z+1)*size]...)
			}
			tol := g.Tolerance.Volume
			if off, worst := differing(planes, dtype.Slice[float32](want.Data), tol.Rel, tol.Abs); off > tol.Off {
				t.Errorf("%.3g of the volume's voxels differ, by up to %v", off, worst)
			} else if worst > 0 {
				t.Logf("volume: %.3g differ by more than the tolerance, worst %v", off, worst)
			}
		})
	}
}

func (g *stackGolden) decisions(t *testing.T, in Input, got *Result) {
	t.Helper()
	if got.Shape != g.Shape || [2]int(got.Shape[1:]) != g.Canvas {
		t.Fatalf("the volume has shape %v, want %v", got.Shape, g.Shape)
	}
	for id, want := range g.Position {
		n, _ := strconv.Atoi(id)
		for d := range 2 {
			if math.Abs(got.Position[n][d]-want[d]) > 1e-9 {
				t.Errorf("slice %s is at %v, want %v", id, got.Position[n], want)
			}
		}
	}
	for i, w := range g.Matches {
		m := got.Matches[i]
		if g.Decisions[i].From == "registration" { // linumpy writes 1, which nobody measured
			pair, _, err := in.Transforms.Pair(t.Context(), w.Moving)
			if err != nil {
				t.Fatal(err)
			}
			w.Correlation = pair.Metrics.ZCorrelation
			g.Decisions[i].Correlation = w.Correlation
		}
		if m.FixedID != w.Fixed || m.MovingID != w.Moving || m.Overlap != w.Overlap || m.Blend != w.Blend || m.MovingZStart != w.Start || m.Fallback != w.Fallback ||
			math.Abs(m.Correlation-w.Correlation) > g.Tolerance.Correlation {
			t.Errorf("match %d is %+v, want %+v", i, m, w)
		}
	}
	for i, w := range g.Decisions {
		d := got.Decisions[i]
		confidence, _ := w.Confidence.(float64)
		if _, known := w.Confidence.(float64); known != d.Loaded {
			t.Errorf("decision %d: loaded %v, confidence %v", i, d.Loaded, w.Confidence)
		}
		if d.SliceID != w.Slice || d.FixedID != w.Fixed || d.Loaded != w.Loaded || d.Manual != w.Manual || d.Source != w.From || d.Overlap != w.Overlap ||
			d.Blend != w.Blend || d.Loaded && math.Abs(d.Confidence-confidence) > 1e-9 || math.Abs(d.Correlation-w.Correlation) > g.Tolerance.Correlation {
			t.Errorf("decision %d is %+v, want %+v", i, d, w)
		}
	}
	var corrections []string
	for _, c := range got.Corrections {
		corrections = append(corrections, fmt.Sprint([]any{c.MovingID, c.Field, c.From, c.To}))
	}
	var want []string
	for _, c := range g.Corrections {
		want = append(want, fmt.Sprint(c))
	}
	if !slices.Equal(corrections, want) {
		t.Errorf("corrections are %v, want %v", corrections, want)
	}
	for id, want := range g.Actions {
		n, _ := strconv.Atoi(id)
		if got.Actions[n] != want {
			t.Errorf("transform of slice %s: %s, want %s", id, got.Actions[n], want)
		}
	}
	if len(got.Gains) != len(g.Gains) {
		t.Errorf("gains are %v, want %v", got.Gains, g.Gains)
	}
	for id, want := range g.Gains {
		n, _ := strconv.Atoi(id)
		if math.Abs(got.Gains[n]-want) > 1e-5*want {
			t.Errorf("gain of slice %s is %v, want %v", id, got.Gains[n], want)
		}
	}
}

func TestStackSidecars(t *testing.T) {
	var b strings.Builder
	if err := tables.WriteMatches(&b, []tables.Match{{FixedID: 3, MovingID: 4, Overlap: 7, Blend: 6, MovingZStart: 1}, {FixedID: 4, MovingID: 5, Overlap: 9, Blend: 9, Correlation: 0.709417767589793, Fallback: true}, {FixedID: 5, MovingID: 7, Overlap: 1, Blend: 1, MovingZStart: 2, Correlation: 1}}); err != nil {
		t.Fatal(err)
	}
	want := "fixed_id,moving_id,overlap_voxels,blend_overlap_voxels,moving_z_start,correlation,correlation_fallback_used\n" +
		"3,4,7,6,1,0.0,False\n4,5,9,9,0,0.709417767589793,True\n5,7,1,1,2,1.0,False\n"
	if b.String() != want {
		t.Errorf("matches:\n%swant:\n%s", b.String(), want)
	}
	if m, err := registration.ReadMatches(strings.NewReader(want), "m"); err != nil || len(m) != 3 || m[1].Correlation != 0.709417767589793 {
		t.Errorf("read back: %v, %v", m, err)
	}
	b.Reset()
	if err := tables.WriteDecisions(&b, []tables.Decision{
		{SliceID: 4, FixedID: 3, Loaded: true, Confidence: 0.8, Source: "registration", Overlap: 7, Blend: 6, Correlation: 1},
		{SliceID: 5, FixedID: 4, Source: "correlation_fallback", Overlap: 9, Blend: 9, Correlation: 0.45107},
		{SliceID: 7, FixedID: 5, Loaded: true, Manual: true, Confidence: 1, Source: "expected", Overlap: 1, Blend: 1},
	}); err != nil {
		t.Fatal(err)
	}
	want = "slice_id,fixed_id,transform_loaded,transform_source,manual_override,confidence,overlap_source,overlap_voxels,blend_overlap_voxels,correlation\n" +
		"4,3,True,automated,False,0.8000,registration,7,6,1.0000\n5,4,False,automated,False,,correlation_fallback,9,9,0.4511\n7,5,True,manual,True,1.0000,expected,1,1,0.0000\n"
	if b.String() != want {
		t.Errorf("decisions:\n%swant:\n%s", b.String(), want)
	}
	if d, err := registration.ReadDecisions(strings.NewReader(want), "d"); err != nil || len(d) != 3 {
		t.Errorf("read back: %v, %v", d, err)
	}
}
