package stack

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"strata/pkg/dtype"
	"strata/pkg/filter"
	"strata/pkg/filter/bspline"
	"strata/pkg/oct"
	"strata/pkg/registration"
	"strata/pkg/zarr/store"
	"strata/tests/octtest"
)

// threeSlices are slices of 6 planes of 20 × 24 voxels of 10, 20 and 30, of which the second has a transform.
func threeSlices(t *testing.T, transform *oracleTransform) Input {
	t.Helper()
	var in Input
	for id := range 3 {
		s := &oracleSlice{id: id, z: 6, y: 20, x: 24, v: slices.Repeat([]float64{float64(10 * (id + 1))}, 6*20*24)}
		in.Slices = append(in.Slices, Slice{id, fmt.Sprintf("slice %d", id), s.stored(t, dtype.Uint16, 2, []int{2, 20, 24}, nil, "raw", []float64{10, 10, 10})})
	}
	var err error
	if in.Shifts, err = registration.ReadShifts(strings.NewReader("fixed_id,moving_id,x_shift_mm,y_shift_mm\n0,1,0,0\n1,2,0,0\n"), "shifts"); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	transform.write(t, filepath.Join(dir, "slice_z01"))
	if in.Transforms, err = registration.OpenFolder(dir); err != nil {
		t.Fatal(err)
	}
	return in
}

// A slice that is moved off the canvas leaves its planes empty: nothing is smeared over them, and where it would
// overwrite or be blended with the slices beside it, these stay as they are.
func TestStackOffCanvas(t *testing.T) {
	off := &oracleTransform{angle: 0.01, tx: 1e12, ty: -3, cx: 12, cy: 10}
	for _, blend := range []bool{false, true} {
		for _, match := range []BlendMatch{MatchNone, MatchPairwise, MatchWhole} {
			opt := DefaultStackOptions()
			opt.UseExpectedOverlap, opt.MovingZFirstIndex, opt.SlicingIntervalMM, opt.PyramidResolutions = true, 0, 0.04, nil // an overlap of 2
			opt.Blend, opt.BlendMatch, opt.AllowLargeMotion = blend, match, true
			var warnings []string
			res := octtest.Small()
			res.Warn = func(m string) { warnings = append(warnings, m) }
			got, err := Run(octtest.Ctx, threeSlices(t, off), opt, store.Memory(), oct.Layout{Codec: "raw"}, res)
			if err != nil {
				t.Fatal(err)
			}
			v := octtest.Values(t, got.Image.Levels[0].Array)
			for z, want := range []float64{10, 10, 10, 10, 10, 10, 0, 0, 30, 30, 30, 30, 30, 30} {
				for i, f := range v[z*480:][:480] {
					if f != want {
						t.Fatalf("blend %v, match %s: voxel (%d, %d, %d) is %v, want %v", blend, match, z, i/24, i%24, f, want)
					}
				}
			}
			if !slices.ContainsFunc(warnings, func(m string) bool {
				return strings.HasSuffix(m, filepath.Join("slice_z01", "transform.tfm")+": moves slice 1 off the canvas: nothing of it is in the volume")
			}) {
				t.Errorf("warnings %q", warnings)
			}
		}
	}
}

// Whatever numbers a transform has, with and without a search and pictures: an error that names its file, or a volume.
func TestStackAnyMotion(t *testing.T) {
	for _, far := range []float64{1e3, 1e9, 1e12, 1e13, 1e19, 1e300, -1e19} {
		for i, transform := range []*oracleTransform{
			{tx: far, cx: 12, cy: 10}, {angle: 0.01, ty: far, cx: 12, cy: 10}, {angle: 0.01, cx: far}, {angle: 3, cy: far}, {angle: far},
			{metrics: true, status: "ok", mtx: far, mty: far, zcorr: 1, conf: 1}, {tx: far, ty: far, metrics: true, conf: 1, zcorr: 1, mtx: far},
		} {
			for _, allow := range []bool{false, true} {
				opt := DefaultStackOptions()
				opt.MovingZFirstIndex, opt.SlicingIntervalMM, opt.PyramidResolutions, opt.Blend, opt.MaxRotationDeg = 0, 0.04, nil, true, 0
				opt.AllowLargeMotion, opt.AccumulateTranslations = allow, transform.metrics
				_, err := Run(octtest.Ctx, threeSlices(t, transform), opt, store.Memory(), oct.Layout{Codec: "raw"}, octtest.Small())
				little := i == 2 && far == 1e3 // a small angle about a point that is not so far
				if err == nil && (allow && math.Abs(far) <= 1e12 || little) {
					continue
				}
				wrong := err != nil && strings.Contains(err.Error(), "slice_z01")
				canvas := allow && err != nil && transform.metrics && strings.HasPrefix(err.Error(), "shifts: ") // a volume of terabytes
				if !wrong && !canvas || strings.Contains(err.Error(), "\n") {
					t.Errorf("transform %d by %v, allowed %v: %v", i, far, allow, err)
				}
			}
		}
	}
}

func TestStackMotionLimits(t *testing.T) {
	warp := func(dx, dy float64) *bspline.Warp {
		return bspline.NewWarp(100, 300, 50).Like(func(x, y float64) (float64, float64) { return dx, dy })
	}
	for name, c := range map[string]struct {
		t    filter.Rigid
		warp *bspline.Warp
		ok   bool
	}{
		"none":                           {ok: true},
		"half a turn about the centre":   {t: filter.Rigid{Angle: math.Pi, CX: 150, CY: 50}, ok: true},
		"a quarter turn":                 {t: filter.Rigid{Angle: math.Pi / 2, CX: 150, CY: 50}, ok: true},
		"half a turn about a corner":     {t: filter.Rigid{Angle: math.Pi}},
		"as far as it is wide":           {t: filter.Rigid{TX: 300}, ok: true},
		"farther":                        {t: filter.Rigid{TX: -300.5}},
		"as far as it is high":           {t: filter.Rigid{TY: -100}, ok: true},
		"farther than it is high":        {t: filter.Rigid{TY: 100.5}},
		"a little about a distant point": {t: filter.Rigid{Angle: 0.01, CX: 1e5}},
		"not a number":                   {t: filter.Rigid{TX: math.NaN()}},
		"infinite":                       {t: filter.Rigid{TY: math.Inf(-1)}},
		"bent":                           {warp: warp(30, 40), ok: true},
		"bent too far":                   {warp: warp(0, 101)},
		"both together":                  {t: filter.Rigid{TY: 60}, warp: warp(0, 60)},
	} {
		if px, ok := within(c.t, c.warp, &stackSlice{shape: [3]int{5, 100, 300}}); ok != c.ok {
			t.Errorf("%s: %v, by %v pixels", name, ok, px)
		}
	}
}
