package register

import (
	"encoding/json"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"strata/pkg/ngff"
	"strata/pkg/oct"
	"strata/pkg/oct/octtest"
	"strata/pkg/zarr/store"
	"strata/tests/golden"
)

// goldenPair is what a golden case holds.
type goldenPair struct {
	Params struct {
		Pair, Fixed, Moving string
		Interval            float64 `json:"slicing_interval_mm"`
		Range               float64 `json:"search_range_mm"`
		MovingZ             int     `json:"moving_z_index"`
		MaxRotation         float64 `json:"max_rotation_deg"`
		MaxTranslation      float64 `json:"max_translation_px"`
		Extra               []string
	}
	Truth struct {
		TX       float64
		TY       float64
		Rotation float64 `json:"rotation_deg"`
		FixedZ   int     `json:"fixed_z"`
		MovingZ  int     `json:"moving_z"`
	}
	Offsets      [2]int
	ZCorrelation float64 `json:"z_correlation"`
	Drift        int     `json:"expected_z"`
	Confidence   float64 `json:"confidence_if_right"`
	Tolerance    struct {
		ZCorrelation float64 `json:"z_correlation_abs"`
		Translation  float64 `json:"translation_px"`
		Rotation     float64 `json:"rotation_deg"`
		Confidence   float64 `json:"confidence_abs"`
	}
	Format struct {
		Metrics map[string]map[string]any
		Errors  []string
	} `json:"metrics_format"`
}

func openSlice(t *testing.T, path string) Slice {
	t.Helper()
	return Slice{Path: path, Image: octtest.Open(t, store.Folder(path))}
}

func (c *goldenPair) options() Options {
	o := Defaults()
	o.SlicingIntervalMM, o.SearchRangeMM, o.MovingZ = c.Params.Interval, c.Params.Range, c.Params.MovingZ
	o.MaxRotationDeg, o.MaxTranslationPx, o.Rotation = c.Params.MaxRotation, c.Params.MaxTranslation, !slices.Contains(c.Params.Extra, "--no_rotation")
	return o
}

// The pairs of the golden set lie where their phantoms put them; planes and correlation along z are the reference's.
func TestGolden(t *testing.T) {
	for _, g := range golden.Cases(t, "register") {
		t.Run(g.Name, func(t *testing.T) {
			var c goldenPair
			if err := json.Unmarshal(g.File, &c); err != nil {
				t.Fatal(err)
			}
			dir := filepath.Join(golden.Unpack(t, c.Params.Pair), "pair")
			fixed, moving := openSlice(t, filepath.Join(dir, c.Params.Fixed)), openSlice(t, filepath.Join(dir, c.Params.Moving))
			for _, search := range []ZSearch{ZAligned, ZCentre} {
				o := c.options()
				o.ZSearch = search
				r, err := Run(octtest.Ctx, fixed, moving, o, octtest.Small())
				if err != nil {
					t.Fatal(err)
				}
				dx, dy, turn := r.Transform.TX-c.Truth.TX, r.Transform.TY-c.Truth.TY, degrees(r.Transform.Angle)-c.Truth.Rotation
				t.Logf("%s: %.3f px and %.3f° off, z correlation %+.1e, peak %.1f, correlation %.4f after %.4f", search, math.Hypot(dx, dy), turn, r.ZCorrelation-c.ZCorrelation, r.Peak, r.After, r.Before)
				if off := math.Hypot(dx, dy); off > c.Tolerance.Translation || math.Abs(turn) > c.Tolerance.Rotation || r.Refused != "" {
					t.Errorf("%s: (%.3f, %.3f) px and %.3f° off: %s", search, dx, dy, turn, r.Refused)
				}
				if got := [2]int{r.Offsets.FixedZ, r.Offsets.MovingZ}; got != c.Offsets || r.Drift != c.Drift {
					t.Errorf("%s: planes %v, %d from the expected one, want %v and %d", search, got, r.Drift, c.Offsets, c.Drift)
				}
				if math.Abs(r.ZCorrelation-c.ZCorrelation) > c.Tolerance.ZCorrelation {
					t.Errorf("%s: z correlation %v, want %v", search, r.ZCorrelation, c.ZCorrelation)
				}
				if want := c.Confidence; strings.Contains(c.Params.Moving, "interpolated") {
					if r.Confidence != 0 {
						t.Errorf("%s: confidence %v of an interpolated slice", search, r.Confidence)
					}
				} else if math.Abs(r.Confidence-want) > c.Tolerance.Confidence {
					t.Errorf("%s: confidence %v, want %v", search, r.Confidence, want)
				}
			}
		})
	}
}

var _ = ngff.Image{}
var _ = oct.Resources{}
