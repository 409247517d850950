package commonspace

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"strata/pkg/dtype"
	"strata/pkg/metrics"
	"strata/pkg/ngff"
	"strata/pkg/oct"
	"strata/pkg/oct/octtest"
	"strata/pkg/oct/slicefiles"
	"strata/pkg/registration"
	"strata/pkg/zarr/store"
	"strata/tests/golden"
)

// params are those of a golden case.
type params struct {
	Slices, Shifts string
	Config         string  `json:"slice_config"`
	Mode           Mode    `json:"excluded_slice_mode"`
	Window         int     `json:"excluded_slice_window"`
	Refine         bool    `json:"refine_unreliable"`
	Discrepancy    float64 `json:"refine_max_discrepancy_px"`
	Correlation    float64 `json:"refine_min_correlation"`
}

// input reads the folder of a golden case.
func input(t *testing.T, c golden.Case) (Input, Options) {
	t.Helper()
	var p params
	if err := json.Unmarshal(c.Params, &p); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(golden.Unpack(t, p.Slices), "slices")
	o := Options{Excluded: p.Mode, Window: p.Window, Refine: p.Refine, MaxDiscrepancy: p.Discrepancy, MinCorrelation: p.Correlation, IgnoreOrigins: true}
	var in Input
	f, err := os.Open(filepath.Join(dir, p.Shifts))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if in.Shifts, err = registration.ReadShiftTable(f, p.Shifts); err != nil {
		t.Fatal(err)
	}
	var config *registration.SliceTable
	if p.Config != "" {
		f, err := os.Open(filepath.Join(dir, p.Config))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if config, err = registration.ReadSliceTable(f, p.Config); err != nil {
			t.Fatal(err)
		}
	}
	files, err := slicefiles.FindAny(octtest.Ctx, dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if config != nil && (config.Row(file.ID) == nil || !config.Row(file.ID).Bool(registration.Use)) {
			in.Excluded = append(in.Excluded, file.ID)
			continue
		}
		in.Slices = append(in.Slices, Slice{file.ID, file.Path, octtest.Open(t, store.Folder(file.Path))})
	}
	return in, o
}

// moveAll runs a plan into memory.
func moveAll(t *testing.T, p *Plan, layout oct.Layout, res oct.Resources) []*ngff.Image {
	t.Helper()
	images, err := p.Run(octtest.Ctx, func(Slice) store.Writer { return store.Memory() }, layout, res)
	if err != nil {
		t.Fatal(err)
	}
	return images
}

func TestGolden(t *testing.T) {
	for _, c := range golden.Cases(t, "common_space") {
		t.Run(c.Name, func(t *testing.T) {
			in, o := input(t, c)
			p, err := New(octtest.Ctx, in, o, octtest.Small())
			if err != nil {
				t.Fatal(err)
			}
			var want struct {
				Slices map[string]struct {
					Shape []int
					Plane []int `json:"plane_index"`
					Sum   float64
					DType string
				}
				Metrics json.RawMessage
				Limits  struct {
					Volume struct {
						Rel, Abs, IntAbs float64
						Off              float64 `json:"max_fraction_off"`
					}
				} `json:"tolerance"`
			}
			if err := json.Unmarshal(c.File, &want); err != nil {
				t.Fatal(err)
			}
			images := moveAll(t, p, oct.Layout{Levels: 2}, octtest.Small())
			if len(images) != len(want.Slices) {
				t.Fatalf("%d slices, want %d", len(images), len(want.Slices))
			}
			for i, s := range in.Slices {
				name := fmt.Sprintf("z%02d", s.ID)
				w, a := want.Slices[name], images[i].Levels[0].Array
				if !slices.Equal(a.Shape(), w.Shape) || a.DType().String() != w.DType || len(images[i].Levels) != 3 {
					t.Fatalf("%s: shape %v of %v and %d levels, want %v of %s and 3", name, a.Shape(), a.DType(), len(images[i].Levels), w.Shape, w.DType)
				}
				got, expected := octtest.Values(t, a), octtest.Numbers(c.Arrays[name])
				plane := w.Shape[1] * w.Shape[2]
				abs := want.Limits.Volume.Abs
				if a.DType() != dtype.Float32 {
					abs = 1
				}
				off := 0
				for k, z := range w.Plane {
					for j, v := range expected[k*plane:][:plane] {
						if d := math.Abs(got[z*plane+j] - v); !(d <= abs+2e-6*math.Abs(v)) {
							off++
						}
					}
				}
				if float64(off) > want.Limits.Volume.Off*float64(len(expected)) {
					t.Errorf("%s: %d of %d voxels differ", name, off, len(expected))
				}
				sum := 0.0
				for _, v := range got {
					sum += v
				}
				if d := math.Abs(sum - w.Sum); d > 0.002*w.Sum {
					t.Errorf("%s: sum of voxels %v, want %v", name, sum, w.Sum)
				}
			}
			checkMetrics(t, p, want.Metrics)
		})
	}
}

// checkMetrics compares names, values and judgements, not descriptions.
func checkMetrics(t *testing.T, p *Plan, raw json.RawMessage) {
	t.Helper()
	var want struct {
		Metrics map[string]struct {
			Value  any
			Status metrics.Status
		}
	}
	if err := json.Unmarshal(raw, &want); err != nil {
		t.Fatal(err)
	}
	m := p.Metrics("common")
	for name, w := range want.Metrics {
		got, ok := m.Metric(name)
		same := fmt.Sprint(got.Value) == fmt.Sprint(w.Value)
		if f, isNumber := got.Value.(float64); isNumber {
			same = math.Abs(f-w.Value.(float64)) < 1e-6
		}
		if !ok || !same || got.Status != w.Status {
			t.Errorf("%s: %v %s, want %v %s", name, got.Value, got.Status, w.Value, w.Status)
		}
	}
	if len(m.Names()) != len(want.Metrics) {
		t.Errorf("metrics %v, want %d", m.Names(), len(want.Metrics))
	}
}

var _ = strings.Contains
