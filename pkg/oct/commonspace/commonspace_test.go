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
	"strata/pkg/oct/slicefiles"
	"strata/pkg/registration"
	"strata/pkg/zarr/store"
	"strata/tests/golden"
	"strata/tests/octtest"
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
	files, err := slicefiles.FindAny(octtest.Ctx, dir, "*")
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
				sum, limit := 0.0, 1e-3*w.Sum
				for _, v := range got {
					sum += v
				}
				if a.DType() != dtype.Float32 { // truncated by the reference
					limit += 0.5 * float64(len(got))
				}
				if d := math.Abs(sum - w.Sum); d > limit {
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

// sliceAt returns a slice of a pattern in which every voxel differs; it begins at (y, x) of the pattern.
func sliceAt(t *testing.T, id int, shape [3]int, y, x int) Slice {
	t.Helper()
	im, _ := octtest.Made(t, shape[:], []int{2, 8, 8}, nil, nil, func(i int) float32 {
		u, v := x+i%shape[2], y+i/shape[2]%shape[1]
		return float32(1+(u*u*7919+v*104729+u*v*31)%1009) + float32(i/(shape[1]*shape[2]))
	})
	return Slice{id, fmt.Sprintf("slice_z%02d", id), im}
}

// table returns a table of the given shifts in mm between slices of consecutive numbers, the first of them reliable or
// not.
func table(t *testing.T, text string) *registration.ShiftTable {
	t.Helper()
	s, err := registration.ReadShiftTable(strings.NewReader("fixed_id,moving_id,x_shift_mm,y_shift_mm,reliable\n"+text), "shifts.csv")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Slices cut from one pattern agree wherever they overlap on the canvas; voxels of 2 µm, so that 0.002 mm are a pixel.
func TestTruth(t *testing.T) {
	at := [][2]int{{0, 0}, {7, -4}, {3, 9}} // (y, x)
	shapes := [][3]int{{3, 20, 30}, {3, 26, 24}, {3, 18, 33}}
	var in Input
	for i, p := range at {
		in.Slices = append(in.Slices, sliceAt(t, 3+i, shapes[i], p[0]+50, p[1]+50))
	}
	in.Shifts = table(t, "3,4,-0.008,0.014,1\n4,5,0.026,-0.008,1\n")
	p, err := New(octtest.Ctx, in, Options{ZeroFill: true}, octtest.Small())
	if err != nil {
		t.Fatal(err)
	}
	if p.Canvas != [2]int{33, 46} {
		t.Errorf("canvas %v", p.Canvas)
	}
	images := moveAll(t, p, oct.Layout{}, octtest.Small())
	seen := 0
	first := octtest.Read(t, images[0].Levels[0].Array)
	for _, im := range images[1:] {
		for i, v := range octtest.Read(t, im.Levels[0].Array) {
			if v > 0 && first[i] > 0 {
				if seen++; v != first[i] {
					t.Fatalf("voxel %d is %v, %v in the first slice", i, v, first[i])
				}
			}
		}
	}
	if seen < 1500 {
		t.Errorf("only %d voxels in common", seen)
	}
}

// The voxels depend neither on workers, nor on memory, nor on chunks.
func TestSameVoxels(t *testing.T) {
	in := Input{Slices: []Slice{sliceAt(t, 0, [3]int{5, 40, 50}, 0, 0), sliceAt(t, 1, [3]int{4, 44, 41}, 3, 9)}, Shifts: table(t, "0,1,0.0093,-0.0041,1\n")}
	var first [][]float32
	for _, res := range []oct.Resources{{Workers: 1, Mem: 64 << 20}, {Workers: 5, Mem: 64 << 20}, {Workers: 3, Mem: 3 << 20}, {Workers: 2, Mem: 2600 << 10}} {
		for _, chunks := range [][]int{nil, {4, 16, 24}} {
			p, err := New(octtest.Ctx, in, Options{}, res)
			if err != nil {
				t.Fatal(err)
			}
			for i, im := range moveAll(t, p, oct.Layout{Chunks: chunks}, res) {
				v := octtest.Read(t, im.Levels[0].Array)
				if len(first) <= i {
					first = append(first, v)
				}
				octtest.SameBits(t, v, first[i])
			}
		}
	}
}

// Replaced shifts, by the mode: the shifts of slice 2, which is excluded, are far from the others.
func TestExcluded(t *testing.T) {
	rows := "0,1,0.002,0.002,1\n1,2,0.2,0.1,1\n2,3,-0.1,0.1,0\n3,4,0.004,0.006,1\n4,5,0.004,0.008,1\n5,6,0.008,0.012,1\n"
	for _, c := range []struct {
		mode   Mode
		window int
		x, y   float64 // of 1 to 2, in mm
	}{{Keep, 2, 0.2, 0.1}, {Zero, 2, 0, 0}, {Median, 0, 0.004, 0.007}, {LocalMedian, 2, 0.003, 0.004}, {LocalMedian, 1, 0.002, 0.002}, {LocalMedian, 0, 0.004, 0.007}} {
		s := table(t, rows)
		replace(s, []int{2}, Options{Excluded: c.mode, Window: c.window})
		if r := s.Rows[1]; math.Abs(r.X-c.x) > 1e-12 || math.Abs(r.Y-c.y) > 1e-12 {
			t.Errorf("%s, window %d: %v, %v, want %v, %v", c.mode, c.window, r.X, r.Y, c.x, c.y)
		}
		if r := s.Rows[3]; r.X != 0.004 {
			t.Errorf("%s: a shift of slices that are used is %v", c.mode, r.X)
		}
	}
	s := table(t, "0,1,0.2,0.1,1\n")
	if replace(s, []int{0, 1}, Options{Excluded: Median}); s.Rows[0].X != 0 || s.Rows[0].Y != 0 {
		t.Errorf("without other shifts: %v", s.Rows[0].PairShift)
	}
}

// A slice without a shift lies between its neighbours; whole pixels, fill values, integers, NaN and translations.
func TestPlace(t *testing.T) {
	in := Input{Slices: []Slice{sliceAt(t, 1, [3]int{2, 12, 12}, 0, 0), sliceAt(t, 2, [3]int{2, 12, 12}, 0, 0), sliceAt(t, 3, [3]int{2, 12, 12}, 0, 0), sliceAt(t, 9, [3]int{2, 12, 12}, 0, 0)},
		Shifts: table(t, "1,3,0.009,0.002,1\n")}
	var said []string
	res := octtest.Small()
	res.Warn = func(m string) { said = append(said, m) }
	p, err := New(octtest.Ctx, in, Options{}, res)
	if err != nil {
		t.Fatal(err)
	}
	want := [][2]float64{{0, 0}, {2.25, 0.5}, {4.5, 1}, {4.5, 1}}
	for i, s := range p.slices {
		if math.Hypot(s.at[0]-want[i][0], s.at[1]-want[i][1]) > 1e-9 {
			t.Errorf("slice %d at %v, want %v", s.ID, s.at, want[i])
		}
	}
	if !slices.Contains(said, "shifts.csv: no shift for slices [2 9]: they are put between their neighbours in the table") {
		t.Errorf("warnings %q", said)
	}
	if p, err = New(octtest.Ctx, in, Options{WholePixels: true}, res); err != nil || p.slices[1].at != [2]float64{2, 0} {
		t.Errorf("whole pixels: %v, %v", err, p.slices[1].at)
	}
	im, _ := octtest.Made(t, []int{1, 2, 2}, []int{1, 2, 2}, nil, nil, func(i int) float32 { return []float32{float32(math.NaN()), -1, 3, 5}[i] })
	in = Input{Slices: []Slice{{1, "a", im}, {2, "b", im}}, Shifts: table(t, "1,2,0.002,0,1\n")}
	if p, err = New(octtest.Ctx, in, Options{}, res); err != nil {
		t.Fatal(err)
	}
	v := octtest.Read(t, moveAll(t, p, oct.Layout{}, res)[0].Levels[0].Array)
	if fill := float32(3.02); v[0] == v[0] || v[1] != -1 || v[2] != fill || v[3] != 3 || v[5] != fill {
		t.Errorf("voxels %v, want NaN, -1, %v, 3, 5, %v", v, fill, fill)
	}
}

func TestBadInput(t *testing.T) {
	one, other := sliceAt(t, 0, [3]int{2, 12, 12}, 0, 0), sliceAt(t, 1, [3]int{2, 12, 12}, 0, 0)
	other.Image.VoxelSize[2] = 3
	far := Input{Slices: []Slice{one, sliceAt(t, 1, [3]int{2, 12, 12}, 0, 0)}, Shifts: table(t, "0,1,1e9,1e9,1\n")}
	for _, c := range []struct {
		in   Input
		want string
	}{
		{Input{Slices: []Slice{one, other}, Shifts: table(t, "")}, "voxel size is 3 µm along x"},
		{Input{Shifts: table(t, "")}, "no slice is used"},
		{far, "shifts make a canvas of"},
		{Input{Slices: far.Slices, Shifts: table(t, "0,1,1e11,0,1\n")}, "spread the slices over"},
	} {
		if _, err := New(octtest.Ctx, c.in, Options{}, octtest.Small()); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %q", err, c.want)
		}
	}
	p, err := New(octtest.Ctx, Input{Slices: []Slice{one}, Shifts: table(t, "")}, Options{}, octtest.Small())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Run(octtest.Ctx, func(Slice) store.Writer { return store.Memory() }, oct.Layout{}, oct.Resources{Workers: 1, Mem: 1 << 10}); err == nil || !strings.Contains(err.Error(), "--mem grants") {
		t.Errorf("too little memory: %v", err)
	}
	in := Input{Slices: []Slice{one, sliceAt(t, 1, [3]int{2, 12, 12}, 2, 3)}, Shifts: table(t, "0,1,0,0,0\n")}
	if _, err := New(octtest.Ctx, in, Options{Refine: true}, oct.Resources{Workers: 1, Mem: 9000}); err == nil || !strings.Contains(err.Error(), "comparing slices 0 and 1") {
		t.Errorf("too little memory to compare: %v", err)
	}
}

// Shifts of pictures of different sizes are not biased, and are kept within their gates.
func TestRefine(t *testing.T) {
	in := Input{Slices: []Slice{sliceAt(t, 0, [3]int{3, 64, 64}, 50, 50), sliceAt(t, 1, [3]int{3, 60, 70}, 53, 46)}, Shifts: table(t, "0,1,0.006,0.002,0\n")}
	for _, c := range []struct {
		o    Options
		used bool
	}{{Options{Refine: true}, true}, {Options{Refine: true, MaxDiscrepancy: 1}, false}, {Options{Refine: true, MinCorrelation: 0.999}, true}, {Options{Refine: true, MinCorrelation: 1.1}, false}} {
		p, err := New(octtest.Ctx, in, c.o, octtest.Small())
		if err != nil {
			t.Fatal(err)
		}
		if len(p.Refined) != 1 || p.Refined[0].PX != [2]float64{-4, 3} || p.Refined[0].Used != c.used || math.Abs(p.Refined[0].Discrepancy-math.Hypot(7, 2)) > 1e-9 {
			t.Errorf("%+v: %+v", c.o, p.Refined)
		}
		want := [2]float64{4, 0}
		if !c.used {
			want = [2]float64{}
		}
		if at := p.slices[0].at; math.Hypot(at[0]-want[0], at[1]-want[1]) > 1e-9 {
			t.Errorf("%+v: the first slice is at %v", c.o, at)
		}
	}
}
