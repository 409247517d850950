package bias

import (
	"context"
	"encoding/json"
	"math"
	"path/filepath"
	"testing"

	"strata/pkg/ngff"
	"strata/pkg/oct"
	"strata/pkg/zarr/store"
	"strata/tests/golden"
	"strata/tests/octtest"
)

// goldenCase is what case.json says of a case.
type goldenCase struct {
	Params struct {
		Input      string
		Sections   int     `json:"n_serial_slices"`
		Mode       string  `json:"mode"`
		Iterations []int   `json:"n_iterations"`
		Shrink     int     `json:"shrink_factor"`
		NoMatch    bool    `json:"no-histogram_match"`
		Planes     bool    `json:"histogram_match_per_zplane"`
		Threshold  float64 `json:"tissue_threshold"`
		Profile    float64 `json:"zprofile_smooth_sigma"`
	}
	Tolerance struct {
		Volume struct {
			Rel float64
			Off float64 `json:"max_fraction_off"`
		}
	}
	PlaneIndex []int   `json:"plane_index"`
	CVBefore   float64 `json:"cv_before"`
	CVAfter    float64 `json:"cv_after"`
}

func (c *goldenCase) options() Options {
	o, p := DefaultOptions(), c.Params
	o.Mode, o.Sections, o.Shrink, o.Match, o.MatchPlanes = Mode(p.Mode), p.Sections, p.Shrink, !p.NoMatch, p.Planes
	o.Threshold, o.ProfileSigma = p.Threshold, p.Profile
	if p.Iterations != nil {
		o.Iterations = p.Iterations
	}
	return o
}

// The coefficient of variation against the phantom's truth is at most 1.1 times that of the reference; with one section
// the volume is the reference's within the tolerance. (Fields of sections keep the brightness of these here, and the
// reference's do not.)
func TestGolden(t *testing.T) {
	for _, g := range golden.Cases(t, "bias_field") {
		t.Run(g.Name, func(t *testing.T) {
			var c goldenCase
			if err := json.Unmarshal(g.File, &c); err != nil {
				t.Fatal(err)
			}
			in, err := ngff.Open(context.Background(), store.Folder(filepath.Join(golden.Unpack(t, c.Params.Input), "sub.ome.zarr")), "")
			if err != nil {
				t.Fatal(err)
			}
			r, err := Run(octtest.Ctx, in, store.Memory(), c.options(), oct.Layout{}, octtest.Small())
			if err != nil {
				t.Fatal(err)
			}
			v, got := octtest.Read(t, in.Levels[0].Array), octtest.Read(t, r.Image.Levels[0].Array)
			shape := in.Levels[0].Array.Shape()
			area := shape[1] * shape[2]
			truth := octtest.Numbers(g.Arrays["bias_truth"])
			var before, after spread
			for i, f := range v {
				section := i / area / (shape[0] / c.Params.Sections)
				clean := float64(f) / truth[i%area] / (1 + 0.12*math.Sin(2.1*float64(section)))
				if clean > 0.2 && got[i] > 0 { // the phantom's tissue is 0.4, its rim falls off
					before.add(float64(f) / clean)
					after.add(float64(got[i]) / clean)
				}
			}
			want := octtest.Numbers(g.Arrays["volume_planes"])
			off, n := 0, 0
			for k, z := range c.PlaneIndex {
				for i := range area {
					if w := want[k*area+i]; w > 0 { // the reference loses the outermost planes of several sections
						n++
						if math.Abs(float64(got[z*area+i])-w) > c.Tolerance.Volume.Rel*w {
							off++
						}
					}
				}
			}
			share := float64(off) / float64(n)
			t.Logf("coefficient of variation %.4f -> %.4f (reference %.4f -> %.4f), %.3f of %d voxels differ by more than %v", before.variation(), after.variation(), c.CVBefore, c.CVAfter,
				share, n, c.Tolerance.Volume.Rel)
			if math.Abs(before.variation()-c.CVBefore) > 0.05*c.CVBefore {
				t.Errorf("the input has a coefficient of variation of %.4f against the truth, want %.4f", before.variation(), c.CVBefore)
			}
			if c.Params.Sections == 1 && share > c.Tolerance.Volume.Off {
				t.Errorf("%.3f of the voxels differ by more than %v", share, c.Tolerance.Volume.Rel)
			}
			if after.variation() > 1.1*c.CVAfter {
				t.Errorf("the output has a coefficient of variation of %.4f against the truth, want at most 1.1 × %.4f", after.variation(), c.CVAfter)
			}
		})
	}
}
