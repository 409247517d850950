package flatfield

import (
	"encoding/json"
	"math"
	"path/filepath"
	"slices"
	"testing"

	"strata/pkg/dtype"
	"strata/pkg/ngff"
	"strata/pkg/oct"
	"strata/pkg/oct/blocks"
	"strata/pkg/zarr/store"
	"strata/tests/golden"
	"strata/tests/octtest"
	"strata/tests/race"
)

// goldenCase is what case.json says.
type goldenCase struct {
	Params struct {
		Input      string
		Solver     string
		Iterations int     `json:"max_iterations"`
		Smoothness float64 `json:"smoothness_flatfield"`
		PerZ       bool    `json:"per_z_fit"`
		Samples    int     `json:"fit_max_samples"`
		Dark       bool    `json:"use_darkfield"`
		Percentile float64 `json:"darkfield_percentile"`
		Clip       float64 `json:"percentile_max"`
	}
	Planes    []int `json:"plane_index"`
	Fitted    []int `json:"z_fitted"`
	Tolerance struct {
		Field  float64 `json:"flatfield_abs"`
		Volume struct {
			Rel, Abs float64
			Int      float64 `json:"int_abs"`
		}
		Given struct {
			Rel, Abs float64
			Int      float64 `json:"int_abs"`
		} `json:"volume_with_given_fields"`
		Dark struct{ Rel, Abs float64 } `json:"darkfield"`
	}
}

func (c *goldenCase) options() Options {
	p := c.Params
	o := Options{MaxIterations: p.Iterations, Smoothness: p.Smoothness, PerZ: p.PerZ, MaxSamples: p.Samples, DarkField: p.Dark, DarkPercentile: p.Percentile, PercentileMax: p.Clip}
	if p.Solver == "basicpy" {
		o.Solver = BasicPy
	}
	if o.MaxSamples == 0 {
		o.MaxSamples = 2000
	}
	return o
}

func TestGolden(t *testing.T) {
	race.Leave(t)
	for _, c := range golden.Cases(t, "illum") {
		t.Run(c.Name, func(t *testing.T) {
			var g goldenCase
			if err := json.Unmarshal(c.File, &g); err != nil {
				t.Fatal(err)
			}
			in := octtest.Open(t, store.Folder(filepath.Join(golden.Unpack(t, g.Params.Input), "mosaic_grid_z03_resampled.ome.zarr")))
			r, err := Run(octtest.Ctx, in, store.Memory(), g.options(), oct.Layout{}, octtest.Small())
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(r.Planes, g.Fitted) {
				t.Errorf("planes %v, want %v", r.Planes, g.Fitted)
			}
			near(t, "flat-field", slices.Concat(r.Fields...), dtype.Slice[float32](c.Arrays["flatfield"].Data), g.Tolerance.Field, 0)
			if dark, ok := c.Arrays["darkfield"]; ok {
				near(t, "dark-field", slices.Concat(r.DarkFields...), dtype.Slice[float32](dark.Data), g.Tolerance.Dark.Abs, g.Tolerance.Dark.Rel)
			}
			abs := g.Tolerance.Volume.Abs
			if r.Image.Levels[0].Array.DType().IsInteger() {
				abs = g.Tolerance.Volume.Int
			}
			checkVolume(t, c, &g, in, narrow(octtest.Values(t, r.Image.Levels[0].Array)), abs, g.Tolerance.Volume.Rel)
			if abs = g.Tolerance.Given.Abs; r.Image.Levels[0].Array.DType().IsInteger() {
				abs = g.Tolerance.Given.Int
			}
			checkVolume(t, c, &g, in, given(t, c, &g, in), abs, g.Tolerance.Given.Rel)
		})
	}
}

// given divides the mosaic by the golden flat-fields, as the stage does.
func given(t *testing.T, c golden.Case, g *goldenCase, in *ngff.Image) []float32 {
	t.Helper()
	v, err := blocks.Open(in)
	if err != nil {
		t.Fatal(err)
	}
	m, err := newMosaic(v, g.options())
	if err != nil {
		t.Fatal(err)
	}
	f := newFitting(m, g.options(), octtest.Small())
	split := func(a golden.Array) (fields [][]float32) {
		all := dtype.Slice[float32](a.Data)
		for n := m.height * m.width; len(all) > 0; all = all[n:] {
			fields = append(fields, all[:n])
		}
		return fields
	}
	f.fields, f.darks, f.index = split(c.Arrays["flatfield"]), split(c.Arrays["darkfield"]), make([]int, m.Shape[0])
	f.finish()
	a, err := planApply(f, oct.Layout{})
	if err != nil {
		t.Fatal(err)
	}
	out, err := a.run(octtest.Ctx, store.Memory())
	if err != nil {
		t.Fatal(err)
	}
	return narrow(octtest.Values(t, out.Levels[0].Array))
}

func narrow(v []float64) []float32 {
	out := make([]float32, len(v))
	for i := range v {
		out[i] = float32(v[i])
	}
	return out
}

// checkVolume compares whole tiles to the golden planes, and the means of all planes. What is beyond the whole tiles is
// left alone in the golden set, and divided here.
func checkVolume(t *testing.T, c golden.Case, g *goldenCase, in *ngff.Image, got []float32, abs, rel float64) {
	t.Helper()
	a := in.Levels[0].Array
	shape, tile, raw := a.Shape(), a.Chunks(), octtest.Values(t, a)
	ny, nx := shape[1]/tile[1]*tile[1], shape[2]/tile[2]*tile[2]
	plane := shape[1] * shape[2]
	means := dtype.Slice[float64](c.Arrays["mean_per_plane"].Data)
	for z, want := range means {
		sum := 0.0
		for i := range plane {
			if i/shape[2] < ny && i%shape[2] < nx {
				sum += float64(got[z*plane+i])
			} else {
				sum += raw[z*plane+i]
			}
		}
		if mean := sum / float64(plane); math.Abs(mean-want) > abs+rel*want {
			t.Errorf("plane %d: mean %v, want %v", z, mean, want)
		}
	}
	planes, ok := c.Arrays["volume_planes"]
	if !ok {
		return
	}
	var want []float32
	dtype.Each(planes.Data, planes.Type, func(v float64) { want = append(want, float32(v)) })
	for k, z := range g.Planes {
		for y := range ny {
			near(t, "row", got[z*plane+y*shape[2]:][:nx], want[k*plane+y*shape[2]:][:nx], abs, rel)
		}
	}
}

func near(t *testing.T, what string, got, want []float32, abs, rel float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d numbers, want %d", what, len(got), len(want))
	}
	worst := 0.0
	for i, w := range want {
		d := math.Abs(float64(got[i]) - float64(w))
		if !(d <= abs+rel*math.Abs(float64(w))) {
			t.Fatalf("%s: number %d is %v, want %v", what, i, got[i], w)
		}
		worst = max(worst, d)
	}
	if what != "row" {
		t.Logf("%s: differs by %.2g at most", what, worst)
	}
}
