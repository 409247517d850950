package register

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"strata/pkg/dtype"
	"strata/pkg/filter"
	"strata/pkg/filter/bspline"
	"strata/pkg/metrics"
	"strata/pkg/ngff"
	"strata/pkg/oct"
	"strata/pkg/phantom"
	"strata/pkg/zarr/store"
	"strata/tests/golden"
	"strata/tests/octtest"
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

// sliceOf stores voxels as a slice with voxels of 10 µm.
func sliceOf(t *testing.T, name string, v []float32, shape, chunks [3]int) Slice {
	t.Helper()
	st := store.Memory()
	w, err := ngff.Create(octtest.Ctx, st, "", ngff.ImageSpec{
		Format: 3, Shape: shape[:], Chunks: chunks[:], DType: dtype.Float32, Axes: ngff.SpaceAxes("zyx", "micrometer"), Scale: []float64{10, 10, 10},
	})
	if err == nil {
		err = w.WriteTile(octtest.Ctx, []int{0, 0, 0}, shape[:], dtype.Bytes(v))
	}
	if err == nil {
		err = w.Close(octtest.Ctx)
	}
	if err != nil {
		t.Fatal(err)
	}
	return Slice{Path: name, Image: octtest.Open(t, st)}
}

// sections returns two neighbouring slices of a phantom with speckle, noise, vignette and attenuation, the second
// turned, and how it lies on the first.
func sections(t *testing.T, seed uint64, angle float64) (fixed, moving Slice, truth filter.Rigid) {
	t.Helper()
	return cuts(t, seed, angle, 1, 150, nil)
}

// cuts is [sections] for the first slice and the one that comes some cuts of um µm after it, which deform deforms if it
// is not nil.
func cuts(t *testing.T, seed uint64, angle float64, apart int, um float64, deform *bspline.Warp) (fixed, moving Slice, truth filter.Rigid) {
	t.Helper()
	c := phantom.Default()
	c.Seed, c.Slices, c.Tiles, c.Tile, c.Voxel = seed, apart+1, [2]int{1, 1}, [3]int{32, 160, 180}, [3]float64{10, 10, 10}
	c.Cut, c.Water, c.Relief, c.Bowl, c.Shift, c.Glitch, c.FillTissue = um, 0, 0, 0, 60, 0, true
	s, err := phantom.New(c)
	if err != nil {
		t.Fatal(err)
	}
	shape := c.Tile
	var both [2][]float32
	for k := range both {
		both[k] = make([]float32, shape[0]*shape[1]*shape[2])
		if err := s.RenderTile(dtype.Bytes(both[k]), k*apart, 0, 0); err != nil {
			t.Fatal(err)
		}
	}
	a, b := s.TilePosition(0, 0, 0), s.TilePosition(apart, 0, 0)
	truth = filter.Rigid{Angle: angle, TX: a[1] - b[1], TY: a[0] - b[0], CX: 90, CY: 80}
	// turned about its centre, the slice shows at q what it showed at R⁻¹(q − c) + c; then T(p) = R(p − c) + c + R·d
	// for the shift d
	sin, cos := math.Sincos(angle)
	truth.TX, truth.TY = cos*(a[1]-b[1])-sin*(a[0]-b[0]), sin*(a[1]-b[1])+cos*(a[0]-b[0])
	turned := make([]float32, len(both[1]))
	area := shape[1] * shape[2]
	for z := range shape[0] {
		back := filter.Rigid{Angle: -angle, CX: 90, CY: 80}
		to, from := turned[z*area:][:area], both[1][z*area:][:area]
		if deform == nil {
			back.Resample(to, from, shape[1], shape[2], 0, shape[1], 0)
			continue
		}
		plain := make([]float32, area)
		back.Resample(plain, from, shape[1], shape[2], 0, shape[1], 0)
		deform.Resample(to, plain, shape[1], shape[2], filter.Rigid{}, 0, 0, 0)
	}
	return sliceOf(t, "slice_z00", both[0], shape, [3]int{16, 64, 64}), sliceOf(t, fmt.Sprintf("slice_z%02d", apart), turned, shape, [3]int{16, 64, 64}), truth
}

// Slices of the phantom, as the microscope takes them, are found where they were cut: one slicing interval below,
// displaced and turned.
func TestPhantom(t *testing.T) {
	for seed, angle := range []float64{0, 0.8, -2.5, 4} {
		fixed, moving, truth := sections(t, uint64(seed+1), angle*math.Pi/180)
		o := Defaults()
		o.SlicingIntervalMM, o.SearchRangeMM, o.MovingZ, o.MaxTranslationPx = 0.15, 0.05, 4, 100
		r, err := Run(octtest.Ctx, fixed, moving, o, octtest.Small())
		if err != nil {
			t.Fatal(err)
		}
		off, turn := math.Hypot(r.Transform.TX-truth.TX, r.Transform.TY-truth.TY), degrees(r.Transform.Angle-truth.Angle)
		t.Logf("%.1f px, %.1f°: %.3f px and %.3f° off, planes %v, peak %.1f, correlation %.3f after %.3f, z correlation %.2f", math.Hypot(truth.TX, truth.TY), angle, off, turn, r.Offsets, r.Peak, r.After, r.Before, r.ZCorrelation)
		if r.Refused != "" || off > 0.4 || math.Abs(turn) > 0.3 {
			t.Errorf("turned by %v°: %.3f px and %.3f° off: %+v", angle, off, turn, r)
		}
		if z := r.Offsets.FixedZ - 19; max(z, -z) > 1 {
			t.Errorf("turned by %v°: plane %d, want 19", angle, r.Offsets.FixedZ)
		}
	}
}

// Where slices are missing between two, the plane is expected as many slicing intervals below as there are cuts: by the
// numbers in their names, or as they are given.
func TestGap(t *testing.T) {
	for seed, apart := range []int{2, 3} {
		fixed, moving, truth := cuts(t, uint64(seed+21), 1.7*math.Pi/180, apart, 80, nil)
		o := Defaults()
		o.SlicingIntervalMM, o.SearchRangeMM, o.MovingZ, o.MaxTranslationPx = 0.08, 0.04, 4, 100
		for _, c := range []struct {
			name  string
			apart int
			right bool
		}{{moving.Path, 0, true}, {"moved", apart, true}, {"moved", 0, apart > 2}} { // by chance, depth − 3 intervals are near 3 intervals
			m := moving
			m.Path, o.Apart = c.name, c.apart
			r, err := Run(octtest.Ctx, fixed, m, o, octtest.Small())
			if err != nil {
				t.Fatal(err)
			}
			off, turn := math.Hypot(r.Transform.TX-truth.TX, r.Transform.TY-truth.TY), degrees(r.Transform.Angle-truth.Angle)
			want := 8*apart + 4
			t.Logf("%d cuts, %s: %.3f px and %.3f° off, planes %v, want %d, peak %.1f: %s", apart, c.name, off, turn, r.Offsets, want, r.Peak, r.Refused)
			right := r.Refused == "" && off <= 0.4 && math.Abs(turn) <= 0.3 && max(r.Offsets.FixedZ-want, want-r.Offsets.FixedZ) <= 1
			if right != c.right {
				t.Errorf("%d cuts, %s: %.3f px and %.3f° off, plane %d, want %d: %s", apart, c.name, off, turn, r.Offsets.FixedZ, want, r.Refused)
			}
		}
	}
}

// What is registered depends neither on workers, nor on memory, nor on chunks; large planes are averaged first.
func TestSameEverywhere(t *testing.T) {
	fixed, moving, truth := sections(t, 7, 1.5*math.Pi/180)
	o := Defaults()
	o.SlicingIntervalMM, o.SearchRangeMM, o.MovingZ, o.MaxTranslationPx = 0.15, 0.05, 2, 100
	defer func(n int) { mostPixels = n }(mostPixels)
	for _, mostPixels = range []int{1 << 22, 10000} {
		var first *Result
		for _, res := range []oct.Resources{{Workers: 2, Mem: 64 << 20}, {Workers: 1, Mem: 12 << 20}, {Workers: 5, Mem: 1 << 30}} {
			r, err := Run(octtest.Ctx, fixed, moving, o, res)
			if err != nil {
				t.Fatal(err)
			}
			r.planes = [2]*plane{}
			if first == nil {
				first = r
			}
			if !reflect.DeepEqual(r, first) {
				t.Errorf("%d workers and %d MiB: %+v, want %+v", res.Workers, res.Mem>>20, r, first)
			}
		}
		off, turn := math.Hypot(first.Transform.TX-truth.TX, first.Transform.TY-truth.TY), degrees(first.Transform.Angle-truth.Angle)
		if first.Refused != "" || off > 0.4 || math.Abs(turn) > 0.3 {
			t.Errorf("%d pixels: %.3f px and %.3f° off: %+v", mostPixels, off, turn, first)
		}
	}
	if _, err := Run(octtest.Ctx, fixed, moving, o, oct.Resources{Workers: 1, Mem: 1 << 20}); err == nil || !strings.Contains(err.Error(), "--mem grants 1 MiB") {
		t.Errorf("little memory: %v", err)
	}
}

// Slices of different sizes: the part that both have is registered, about the centre of the fixed one.
func TestSizes(t *testing.T) {
	fixed, moving, truth := sections(t, 9, -0.7*math.Pi/180)
	cut := func(s Slice, ny, nx int) Slice {
		v := octtest.Read(t, s.Image.Levels[0].Array)
		shape := s.Image.Levels[0].Array.Shape()
		var out []float32
		for z := range shape[0] {
			for y := range ny {
				out = append(out, v[(z*shape[1]+y)*shape[2]:][:nx]...)
			}
		}
		return sliceOf(t, s.Path, out, [3]int{shape[0], ny, nx}, [3]int{16, 64, 64})
	}
	o := Defaults()
	o.SlicingIntervalMM, o.SearchRangeMM, o.MaxTranslationPx = 0.15, 0.05, 100
	for k, pair := range [][2]Slice{{fixed, cut(moving, 150, 140)}, {cut(fixed, 140, 170), moving}, {cut(fixed, 160, 150), cut(moving, 130, 180)}} {
		r, err := Run(octtest.Ctx, pair[0], pair[1], o, octtest.Small())
		if err != nil {
			t.Fatal(err)
		}
		// the same points, whatever the centre
		worst := 0.0
		for _, p := range [][2]float64{{0, 0}, {140, 0}, {0, 130}, {70, 65}} {
			ax, ay := apply(r.Transform, p)
			bx, by := apply(truth, p)
			worst = max(worst, math.Hypot(ax-bx, ay-by))
		}
		shape := pair[0].Image.Levels[0].Array.Shape()
		if r.Refused != "" || worst > 0.5 || r.Transform.CX != float64(shape[2])/2 || r.Transform.CY != float64(shape[1])/2 {
			t.Errorf("pair %d: %.3f px off: %+v", k, worst, r)
		}
	}
}

func apply(t filter.Rigid, p [2]float64) (x, y float64) {
	s, c := math.Sincos(t.Angle)
	dx, dy := p[0]-t.CX, p[1]-t.CY
	return c*dx - s*dy + t.CX + t.TX, s*dx + c*dy + t.CY + t.TY
}

// Slices that show different places are refused, with the plane that stack expects.
func TestUnrelated(t *testing.T) {
	fixed, _, _ := sections(t, 11, 0)
	_, moving, _ := sections(t, 12, 0)
	o := Defaults()
	o.SlicingIntervalMM, o.SearchRangeMM, o.MovingZ = 0.15, 0.03, 3
	r, err := Run(octtest.Ctx, fixed, moving, o, octtest.Small())
	if err != nil {
		t.Fatal(err)
	}
	if r.Refused == "" || r.Confidence != 0 || r.Transform != (filter.Rigid{CX: 90, CY: 80}) || r.Offsets.FixedZ != 18 || len(r.Warnings) != 1 {
		t.Errorf("%+v", r)
	}
	m := r.Metrics()
	c, _ := m.Metric("registration_confidence")
	if m.Status() != metrics.Error || c.Value != 0.0 || c.Status != metrics.Error {
		t.Errorf("status %s, confidence %+v", m.Status(), c)
	}
}

// A pair that cannot be read ends the work, or is skipped with a word.
func TestAll(t *testing.T) {
	fixed, moving, _ := sections(t, 13, 0.5*math.Pi/180)
	o := Defaults()
	o.SlicingIntervalMM, o.SearchRangeMM, o.MaxTranslationPx = 0.15, 0.03, 100
	broken := errors.New("no such slice")
	pairs := Pairs([]Numbered{{Slice: fixed, ID: 3}, {Slice: moving, ID: 4}, {Slice: Slice{Path: "lost"}, ID: 6, Err: broken}})
	if len(pairs) != 2 || pairs[0].Missing() != 0 || pairs[1].Missing() != 1 {
		t.Fatalf("%+v", pairs)
	}
	var mu sync.Mutex
	written := map[int]bool{}
	write := func(k int, r *Result) error {
		mu.Lock()
		defer mu.Unlock()
		written[k] = true
		return r.Picture(io.Discard)
	}
	if _, err := All(octtest.Ctx, pairs, o, true, octtest.Small(), write); !errors.Is(err, broken) {
		t.Errorf("%v, want %v", err, broken)
	}
	for _, res := range []oct.Resources{{Workers: 1, Mem: 12 << 20}, {Workers: 4, Mem: 1 << 30}} {
		all, err := All(octtest.Ctx, pairs, o, false, res, write)
		if err != nil {
			t.Fatal(err)
		}
		if all[0].Refused != "" || all[0].Unread || !all[1].Unread || all[1].Refused != broken.Error() || all[1].Confidence != 0 || len(written) != 2 {
			t.Errorf("%+v, %+v", all[0], all[1])
		}
	}
	stop := errors.New("full")
	if _, err := All(octtest.Ctx, pairs, o, false, octtest.Small(), func(int, *Result) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("%v, want %v", err, stop)
	}
}

// The metrics have the names, units and forms of linumpy's.
func TestMetricsForm(t *testing.T) {
	for _, g := range golden.Cases(t, "register") {
		var c goldenPair
		if err := json.Unmarshal(g.File, &c); err != nil {
			t.Fatal(err)
		}
		r := &Result{Fixed: Slice{Path: c.Params.Fixed}, Moving: Slice{Path: c.Params.Moving}, Options: c.options()}
		m := r.Metrics()
		for name, want := range c.Format.Metrics {
			got, ok := m.Metric(name)
			if !ok || got.Description != want["description"] {
				t.Errorf("%s: %+v, want %v", name, got, want)
			}
			if unit, judged := want["unit"]; judged && unit != nil && got.Unit != unit {
				t.Errorf("%s: unit %q, want %q", name, got.Unit, unit)
			}
		}
		if strings.Contains(c.Params.Moving, "interpolated") && !slices.Equal(m.Errors, c.Format.Errors) && !slices.Contains(m.Errors, c.Format.Errors[0]) {
			t.Errorf("errors %q, want %q", m.Errors, c.Format.Errors)
		}
	}
}
