package focal

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"image/png"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"strata/pkg/dtype"
	"strata/pkg/filter"
	"strata/pkg/filter/basic"
	"strata/pkg/meter"
	"strata/pkg/ngff"
	"strata/pkg/oct"
	"strata/pkg/oct/surface"
	"strata/pkg/phantom"
	"strata/pkg/zarr/codec"
	"strata/pkg/zarr/store"
	"strata/tests/golden"
	"strata/tests/octtest"
	"strata/tests/race"
)

// savedMaps are maps in memory.
type savedMaps struct {
	stores   [3]store.Store
	pictures [3]bytes.Buffer
}

func (s *savedMaps) targets() *Maps {
	t := make([]MapTarget, 3)
	for i := range t {
		m := store.Memory()
		s.stores[i] = m
		t[i] = MapTarget{m, &s.pictures[i]}
	}
	return &Maps{Depth: t[0], FlatField: t[1], Correction: t[2]}
}

func (s *savedMaps) read(t *testing.T, i int) []float32 {
	t.Helper()
	return octtest.Read(t, octtest.Open(t, s.stores[i]).Levels[0].Array)
}

func wide(a golden.Array) []float64 {
	var out []float64
	dtype.Each(a.Data, a.Type, func(v float64) { out = append(out, v) })
	return out
}

func TestFocalGolden(t *testing.T) {
	race.Leave(t)
	for _, c := range golden.Cases(t, "focal") {
		t.Run(c.Name, func(t *testing.T) {
			var p struct {
				SigmaXY float64 `json:"sigma_xy"`
				SigmaZ  float64 `json:"sigma_z"`
				Log     bool    `json:"use_log"`
				Levels  int     `json:"n_levels"`
			}
			var f struct {
				Planes    []int `json:"plane_index"`
				Shape     []int
				Tolerance struct {
					Equal float64 `json:"z0_equal_fraction"`
					Field float64 `json:"flatfield_abs"`
					Corr  float64 `json:"corr_abs"`
					Roll  struct {
						Rel, Abs float64
						Int      float64 `json:"int_abs"`
					} `json:"roll_with_given_corr"`
				}
			}
			if err := errors.Join(json.Unmarshal(c.Params, &p), json.Unmarshal(c.File, &f)); err != nil {
				t.Fatal(err)
			}
			in := octtest.Open(t, store.Folder(golden.Input(t, c)))
			curvature := Options{SigmaXY: p.SigmaXY, SigmaZ: p.SigmaZ, Log: p.Log}
			maps := &savedMaps{}
			curvature.Maps = maps.targets()
			out, err := Run(octtest.Ctx, in, store.Memory(), curvature, oct.Layout{Levels: p.Levels}, octtest.Small())
			if err != nil {
				t.Fatal(err)
			}
			equal, depth := 0, maps.read(t, 0)
			for i, w := range dtype.Slice[int16](c.Arrays["z0"].Data) {
				if depth[i] == float32(w) {
					equal++
				}
			}
			if fraction := float64(equal) / float64(len(depth)); fraction < f.Tolerance.Equal {
				t.Errorf("%.4f of the interfaces are equal, want %v", fraction, f.Tolerance.Equal)
			}
			within(t, "flat-field", maps.read(t, 1), wide(c.Arrays["flatfield"]), f.Tolerance.Field, 0)
			within(t, "flat-field at working size", workingField(dtype.Slice[int16](c.Arrays["z0"].Data), in), wide(c.Arrays["flatfield_128"]), f.Tolerance.Field, 0)
			within(t, "correction", maps.read(t, 2), wide(c.Arrays["corr"]), f.Tolerance.Corr, 0)
			// A correction that is off by corr_abs moves a voxel by that much of the step to its neighbour.
			step := 0.0
			for _, v := range wide(c.Arrays["planes"]) {
				step = max(step, math.Abs(v))
			}
			abs := f.Tolerance.Roll.Abs
			if out.Levels[0].Array.DType().IsInteger() {
				abs = f.Tolerance.Roll.Int
			}
			checkFocal(t, c, f.Planes, out, abs+f.Tolerance.Corr*step, f.Tolerance.Roll.Rel)

			given := Options{SigmaXY: 1, SigmaZ: 1, Correction: octtest.Plane(t, dtype.Slice[float32](c.Arrays["corr"].Data), c.Arrays["corr"].Shape[0], c.Arrays["corr"].Shape[1])}
			if out, err = Run(octtest.Ctx, in, store.Memory(), given, oct.Layout{Levels: p.Levels}, octtest.Small()); err != nil {
				t.Fatal(err)
			}
			checkFocal(t, c, f.Planes, out, abs, f.Tolerance.Roll.Rel)
			if !slices.Equal(out.Levels[0].Array.Chunks(), in.Levels[0].Array.Chunks()) {
				t.Errorf("chunks %v, want the input's %v", out.Levels[0].Array.Chunks(), in.Levels[0].Array.Chunks())
			}
		})
	}
}

// workingField is the flat-field of the whole tiles of an interface map before it
// is brought to the size of a tile.
func workingField(z0 []int16, in *ngff.Image) []float32 {
	shape, tile := in.Levels[0].Array.Shape(), in.Levels[0].Array.Chunks()
	const n = basic.Size * basic.Size
	var images []float32
	for y := 0; y+tile[1] <= shape[1]; y += tile[1] {
		for x := 0; x+tile[2] <= shape[2]; x += tile[2] {
			var depth []float32
			for i := range tile[1] * tile[2] {
				depth = append(depth, float32(float64(z0[(y+i/tile[2])*shape[2]+x+i%tile[2]])/float64(shape[0])))
			}
			images = append(images, make([]float32, n)...)
			basic.Triangles(tile[1], tile[2]).Shrink(images[len(images)-n:], depth, tile[1], tile[2])
		}
	}
	var out []float32
	field, _ := basic.Approximate().FlatField(images) // fails only if what shares out its work does
	for _, v := range field.Pixels {
		out = append(out, float32(v))
	}
	return out
}

func within(t *testing.T, what string, got []float32, want []float64, abs, rel float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d numbers, want %d", what, len(got), len(want))
	}
	for i, w := range want {
		if !(math.Abs(float64(got[i])-w) <= abs+rel*math.Abs(w)) {
			t.Fatalf("%s: number %d is %v, want %v", what, i, got[i], w)
		}
	}
}

// checkFocal compares the planes, the means of all planes and level 2.
func checkFocal(t *testing.T, c golden.Case, index []int, out *ngff.Image, abs, rel float64) {
	t.Helper()
	if len(out.Levels) != len(c.VoxelSize) {
		t.Fatalf("%d levels, want %d", len(out.Levels), len(c.VoxelSize))
	}
	as32 := func(v []float64) []float32 {
		out := make([]float32, len(v))
		for i := range v {
			out[i] = float32(v[i])
		}
		return out
	}
	all := octtest.Values(t, out.Levels[0].Array)
	n := out.Levels[0].Array.Shape()[1] * out.Levels[0].Array.Shape()[2]
	var planes, means []float64
	for _, z := range index {
		planes = append(planes, all[z*n:(z+1)*n]...)
	}
	for z := range out.Levels[0].Array.Shape()[0] {
		sum := 0.0
		for _, v := range all[z*n : (z+1)*n] {
			sum += v / float64(n)
		}
		means = append(means, sum)
	}
	within(t, "planes", as32(planes), wide(c.Arrays["planes"]), abs, rel)
	within(t, "means of the planes", as32(means), wide(c.Arrays["mean_per_plane"]), abs, rel)
	within(t, "level 2", as32(octtest.Values(t, out.Levels[2].Array)), wide(c.Arrays["level2"]), abs, rel)
	octtest.CheckVoxels(t, out, c.VoxelSize[0])
}

func bowl() phantom.Config {
	c := phantom.Default()
	c.Tiles, c.Tile, c.Crop = [2]int{6, 6}, [3]int{48, 40, 48}, [2]int{5, 9}
	c.Bowl, c.Water, c.FillTissue = 8.6*c.Voxel[0], 60, true // −2.6 … +6 voxels
	return c
}

// The curvature of every tile comes back, speckle, relief and vignetting on.
func TestFocalFindsTheCurvature(t *testing.T) {
	race.Leave(t)
	for name, change := range map[string]func(*phantom.Config){
		"float32":  func(*phantom.Config) {},
		"uint16":   func(c *phantom.Config) { c.DType = dtype.Uint16 },
		"no noise": func(c *phantom.Config) { c.Speckle, c.Floor, c.Tile = 0, 0, [3]int{48, 80, 96} },
	} {
		c := bowl()
		change(&c)
		s, in := octtest.Specimen(t, c, nil, nil, nil)
		maps := &savedMaps{}
		if _, err := Run(octtest.Ctx, in, store.Memory(), Options{SigmaXY: 3, SigmaZ: 2, Maps: maps.targets()}, oct.Layout{}, octtest.Small()); err != nil {
			t.Fatal(err)
		}
		got, want := maps.read(t, 2), s.Curvature()
		var shift, square, worst float64
		for i := range want {
			shift += float64(got[i]-want[i]) / float64(len(want)) // the tissue may lie deeper as a whole
		}
		for i := range want {
			d := float64(got[i]-want[i]) - shift
			square += d * d / float64(len(want))
			worst = max(worst, math.Abs(d))
		}
		if rms := math.Sqrt(square); rms > 0.3 {
			t.Errorf("%s: the curvature is off by %.2f voxels (root mean square), want less than 0.3", name, rms)
		} else {
			t.Logf("%s: off by %.3f voxels (root mean square), %.2f at most", name, rms, worst)
		}
	}
}

// The numbers depend on nothing but the voxels and the tile: not on chunks along
// z, shards, codecs, workers or memory, also where seams find no room in it.
func TestFocalIsTheSameHoweverStored(t *testing.T) {
	race.Leave(t)
	zstd, err := codec.FromFlag("zstd:1", dtype.Float32, 3)
	if err != nil {
		t.Fatal(err)
	}
	c := bowl()
	c.Tiles, c.Tile, c.Crop = [2]int{4, 3}, [3]int{40, 24, 32}, [2]int{5, 9}
	curvature := Options{SigmaXY: 7, SigmaZ: 1.5}
	var want []float32
	var wantMaps *savedMaps
	for _, s := range []struct {
		name          string
		chunks, shard []int
		chain         codec.Chain
		res           oct.Resources
	}{
		{"raw", nil, nil, nil, oct.Resources{Workers: 1, Mem: 256 << 20}},
		{"in little memory", nil, nil, nil, oct.Resources{Workers: 1, Mem: 6 << 20}},
		{"chunks along z", []int{7, 24, 32}, nil, zstd, oct.Resources{Workers: 3, Mem: 128 << 20}},
		{"shards", nil, []int{40, 48, 96}, zstd, oct.Resources{Workers: 2, Mem: 24 << 20}},
	} {
		t.Run(s.name, func(t *testing.T) {
			_, in := octtest.Specimen(t, c, s.chunks, s.shard, s.chain)
			maps := &savedMaps{}
			f := curvature
			f.Maps = maps.targets()
			out, err := Run(octtest.Ctx, in, store.Memory(), f, oct.Layout{Levels: 2}, s.res)
			if err != nil {
				t.Fatal(err)
			}
			got := slices.Concat(octtest.Read(t, out.Levels[0].Array), octtest.Read(t, out.Levels[2].Array))
			if want == nil {
				want, wantMaps = got, maps
				return
			}
			octtest.SameBits(t, got, want)
			for i := range maps.stores {
				octtest.SameBits(t, maps.read(t, i), wantMaps.read(t, i))
				if !bytes.Equal(maps.pictures[i].Bytes(), wantMaps.pictures[i].Bytes()) {
					t.Errorf("picture %d differs", i)
				}
			}
		})
	}
}

// Every type, a mosaic in no whole number of tiles, more window than tile: the
// interface depth is that of the whole plane searched at once.
func TestFocalDepthIsOfTheWholePlane(t *testing.T) {
	race.Leave(t)
	t.Run("uint8", testDepth[uint8])
	t.Run("int8", testDepth[int8])
	t.Run("uint16", testDepth[uint16])
	t.Run("int16", testDepth[int16])
	t.Run("uint32", testDepth[uint32])
	t.Run("int32", testDepth[int32])
	t.Run("uint64", testDepth[uint64])
	t.Run("int64", testDepth[int64])
	t.Run("float32", testDepth[float32])
	t.Run("float64", testDepth[float64])
}

func testDepth[T dtype.Element](t *testing.T) {
	sigmas := []float64{3}
	if kind := dtype.Of[T](); kind == dtype.Uint16 {
		sigmas = []float64{0, 2, 6, 23}
	}
	w := &filter.RollWorkspace{}
	for _, sigma := range sigmas {
		shape := []int{11, 29, 41}
		value := func(i int) T {
			return T(i*i%8191*7919%61 + 5*(i/(29*41)))
		}
		in, _ := octtest.Made(t, shape, []int{11, 8, 10}, nil, nil, value)
		maps := &savedMaps{}
		var warnings []string
		res := oct.Resources{Workers: 2, Mem: 16 << 20, Warn: func(m string) { warnings = append(warnings, m) }}
		out, err := Run(octtest.Ctx, in, store.Memory(), Options{SigmaXY: sigma, SigmaZ: 1, Maps: maps.targets()}, oct.Layout{}, res)
		if err != nil {
			t.Fatal(err)
		}
		v := make([]T, 11*29*41)
		for i := range v {
			v[i] = value(i)
		}
		s := &filter.InterfaceSearch{SigmaXY: sigma, SigmaZ: 1}
		want := make([]int32, 29*41)
		filter.Interfaces(s, &filter.Workspace{}, want, nil, filter.Slab[T]{Data: v, Planes: 11, PlaneStride: 29 * 41, RowStride: 41},
			s.Windows(0, 29, 29), s.Windows(0, 41, 41))
		for i, d := range maps.read(t, 0) {
			if d != float32(want[i]) {
				t.Fatalf("sigma %v: A-line %d, %d: %v, want %d", sigma, i/41, i%41, d, want[i])
			}
		}
		corr := maps.read(t, 2)
		rolled := slices.Clone(v)
		for y := range 29 {
			for x := range 41 {
				line := make([]T, 11)
				for z := range line {
					line[z] = v[(z*29+y)*41+x]
				}
				k := y%8*10 + x%10
				filter.Roll(w, line, 11, 1, 1, 0, 1, corr[k:k+1], 1)
				for z := range line {
					rolled[(z*29+y)*41+x] = line[z]
				}
			}
		}
		got := octtest.Values(t, out.Levels[0].Array)
		for i, w := range rolled {
			if got[i] != float64(w) {
				t.Fatalf("sigma %v: voxel %d: %v, want %v", sigma, i, got[i], w)
			}
		}
		lossy := slices.ContainsFunc(warnings, func(w string) bool { return strings.Contains(w, "24 significant bits") })
		if want := dtype.Of[T]().Size() >= 4 && dtype.Of[T]() != dtype.Float32; lossy != want {
			t.Errorf("warnings %q", warnings)
		}
	}
}

func TestFocalOfNonFiniteVoxels(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	bad := map[int]float32{5: nan, 700: inf, 3000: nan}
	step := func(i int) float32 { return float32(max(1, 100*((i/256)/6))) } // brighter from plane 6 on
	in, _ := octtest.Made(t, []int{16, 16, 16}, []int{16, 8, 8}, nil, nil, func(i int) float32 {
		if v, ok := bad[i]; ok {
			return v
		}
		return step(i)
	})
	m := &meter.Meter{}
	var warnings []string
	maps := &savedMaps{}
	res := oct.Resources{Workers: 2, Mem: 64 << 20, Meter: m, Warn: func(w string) { warnings = append(warnings, w) }}
	out, err := Run(octtest.Ctx, in, store.Memory(), Options{SigmaXY: 3, SigmaZ: 1, Maps: maps.targets()}, oct.Layout{}, res)
	if err != nil {
		t.Fatal(err)
	}
	if m.NonFinite() != 3 || len(warnings) != 1 || !strings.Contains(warnings[0], "3 voxels are NaN or infinite") {
		t.Errorf("%d voxels counted, warnings %q", m.NonFinite(), warnings)
	}
	for i, d := range maps.read(t, 0) {
		if !(d >= 5 && d <= 14) {
			t.Fatalf("A-line %d: interface %v", i, d)
		}
	}
	spread := 0
	for _, v := range octtest.Read(t, out.Levels[0].Array) {
		if v-v != 0 {
			spread++
		}
	}
	if spread < 3 || spread > 6 {
		t.Errorf("%d voxels of the output are NaN or infinite, want two for each of 3 at most", spread)
	}
}

// Nothing to see: the volume stays as it is.
func TestFocalOfFlatVolumes(t *testing.T) {
	for _, value := range []uint16{0, 7} {
		for _, shape := range [][]int{{16, 16, 16}, {1, 16, 16}, {2, 3, 1}} {
			in, _ := octtest.Made(t, shape, []int{16, 8, 8}, nil, nil, func(int) uint16 { return value })
			maps := &savedMaps{}
			out, err := Run(octtest.Ctx, in, store.Memory(), Options{SigmaXY: 3, SigmaZ: 2, Maps: maps.targets()}, oct.Layout{Levels: 5}, octtest.Small())
			if err != nil {
				t.Fatal(err)
			}
			for i, v := range octtest.Values(t, out.Levels[0].Array) {
				if v != float64(value) {
					t.Fatalf("shape %v of %d: voxel %d is %v", shape, value, i, v)
				}
			}
			for i, v := range maps.read(t, 2) {
				if math.Abs(float64(v)) > 1e-6 {
					t.Fatalf("shape %v of %d: pixel %d of the correction is %v", shape, value, i, v)
				}
			}
			if im, err := png.Decode(&maps.pictures[0]); err != nil || im.Bounds().Dx() != shape[2] {
				t.Errorf("picture: %v, %v", im, err)
			}
		}
	}
}

func TestFocalOfASingleTile(t *testing.T) {
	c := bowl()
	c.Tiles, c.Crop = [2]int{1, 1}, [2]int{}
	_, in := octtest.Specimen(t, c, nil, nil, nil)
	var warnings []string
	res := octtest.Small()
	res.Warn = func(w string) { warnings = append(warnings, w) }
	if _, err := Run(octtest.Ctx, in, store.Memory(), Options{SigmaXY: 3, SigmaZ: 2}, oct.Layout{}, res); err != nil {
		t.Fatal(err)
	}
	if len(warnings) != 1 || !strings.Contains(warnings[0], "only one whole tile") {
		t.Errorf("warnings %q", warnings)
	}
}

// What noise has in common is no curvature.
func TestFocalOfNoise(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	in, _ := octtest.Made(t, []int{30, 96, 96}, []int{30, 48, 48}, nil, nil, func(int) float32 { return float32(100 + 10*rng.NormFloat64()) })
	var warnings []string
	res := octtest.Small()
	res.Warn = func(w string) { warnings = append(warnings, w) }
	if _, err := Run(octtest.Ctx, in, store.Memory(), Options{SigmaXY: 3, SigmaZ: 2}, oct.Layout{}, res); err != nil {
		t.Fatal(err)
	}
	if len(warnings) != 1 || !strings.Contains(warnings[0], surface.NoiseText) {
		t.Errorf("warnings %q", warnings)
	}
}

// A saved correction gives what the run that saved it gave, from one pass.
func TestFocalWithASavedCorrection(t *testing.T) {
	race.Leave(t)
	_, in := octtest.Specimen(t, bowl(), nil, nil, nil)
	maps := &savedMaps{}
	first, second := &meter.Meter{}, &meter.Meter{}
	run := func(f Options, m *meter.Meter) []float32 {
		out, err := Run(octtest.Ctx, in, store.Memory(), f, oct.Layout{}, oct.Resources{Workers: 2, Mem: 64 << 20, Meter: m})
		if err != nil {
			t.Fatal(err)
		}
		return octtest.Read(t, out.Levels[0].Array)
	}
	want := run(Options{SigmaXY: 3, SigmaZ: 2, Maps: maps.targets()}, first)
	again := &savedMaps{}
	got := run(Options{SigmaXY: 3, SigmaZ: 2, Correction: octtest.Open(t, maps.stores[2]), Maps: again.targets()}, second)
	octtest.SameBits(t, got, want)
	octtest.SameBits(t, again.read(t, 2), maps.read(t, 2))
	if a, b := first.BytesRead(), second.BytesRead(); b*3 > a*2 {
		t.Errorf("%d bytes read with a correction, %d without: one pass is half of two", b, a)
	}
}

func TestFocalRefuses(t *testing.T) {
	in, _ := octtest.Made(t, []int{8, 32, 32}, []int{8, 16, 16}, nil, nil, func(i int) uint8 { return uint8(i) })
	good := Options{SigmaXY: 3, SigmaZ: 2}
	with := func(change func(*Options)) Options {
		f := good
		change(&f)
		return f
	}
	field := make([]float32, 256)
	broken := slices.Clone(field)
	broken[35] = float32(math.NaN())
	for _, c := range []struct {
		name   string
		f      Options
		layout oct.Layout
		mem    int64
		is     error
		want   string
	}{
		{"sigma_z 0", with(func(f *Options) { f.SigmaZ = 0 }), oct.Layout{}, 64 << 20, oct.ErrLayout, "--sigma_z"},
		{"sigma_xy NaN", with(func(f *Options) { f.SigmaXY = math.NaN() }), oct.Layout{}, 64 << 20, oct.ErrLayout, "--sigma_xy"},
		{"chunks", good, oct.Layout{Chunks: []int{8, 5, 16}}, 64 << 20, oct.ErrLayout, "--chunks"},
		{"memory", good, oct.Layout{}, 1 << 20, nil, "--mem grants 1 MiB"},
		{"shape of the correction", with(func(f *Options) { f.Correction = octtest.Plane(t, field, 8, 32) }), oct.Layout{}, 64 << 20, oct.ErrInput, "correction has shape [8 32], the tiles of"},
		{"axes of the correction", with(func(f *Options) { f.Correction = in }), oct.Layout{}, 64 << 20, oct.ErrInput, "has 2 axes"},
		{"NaN in the correction", with(func(f *Options) { f.Correction = octtest.Plane(t, broken, 16, 16) }), oct.Layout{}, 64 << 20, oct.ErrInput, "pixel (2, 3)"},
	} {
		_, err := Run(octtest.Ctx, in, store.Memory(), c.f, c.layout, oct.Resources{Workers: 1, Mem: c.mem})
		if err == nil || c.is != nil && !errors.Is(err, c.is) || c.is == nil && (errors.Is(err, oct.ErrInput) || errors.Is(err, oct.ErrLayout)) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	unreadable := octtest.Open(t, octtest.Locked{Store: in.Group.Store()})
	if _, err := Run(octtest.Ctx, unreadable, store.Memory(), good, oct.Layout{}, octtest.Small()); !errors.Is(err, oct.ErrInput) {
		t.Errorf("chunks that may not be read: %v", err)
	}
	if _, err := Run(octtest.Ctx, in, octtest.Unwritable{Writer: store.Memory()}, good, oct.Layout{}, octtest.Small()); err == nil || errors.Is(err, oct.ErrInput) {
		t.Errorf("an output that may not be written: %v", err)
	}
}

// Chunks of the output may divide the depth or not.
func TestFocalLayout(t *testing.T) {
	in, _ := octtest.Made(t, []int{10, 32, 32}, []int{10, 16, 16}, nil, nil, func(i int) uint8 { return uint8(i % 251) })
	var want []float32
	for _, l := range []oct.Layout{{}, {Chunks: []int{4, 8, 16}}, {Chunks: []int{4, 8, 8}, Shard: []int{12, 16, 32}, Format: 3}, {Format: 2, Codec: "gzip:1"}} {
		l.Levels = 2
		out, err := Run(octtest.Ctx, in, store.Memory(), Options{SigmaXY: 3, SigmaZ: 1}, l, octtest.Small())
		if err != nil {
			t.Fatal(err)
		}
		var got []float32
		for _, v := range slices.Concat(octtest.Values(t, out.Levels[0].Array), octtest.Values(t, out.Levels[2].Array)) {
			got = append(got, float32(v))
		}
		if want == nil {
			want = got
		}
		octtest.SameBits(t, got, want)
		if l.Chunks != nil && !slices.Equal(out.Levels[0].Array.Chunks(), l.Chunks) {
			t.Errorf("chunks %v, want %v", out.Levels[0].Array.Chunks(), l.Chunks)
		}
	}
}

func TestFocalStopsWithItsContext(t *testing.T) {
	in, _ := octtest.Made(t, []int{4, 64, 64}, []int{4, 8, 8}, nil, nil, func(int) float32 { return 1 })
	c, cancel := context.WithCancel(octtest.Ctx)
	_, err := Run(c, in, store.Memory(), Options{SigmaXY: 3, SigmaZ: 1}, oct.Layout{}, oct.Resources{Workers: 2, Mem: 64 << 20, Progress: func(int64) { cancel() }})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want the cancellation", err)
	}
}
