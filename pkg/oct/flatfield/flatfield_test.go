package flatfield

import (
	"bytes"
	"errors"
	"fmt"
	"image/png"
	"math"
	"slices"
	"strings"
	"testing"

	"strata/pkg/dtype"
	"strata/pkg/meter"
	"strata/pkg/metrics"
	"strata/pkg/oct"
	"strata/pkg/oct/blocks"
	"strata/pkg/phantom"
	"strata/pkg/zarr/codec"
	"strata/pkg/zarr/store"
	"strata/tests/octtest"
)

// shadingLeft returns the root mean square of what remains of the true flat-field after the division by an estimate.
func shadingLeft(field, truth []float32) float64 {
	ratio, mean := make([]float64, len(field)), 0.0
	for i, f := range field {
		ratio[i] = float64(truth[i]) / float64(f)
		mean += ratio[i] / float64(len(field))
	}
	square := 0.0
	for _, v := range ratio {
		square += (v/mean - 1) * (v/mean - 1) / float64(len(field))
	}
	return math.Sqrt(square)
}

// The phantom's vignette comes back, with speckle, relief and structured tissue, from a mosaic whose focal plane is
// flat.
func TestTruth(t *testing.T) {
	if testing.Short() {
		t.Skip("accuracy")
	}
	p := phantom.Default()
	p.Tiles, p.Tile, p.Crop, p.FillTissue, p.Water, p.Bowl = [2]int{10, 10}, [3]int{12, 64, 72}, [2]int{5, 9}, true, 20, 0
	s, in := octtest.Specimen(t, p, nil, nil, nil)
	p.DType, p.Tile, p.Tiles = dtype.Uint16, [3]int{6, 160, 144}, [2]int{8, 8}
	large, wide := octtest.Specimen(t, p, nil, nil, nil)
	for name, how := range map[string]Options{
		"linum-basic":             {},
		"linum-basic of workflow": {Smoothness: 0.05, MaxIterations: 500},
		"basicpy":                 {Solver: BasicPy},
		"basicpy of workflow":     {Solver: BasicPy, Smoothness: 0.05, PercentileMax: 99.9},
		"large tiles":             {},
		"large tiles, basicpy":    {Solver: BasicPy},
	} {
		t.Run(name, func(t *testing.T) {
			s, in := s, in
			if strings.HasPrefix(name, "large") {
				s, in = large, wide
			}
			how.MaxSamples = 400
			r, err := Run(octtest.Ctx, in, store.Memory(), how, oct.Layout{}, oct.Resources{Workers: 2, Mem: 256 << 20})
			if err != nil {
				t.Fatal(err)
			}
			even := make([]float32, len(r.Fields[0]))
			for i := range even {
				even[i] = 1
			}
			left, before := shadingLeft(r.Fields[0], s.FlatField()), shadingLeft(even, s.FlatField())
			t.Logf("shading %.2f %% before, %.2f %% left; seams %.4g before, %.4g after", 100*before, 100*left, r.Before.L1, r.After.L1)
			if left > 0.015 || before < 0.05 {
				t.Errorf("shading of %.2f %% is left of %.2f %%, want at most 1.5 %%", 100*left, 100*before)
			}
			if !(r.After.L1 < r.Before.L1) {
				t.Errorf("seams differ by %v after, %v before", r.After.L1, r.Before.L1)
			}
		})
	}
}

// shaded returns a voxel of a mosaic of 4 × 5 tiles of 20 × 24 pixels and some more, 12 planes deep.
func shaded(i int) float64 {
	z, y, x := i/(83*125), i/125%83, i%125
	v, u := float64(y%20)/10-1, float64(x%24)/12-1
	tissue := 200 + 80*math.Sin(float64(y)/17+float64(z)/3)*math.Cos(float64(x)/23) + float64(i*7919%31)
	return tissue * (1 - 0.2*v*v - 0.3*u*u + 0.05*v)
}

var shadedShape, shadedTile = []int{12, 83, 125}, []int{12, 20, 24}

// The numbers depend neither on workers, nor on memory, nor on chunks along z, nor on the output's layout.
func TestSameHowever(t *testing.T) {
	if testing.Short() {
		t.Skip("accuracy")
	}
	zstd, err := codec.FromFlag("zstd:1", dtype.Uint16, 3)
	if err != nil {
		t.Fatal(err)
	}
	for _, how := range []Options{
		{MaxSamples: 60, MaxIterations: 3},
		{MaxSamples: 40, PerZ: true, MaxIterations: 2},
		{MaxSamples: 100, Solver: BasicPy, PercentileMax: 99},
		{MaxSamples: 60, Solver: BasicPy, PerZ: true, DarkField: true, DarkPercentile: 5, DarkWindow: 2, PercentileMax: 98, ExtraRows: 2},
	} {
		var want []float32
		var first *Result
		for k, c := range []struct {
			chunks []int
			chain  codec.Chain
			out    []int
			res    oct.Resources
		}{
			{shadedTile, nil, nil, oct.Resources{Workers: 1, Mem: 256 << 20}},
			{shadedTile, zstd, nil, oct.Resources{Workers: 3, Mem: 32 << 20}},
			{[]int{5, 20, 24}, zstd, []int{5, 10, 12}, oct.Resources{Workers: 2, Mem: 256 << 20}},
			{[]int{1, 20, 24}, nil, []int{1, 20, 24}, oct.Resources{Workers: 4, Mem: 32 << 20}},
		} {
			in, _ := octtest.Made(t, shadedShape, c.chunks, nil, c.chain, func(i int) uint16 { return uint16(shaded(i)) })
			r, err := Run(octtest.Ctx, in, store.Memory(), how, oct.Layout{Chunks: c.out, Levels: 1}, c.res)
			if err != nil {
				t.Fatal(err)
			}
			got := slices.Concat(narrow(octtest.Values(t, r.Image.Levels[0].Array)), slices.Concat(r.Fields...), slices.Concat(r.DarkFields...), r.Pictures.Before, r.Pictures.After)
			if k == 0 {
				want, first = got, r
				continue
			}
			octtest.SameBits(t, got, want)
			if r.Before != first.Before || r.After != first.After || r.Curvature != first.Curvature {
				t.Errorf("%+v: seams %v, %v, want %v, %v", how, r.Before, r.After, first.Before, first.After)
			}
		}
	}
}

// Tiles can be others than chunks.
func TestTileOfItsOwn(t *testing.T) {
	if testing.Short() {
		t.Skip("accuracy")
	}
	value := func(i int) uint16 { return uint16(shaded(i)) }
	in, _ := octtest.Made(t, shadedShape, []int{12, 20, 20}, nil, nil, value)
	same, err := Run(octtest.Ctx, in, store.Memory(), Options{MaxSamples: 100}, oct.Layout{}, octtest.Small())
	if err != nil {
		t.Fatal(err)
	}
	for _, chunks := range [][]int{{12, 16, 18}, {4, 64, 64}, {12, 20, 20}} {
		in, _ := octtest.Made(t, shadedShape, chunks, nil, nil, value)
		r, err := Run(octtest.Ctx, in, store.Memory(), Options{MaxSamples: 100, TileUM: 20 * in.VoxelSize[1]}, oct.Layout{}, octtest.Small())
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(octtest.Values(t, r.Image.Levels[0].Array), octtest.Values(t, same.Image.Levels[0].Array)) || r.Tile != [2]int{20, 20} || r.Tiles != [2]int{4, 6} {
			t.Errorf("chunks of %v with tiles of %v: other voxels", chunks, r.Tile)
		}
		if got := r.Image.Levels[0].Array.Chunks(); !slices.Equal(got, chunks) {
			t.Errorf("chunks %v, want %v", got, chunks)
		}
	}
}

// All voxels are divided by the field of their place in the tile, those of partial tiles too; rounded and clamped.
func testDivision[T dtype.Element](t *testing.T) {
	in, _ := octtest.Made(t, shadedShape, shadedTile, nil, nil, func(i int) T { return T(shaded(i) / 3) })
	raw := octtest.Values(t, in.Levels[0].Array)
	for _, solver := range []Solver{LinumBasic, BasicPy} {
		r, err := Run(octtest.Ctx, in, store.Memory(), Options{MaxSamples: 60, Solver: solver}, oct.Layout{}, octtest.Small())
		if err != nil {
			t.Fatal(err)
		}
		for i, got := range octtest.Values(t, r.Image.Levels[0].Array) {
			f := r.Fields[0][i/125%83%20*24+i%125%24]
			if solver == LinumBasic {
				f += 1e-6
			}
			want := float64(max(0, float32(raw[i])/f))
			if dtype.Of[T]().IsInteger() {
				want = math.RoundToEven(want)
			}
			if dtype.Of[T]() == dtype.Int8 || dtype.Of[T]() == dtype.Uint8 {
				want = min(want, map[dtype.Type]float64{dtype.Int8: 127, dtype.Uint8: 255}[dtype.Of[T]()])
			}
			if got != want {
				t.Fatalf("%v: voxel %d is %v, want %v", dtype.Of[T](), i, got, want)
			}
		}
	}
}

func TestDivision(t *testing.T) {
	if testing.Short() {
		t.Skip("accuracy")
	}
	testDivision[uint8](t)
	testDivision[int8](t)
	testDivision[uint16](t)
	testDivision[int32](t)
	testDivision[float32](t)
}

// The first rows of tiles are unusable: they change nothing else, and are divided by the row after them.
func TestExtraRows(t *testing.T) {
	var fields [2][]float32
	for k, bad := range []float64{0, 5000} {
		in, _ := octtest.Made(t, shadedShape, shadedTile, nil, nil, func(i int) float32 {
			if i/125%83%20 < 3 {
				return float32(bad)
			}
			return float32(shaded(i))
		})
		r, err := Run(octtest.Ctx, in, store.Memory(), Options{MaxSamples: 60, ExtraRows: 3}, oct.Layout{}, octtest.Small())
		if err != nil {
			t.Fatal(err)
		}
		fields[k] = r.Fields[0]
	}
	octtest.SameBits(t, fields[1], fields[0])
	for y := range 3 {
		octtest.SameBits(t, fields[0][y*24:(y+1)*24], fields[0][3*24:4*24])
	}
}

// Voxels that are no numbers count as 0 in the estimate. basicpy's become 0, linum-basic's stay.
func TestNonFinite(t *testing.T) {
	if testing.Short() {
		t.Skip("accuracy")
	}
	bad := map[int]float32{7: float32(math.NaN()), 5000: float32(math.Inf(1)), 83*125*6 + 777: float32(math.Inf(-1))}
	for _, solver := range []Solver{LinumBasic, BasicPy} {
		in, _ := octtest.Made(t, shadedShape, shadedTile, nil, nil, func(i int) float32 {
			if v, ok := bad[i]; ok {
				return v
			}
			return float32(shaded(i))
		})
		var warnings []string
		res := octtest.Small()
		res.Meter, res.Warn = &meter.Meter{}, func(m string) { warnings = append(warnings, m) }
		r, err := Run(octtest.Ctx, in, store.Memory(), Options{MaxSamples: 2000, Solver: solver}, oct.Layout{}, res)
		if err != nil {
			t.Fatal(err)
		}
		if res.Meter.NonFinite() != 3 || len(warnings) != 1 || !strings.Contains(warnings[0], "3 voxels are NaN or infinite") {
			t.Errorf("%d counted, warnings %q", res.Meter.NonFinite(), warnings)
		}
		for i, v := range octtest.Read(t, r.Image.Levels[0].Array) {
			want, ok := bad[i]
			if solver == BasicPy {
				want = 0
			}
			if ok && v != want && (v == v || want == want) || !ok && !(v > 0) {
				t.Fatalf("solver %d: voxel %d is %v", solver, i, v)
			}
		}
		for _, f := range r.Fields[0] {
			if !(f > 0.5 && f < 1.5) {
				t.Fatalf("flat-field of %v", f)
			}
		}
	}
}

// A mosaic of which basicpy cannot estimate some planes: they are copied. linum-basic takes the nearest of those
// fitted.
func TestPlanes(t *testing.T) {
	value := func(i int) float32 {
		if z := i / (83 * 125); z == 3 || z == 7 && i%125 > 24 {
			return 0
		}
		return float32(shaded(i))
	}
	in, _ := octtest.Made(t, shadedShape, shadedTile, nil, nil, value)
	raw := octtest.Read(t, in.Levels[0].Array)
	var warnings []string
	res := octtest.Small()
	res.Warn = func(m string) { warnings = append(warnings, m) }
	r, err := Run(octtest.Ctx, in, store.Memory(), Options{MaxSamples: 60, Solver: BasicPy, PerZ: true}, oct.Layout{}, res)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(r.Skipped, []int{3, 7}) || len(r.Fields) != 12 || r.Fields[3] != nil || len(warnings) != 1 {
		t.Errorf("planes %v skipped, warnings %q", r.Skipped, warnings)
	}
	got := octtest.Read(t, r.Image.Levels[0].Array)
	octtest.SameBits(t, got[7*83*125:8*83*125], raw[7*83*125:8*83*125])
	if slices.Equal(got[6*83*125:7*83*125], raw[6*83*125:7*83*125]) {
		t.Error("plane 6 is copied")
	}

	r, err = Run(octtest.Ctx, in, store.Memory(), Options{MaxSamples: 60, PerZ: true}, oct.Layout{}, octtest.Small())
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(r.Planes, []int{0, 5, 11}) {
		t.Fatalf("planes %v", r.Planes)
	}
	got = octtest.Read(t, r.Image.Levels[0].Array)
	for z, k := range []int{0, 0, 0, 1, 1, 1, 1, 1, 1, 2, 2, 2} {
		i := z*83*125 + 30*125 + 20
		if want := raw[i] / (r.Fields[k][10*24+20] + 1e-6); got[i] != want {
			t.Errorf("plane %d: %v, want %v by field %d", z, got[i], want, k)
		}
	}
}

func TestChoose(t *testing.T) {
	for _, c := range []struct {
		depth, samples int
		want           []int
	}{{6, 50, []int{0, 2, 5}}, {6, 1000, []int{0, 1, 2, 3, 4, 5}}, {6, 3, []int{0}}, {1, 20, []int{0}}, {100, 64, []int{0, 33, 66, 99}}} {
		m := &mosaic{ny: 4, nx: 4, Volume: &blocks.Volume{Shape: [3]int{c.depth, 8, 8}}}
		if got := m.choose(c.samples); !slices.Equal(got, c.want) {
			t.Errorf("%d planes, %d samples: %v, want %v", c.depth, c.samples, got, c.want)
		}
	}
}

// Metrics and the picture of a run.
func TestStep(t *testing.T) {
	in, _ := octtest.Made(t, shadedShape, shadedTile, nil, nil, func(i int) uint16 { return uint16(shaded(i)) })
	r, err := Run(octtest.Ctx, in, store.Memory(), Options{MaxSamples: 40}, oct.Layout{}, octtest.Small())
	if err != nil {
		t.Fatal(err)
	}
	s := r.Step("in.ome.zarr", "out.ome.zarr", Options{MaxSamples: 40})
	for name, want := range map[string]string{"mosaic_grid": "4x5", "tile_shape": "[20 24]", "input_shape": "[12 83 125]", "n_planes_fit": "2", "field_mode": "global", "use_darkfield": "false"} {
		if m, ok := s.Metric(name); !ok || fmt.Sprint(m.Value) != want || m.Status != metrics.Info {
			t.Errorf("%s is %+v, want %s", name, m, want)
		}
	}
	if m, _ := s.Metric("seam_l1"); m.Value != r.After.L1 || !(r.After.L1 > 0 && r.After.L1 < r.Before.L1) {
		t.Errorf("seam_l1 is %v, before %v", m.Value, r.Before.L1)
	}
	if r.Before.Pairs != 4*4+3*5 {
		t.Errorf("%d pairs", r.Before.Pairs)
	}
	var b bytes.Buffer
	if err := r.WritePNG(&b); err != nil {
		t.Fatal(err)
	}
	im, err := png.Decode(&b)
	if err != nil || im.Bounds().Dx() != 2*(8+5*24)+24*4 || im.Bounds().Dy() != 80 {
		t.Errorf("%v: picture of %v", err, im.Bounds())
	}
}

// Seams by hand, and the shape of a profile.
func TestSeams(t *testing.T) {
	l1, r := agreement([]float32{1, 2, 3, 4}, []float32{2, 4, 6, 8})
	if math.Abs(l1-2.5/3.75) > 1e-8 || math.Abs(r-1) > 1e-12 {
		t.Errorf("%v, %v", l1, r)
	}
	if l1, r := agreement([]float32{3, 3}, []float32{1, 2}); !math.IsNaN(r) || math.Abs(l1-1.5/2.25) > 1e-8 {
		t.Errorf("a strip of one value: %v, %v", l1, r)
	}
	lens, steps := make([]float32, 40*50), make([]float32, 40*50)
	for i := range lens {
		y, x := float64(i/50)/40-0.45, float64(i%50)/50-0.55
		lens[i] = float32(0.2 + math.Exp(-2*(x*x+y*y)))
		steps[i] = 1 + 0.4*float32(i%50/5%2)
	}
	if c := curvature(lens, 40, 50); c > 2e-3 {
		t.Errorf("a Gaussian: %v", c)
	}
	if c := curvature(steps, 40, 50); c < 0.1 || c > 0.3 {
		t.Errorf("steps: %v", c)
	}
}

func TestBadInput(t *testing.T) {
	all := func(v float32) func(int) float32 { return func(int) float32 { return v } }
	for name, c := range map[string]struct {
		value func(i int) float32
		how   Options
		mem   int64
		kind  error
		text  string
	}{
		"empty":         {all(0), Options{}, 64 << 20, oct.ErrInput, "all tiles are 0 in the 12 planes sampled"},
		"empty, dark":   {all(0), Options{DarkField: true}, 64 << 20, oct.ErrInput, "no tile"},
		"empty, 3d":     {all(0), Options{Solver: BasicPy}, 64 << 20, oct.ErrInput, "all tiles are 0"},
		"negative":      {all(-1), Options{}, 64 << 20, oct.ErrInput, "no voxel is above 0"},
		"almost empty":  {func(i int) float32 { return float32(1 / min(1+i%1000*1000000, 1000)) }, Options{}, 64 << 20, oct.ErrInput, "0.1 % of the voxels are other than 0: want at least 1 %"},
		"half empty":    {func(i int) float32 { return float32(i % 3 / 2) }, Options{Solver: BasicPy}, 64 << 20, oct.ErrInput, "no tile in the 12 planes sampled has more than half of its pixels other than 0"},
		"large tile":    {all(1), Options{TileUM: 1e6}, 64 << 20, oct.ErrInput, "hold no whole tile"},
		"tiny tile":     {all(1), Options{TileUM: 1e-3}, 64 << 20, oct.ErrInput, "a tile of 0.001 µm has"},
		"extra rows":    {all(1), Options{ExtraRows: 20}, 64 << 20, oct.ErrInput, "tiles have 20 rows, all of which are extra rows"},
		"little memory": {all(1), Options{}, 4 << 20, nil, "needs 2"},
	} {
		t.Run(name, func(t *testing.T) {
			in, _ := octtest.Made(t, shadedShape, shadedTile, nil, nil, c.value)
			c.how.MaxSamples = 2000
			_, err := Run(octtest.Ctx, in, store.Memory(), c.how, oct.Layout{}, oct.Resources{Workers: 2, Mem: c.mem})
			if err == nil || !strings.Contains(err.Error(), c.text) || c.kind != nil && !errors.Is(err, c.kind) || c.kind == nil && !strings.Contains(err.Error(), "--mem grants 4 MiB") {
				t.Errorf("%v, want %q", err, c.text)
			}
		})
	}
}
