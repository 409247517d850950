package crop

import (
	"encoding/json"
	"math"
	"testing"

	"strata/pkg/oct"
	"strata/pkg/zarr/store"
	"strata/tests/golden"
	"strata/tests/octtest"
)

// The interface and what is kept are those of scipy's filters and scikit-image's
// Otsu, which ITK's confirmed when the golden set was made.
func TestCropGolden(t *testing.T) {
	for _, c := range golden.Cases(t, "crop") {
		t.Run(c.Name, func(t *testing.T) {
			var p struct {
				Depth, Percentile, Fraction, SXY, SZ float64
				Before, Pad, Log                     bool
			}
			var file struct {
				Metrics struct {
					Metrics
					Bin float64 `json:"gradient_bin"` // of the histogram that Otsu's threshold splits
				}
				Tolerance struct {
					Lines float64 `json:"a_lines_off"`
					Clip  float64 `json:"clip_rel"`
				}
			}
			if err := json.Unmarshal(c.Params, &p); err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal(c.File, &file); err != nil {
				t.Fatal(err)
			}
			in := octtest.Open(t, store.Folder(golden.Input(t, c)))
			out, got, err := Run(octtest.Ctx, in, store.Memory(), Options{Depth: p.Depth, BeforeInterface: p.Before, PadAfter: p.Pad,
				PercentileMax: p.Percentile, MaxFraction: p.Fraction, SigmaXY: p.SXY, SigmaZ: p.SZ, Log: p.Log}, oct.Layout{}, octtest.Small())
			if err != nil {
				t.Fatal(err)
			}
			want, tol := file.Metrics, file.Tolerance
			if got.Interface != want.Interface || got.Median != want.Median || got.First != want.First || got.Kept != want.Kept || got.Padded != want.Padded ||
				got.Missing != want.Missing || got.SearchPlanes != want.SearchPlanes || got.ALines != want.ALines {
				t.Errorf("%+v, want %+v", got, want.Metrics)
			}
			if off := math.Abs(float64(got.ALinesUsed - want.ALinesUsed)); off > tol.Lines*float64(want.ALines) {
				t.Errorf("%d A-lines stand out, want %d", got.ALinesUsed, want.ALinesUsed)
			}
			if math.Abs(got.Threshold-want.Threshold) > 2*want.Bin || math.Abs(got.Clip-want.Clip) > tol.Clip*want.Clip {
				t.Errorf("threshold %v and clip %v, want %v and %v", got.Threshold, got.Clip, want.Threshold, want.Clip)
			}
			planes(t, octtest.Values(t, out.Levels[0].Array), c)
		})
	}
}

// planes compares the mean of every plane of an image, and its first and last plane.
func planes(t *testing.T, got []float64, c golden.Case) {
	t.Helper()
	means := octtest.Numbers(c.Arrays["mean_per_plane"])
	first, last := octtest.Numbers(c.Arrays["first_plane"]), octtest.Numbers(c.Arrays["last_plane"])
	n := len(first)
	if len(got) != n*len(means) {
		t.Fatalf("%d voxels, want %d planes of %d", len(got), len(means), n)
	}
	for z, want := range means {
		sum := 0.0
		for i, v := range got[z*n : (z+1)*n] {
			sum += v
			if z == 0 && v != first[i] || z == len(means)-1 && v != last[i] {
				t.Fatalf("plane %d, voxel %d: %v", z, i, v)
			}
		}
		if mean := sum / float64(n); math.Abs(mean-want) > 1e-9*math.Abs(want) {
			t.Errorf("plane %d: mean %v, want %v", z, mean, want)
		}
	}
}
