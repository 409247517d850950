package crop

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"strata/pkg/dtype"
	"strata/pkg/meter"
	"strata/pkg/ngff"
	"strata/pkg/oct"
	"strata/pkg/oct/surface"
	"strata/pkg/phantom"
	"strata/pkg/zarr/codec"
	"strata/pkg/zarr/store"
	"strata/tests/octtest"
)

func below() Options {
	return Options{Depth: 60, PercentileMax: 99.9, MaxFraction: 0.5, SigmaXY: 3, SigmaZ: 2}
}

// sea is a phantom with flat or wavy tissue under water.
func sea(kind dtype.Type, water float64) phantom.Config {
	c := phantom.Default()
	c.Tiles, c.Tile, c.Crop = [2]int{3, 3}, [3]int{64, 32, 40}, [2]int{7, 3}
	c.DType, c.Bowl, c.Water = kind, 0, water
	return c
}

// The water's depth comes back within one voxel, from mosaics and from a slice
// without borders, noise, relief, agarose and vignetting on, whatever the type.
func TestCropFindsTheWater(t *testing.T) {
	for _, kind := range []dtype.Type{dtype.Uint8, dtype.Uint16, dtype.Int16, dtype.Float32, dtype.Float64} {
		depths := []float64{42}
		if kind == dtype.Uint16 {
			depths = []float64{17.5, 42, 80}
		}
		for _, water := range depths {
			s, in := octtest.Specimen(t, sea(kind, water), nil, nil, nil)
			for name, change := range map[string]func(*Options){
				"defaults": func(*Options) {}, "not clipped": func(c *Options) { c.PercentileMax = 100 }, "logarithm": func(c *Options) { c.Log = true },
			} {
				c := below()
				if change(&c); c != below() && kind != dtype.Uint16 {
					continue
				}
				_, m, err := Run(octtest.Ctx, in, store.Memory(), c, oct.Layout{}, octtest.Small())
				if err != nil {
					t.Fatal(err)
				}
				if want := surfaceOf(s); math.Abs(float64(m.Interface)-want) > 1 {
					t.Errorf("%v, %v µm of water, %s: interface at plane %d, the median surface is at %.2f: %+v", kind, water, name, m.Interface, want, m)
				}
			}
		}
	}
}

// surfaceOf is the median depth of the tissue surface over a mosaic's A-lines, in voxels.
func surfaceOf(s *phantom.Specimen) float64 {
	c := s.Config()
	var all []float64
	for i := range c.Tiles[0] {
		for j := range c.Tiles[1] {
			p, n := s.TilePosition(0, i, j), s.TileExtent(i, j)
			for y := range n[0] {
				for x := range n[1] {
					all = append(all, s.Surface(0, p[0]+float64(y), p[1]+float64(x)))
				}
			}
		}
	}
	slices.Sort(all)
	return all[len(all)/2]
}

// What the flags of the search change: the clip, the part of the planes, the
// filters and the logarithm. The voxels that are kept are not clipped.
func TestCropSearches(t *testing.T) {
	const planes, ny, nx = 60, 30, 30
	value := func(i int) float32 {
		z, k := i/(ny*nx), i%(ny*nx)
		switch {
		case z == 4 && k%3 != 1: // dust in the water, over most A-lines: 1 voxel in 90
			return 5e5
		case z < 16:
			return 1
		case z < 40:
			return 100
		}
		return 250 // deeper, and a larger step
	}
	in, _ := octtest.Made(t, []int{planes, ny, nx}, []int{planes, 16, 16}, nil, nil, value)
	for _, c := range []struct {
		name                  string
		percent, fraction, xy float64
		log                   bool
		z                     float64
		want                  int
	}{
		{"dust is clipped", 98, 0.5, 1, false, 2, 16},
		{"dust is not", 100, 0.5, 1, false, 2, 3},
		{"deeper is brighter", 98, 1, 1, false, 2, 40},
		{"in the logarithm the first step is larger", 98, 1, 1, true, 2, 16},
		{"a wider derivative", 98, 0.5, 1, false, 6, 19}, // ⌈16 + 3⌉: it sees the step behind
		{"the last plane that may hold it", 98, 16.0 / 60, 1, false, 2, 16},
		{"one plane less", 98, 15.0 / 60, 1, false, 2, 15},
	} {
		crop := below()
		crop.Depth, crop.BeforeInterface = 70, true
		crop.PercentileMax, crop.MaxFraction, crop.SigmaXY, crop.SigmaZ, crop.Log = c.percent, c.fraction, c.xy, c.z, c.log
		out, m, err := Run(octtest.Ctx, in, store.Memory(), crop, oct.Layout{}, octtest.Small())
		if err != nil {
			t.Fatal(err)
		}
		if m.Interface != c.want {
			t.Errorf("%s: interface at plane %d, want %d: %+v", c.name, m.Interface, c.want, m)
		}
		for i, v := range octtest.Read(t, out.Levels[0].Array) {
			if want := value(i + m.First*ny*nx); v != want {
				t.Fatalf("%s: voxel %d is %v, was %v", c.name, i, v, want)
			}
		}
	}
	// Between any two rows one that is brighter, and deeper: to the mean filter it is as its neighbours.
	rows, _ := octtest.Made(t, []int{planes, ny, nx}, []int{planes, 16, 16}, nil, nil, func(i int) float32 {
		z, deep := i/(ny*nx), i/nx%ny%3 == 1
		switch {
		case deep && z >= 20:
			return 150
		case !deep && z >= 10:
			return 100
		}
		return 1
	})
	for xy, want := range map[float64]int{1: 20, 3: 10} {
		crop := below()
		crop.PercentileMax, crop.SigmaXY, crop.MaxFraction = 100, xy, 1
		_, m, err := Run(octtest.Ctx, rows, store.Memory(), crop, oct.Layout{}, octtest.Small())
		if err != nil {
			t.Fatal(err)
		}
		if m.Interface != want {
			t.Errorf("sigma_xy %v: interface at plane %d, want %d", xy, m.Interface, want)
		}
	}
}

// A stitched slice, in chunks that are no tiles.
func TestCropOfASlice(t *testing.T) {
	c := sea(dtype.Uint16, 42)
	s, err := phantom.New(c)
	if err != nil {
		t.Fatal(err)
	}
	st := store.Memory()
	chain, err := codec.FromFlag("zstd:1", dtype.Uint16, 3)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.WriteTruth(octtest.Ctx, st, 0, phantom.Storage{Format: 3, Chunks: []int{16, 32, 40}, Codecs: chain, Unit: "micrometer", Workers: 2, Mem: 64 << 20}); err != nil {
		t.Fatal(err)
	}
	crop := below()
	crop.BeforeInterface = true
	in := octtest.Open(t, st)
	out, m, err := Run(octtest.Ctx, in, store.Memory(), crop, oct.Layout{Levels: 2}, octtest.Small())
	if err != nil {
		t.Fatal(err)
	}
	if want := surfaceOf(s); math.Abs(float64(m.Interface)-want) > 1 {
		t.Errorf("interface at plane %d, the median surface is at %.2f", m.Interface, want)
	}
	a := out.Levels[0].Array
	if !slices.Equal(a.Chunks(), []int{16, 32, 40}) || a.Shape()[0] != 17 { // 60 µm of 3.5 µm
		t.Errorf("chunks %v, shape %v", a.Chunks(), a.Shape())
	}
	n := a.Shape()[1] * a.Shape()[2]
	if got, want := octtest.Values(t, a), octtest.Values(t, in.Levels[0].Array); !slices.Equal(got, want[m.Interface*n:(m.Interface+17)*n]) {
		t.Error("the planes are not those of the input")
	}
}

// What is kept, by every flag, and where the image ends too soon.
func TestCropKeeps(t *testing.T) {
	const planes, at, ny, nx = 40, 11, 20, 24 // a step up at plane 11
	value := func(i int) uint16 {
		z, k := i/(ny*nx), i%(ny*nx)
		if z < at {
			return uint16(1 + k%3)
		}
		return uint16(1000 + 7*max(0, z-22) + k%5)
	}
	chain := func(flag string) codec.Chain {
		c, err := codec.FromFlag(flag, dtype.Uint16, 3)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	zstd, gzip, blosc := chain("zstd:1"), chain("gzip:1"), chain("blosc-zstd:1")
	for _, c := range []struct {
		name                       string
		depth                      float64
		before, pad                bool
		first, kept, padded, short int
	}{
		{"from the top", 35, false, false, 0, 21, 0, 0},
		{"from the interface", 35, true, false, 11, 10, 0, 0},
		{"half a plane to even", 36.75, true, false, 11, 10, 0, 0},
		{"at least one plane", 0.1, true, false, 11, 1, 0, 0},
		{"too deep", 105, true, false, 11, 29, 0, 1},
		{"too deep, padded", 105, true, true, 11, 29, 1, 0},
		{"padded from the top", 175, false, true, 0, 40, 21, 0},
		{"just enough", 101.5, true, true, 11, 29, 0, 0},
	} {
		for k, stored := range []struct {
			chunks []int
			chain  codec.Chain
		}{{[]int{planes, 10, 10}, nil}, {[]int{7, 10, 24}, nil}, {[]int{planes, 10, 10}, zstd}, {[]int{7, 7, 24}, zstd}, {[]int{planes, 10, 12}, gzip}, {[]int{7, 7, 9}, gzip}, {[]int{planes, 7, 9}, blosc}, {[]int{7, 10, 12}, blosc}} {
			if k > 1 && c.padded+c.short == 0 && c.first == 0 {
				continue
			}
			in, _ := octtest.Made(t, []int{planes, ny, nx}, stored.chunks, nil, stored.chain, value)
			crop := below()
			crop.Depth, crop.BeforeInterface, crop.PadAfter, crop.SigmaXY = c.depth, c.before, c.pad, 1
			var warnings []string
			res := octtest.Small()
			res.Warn = func(w string) { warnings = append(warnings, w) }
			out, m, err := Run(octtest.Ctx, in, store.Memory(), crop, oct.Layout{}, res)
			if err != nil {
				t.Fatal(err)
			}
			if m.Interface != at || m.First != c.first || m.Kept != c.kept || m.Padded != c.padded || m.Missing != c.short || m.Planes != c.kept+c.padded {
				t.Errorf("%s: %+v", c.name, m)
			}
			if (c.short > 0) != (len(warnings) == 1) || c.short > 0 && !strings.Contains(warnings[0], "1 planes before 105 µm") {
				t.Errorf("%s: warnings %q", c.name, warnings)
			}
			got := octtest.Values(t, out.Levels[0].Array)
			if len(got) != m.Planes*ny*nx {
				t.Fatalf("%s: %d voxels", c.name, len(got))
			}
			for i, v := range got {
				want := 0.0
				if i < c.kept*ny*nx {
					want = float64(value(i + c.first*ny*nx))
				}
				if v != want {
					t.Fatalf("%s: voxel %d is %v, want %v", c.name, i, v, want)
				}
			}
		}
	}
}

// The numbers depend on nothing but the voxels.
func TestCropIsTheSameHoweverStored(t *testing.T) {
	chain := func(flag string) codec.Chain {
		c, err := codec.FromFlag(flag, dtype.Float32, 3)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	zstd := chain("zstd:1")
	c := sea(dtype.Float32, 42)
	var want Metrics
	var voxels []float32
	for i, s := range []struct {
		chunks, shard []int
		chain         codec.Chain
		res           oct.Resources
	}{
		{nil, nil, nil, oct.Resources{Workers: 1, Mem: 512 << 20}},
		{nil, nil, zstd, oct.Resources{Workers: 3, Mem: 12 << 20}},
		{[]int{10, 32, 40}, nil, zstd, oct.Resources{Workers: 2, Mem: 64 << 20}},
		{[]int{64, 16, 20}, []int{64, 32, 40}, nil, oct.Resources{Workers: 2, Mem: 12 << 20}},
		{nil, nil, chain("blosc-zstd:1"), oct.Resources{Workers: 2, Mem: 64 << 20}},
		{[]int{10, 32, 40}, nil, chain("blosc-lz4"), oct.Resources{Workers: 3, Mem: 64 << 20}},
		{nil, []int{64, 64, 80}, chain("gzip:1"), oct.Resources{Workers: 2, Mem: 64 << 20}},
	} {
		_, in := octtest.Specimen(t, c, s.chunks, s.shard, s.chain)
		crop := below()
		crop.BeforeInterface = true
		out, m, err := Run(octtest.Ctx, in, store.Memory(), crop, oct.Layout{}, s.res)
		if err != nil {
			t.Fatal(err)
		}
		v := octtest.Read(t, out.Levels[0].Array)
		if i == 0 {
			want, voxels = m, v
			continue
		}
		if m != want {
			t.Errorf("storage %d: %+v, before %+v", i, m, want)
		}
		octtest.SameBits(t, v, voxels)
	}
}

// Of raw chunks no byte is read that has no say: all of them for the percentile,
// the planes that the search sees, the planes that are kept.
func TestCropReadsWhatItNeeds(t *testing.T) {
	const planes, ny, nx = 60, 20, 30
	in, _ := octtest.Made(t, []int{planes, ny, nx}, []int{planes, 20, 10}, nil, nil, func(i int) uint16 { return uint16(1 + 500*(i/(ny*nx)/20)) })
	for percent, want := range map[float64]int{100: 38 + 10, 50: 20 + 60 + 38 + 10} { // a tile of three is looked at first
		crop := below()
		crop.PercentileMax, crop.Depth, crop.BeforeInterface = percent, 35, true
		m := &meter.Meter{}
		_, found, err := Run(octtest.Ctx, in, store.Memory(), crop, oct.Layout{}, oct.Resources{Workers: 2, Mem: 64 << 20, Meter: m})
		if err != nil {
			t.Fatal(err)
		}
		// 30 planes may hold the interface, and the derivative of sigma 2 sees 8 more
		if got := m.BytesRead(); got != int64(want*ny*nx*2) || found.Planes != 10 {
			t.Errorf("percentile %v: read %d bytes, want %d planes, %d", percent, got, want, want*ny*nx*2)
		}
	}
}

// Voxels that are not finite count wherever they are searched or kept, however
// the image is stored.
func TestCropCountsNonFinite(t *testing.T) {
	const planes, ny, nx = 60, 16, 16
	value := func(i int) float32 {
		switch z := i / (ny * nx); {
		case i%(ny*nx) == 100 && (z == 3 || z == 37 || z == 38 || z == 45 || z == 59):
			return float32(math.NaN())
		case z < 20:
			return 1
		}
		return 500
	}
	for _, c := range []struct {
		percent float64
		want    int64
	}{{100, 4}, {99.9, 5}} { // plane 59 is neither searched nor kept
		for _, flag := range []string{"raw", "zstd:1", "gzip:1", "blosc-lz4"} {
			for _, chunks := range [][]int{{planes, 8, 8}, {planes, 7, 9}, {25, 8, 8}} {
				chain, err := codec.FromFlag(flag, dtype.Float32, 3)
				if err != nil {
					t.Fatal(err)
				}
				in, _ := octtest.Made(t, []int{planes, ny, nx}, chunks, nil, chain, value)
				crop := below()
				crop.PercentileMax, crop.Depth = c.percent, 28*3.5 // planes up to 19 + 28
				mt := &meter.Meter{}
				_, m, err := Run(octtest.Ctx, in, store.Memory(), crop, oct.Layout{}, oct.Resources{Workers: 2, Mem: 64 << 20, Meter: mt})
				if err != nil {
					t.Fatal(err)
				}
				if m.NonFinite != c.want || mt.NonFinite() != c.want || m.Kept != m.Interface+28 {
					t.Errorf("percentile %v, %s, chunks %v: %d and %d, want %d: %+v", c.percent, flag, chunks, m.NonFinite, mt.NonFinite(), c.want, m)
				}
			}
		}
	}
}

// NaN and infinite voxels become 0 when asked for, and no others change, in both types that have such.
func TestCropZeroesNonFinite(t *testing.T) {
	t.Run("float32", zeroesNonFinite[float32])
	t.Run("float64", zeroesNonFinite[float64])
}

func zeroesNonFinite[T float32 | float64](t *testing.T) {
	const planes, ny, nx = 30, 16, 16
	bad := map[int]float64{12*ny*nx + 3: math.NaN(), 13*ny*nx + 200: math.Inf(1), 20*ny*nx + 255: math.Inf(-1)}
	value := func(i int) T {
		if v, is := bad[i]; is {
			return T(v)
		}
		return T(1 + 499*min(i/(10*ny*nx), 1) + i%7)
	}
	for _, chunks := range [][]int{{planes, 8, 8}, {7, 9, 16}} {
		in, _ := octtest.Made(t, []int{planes, ny, nx}, chunks, nil, nil, value)
		for _, zero := range []bool{false, true} {
			crop := below()
			crop.PercentileMax, crop.Depth, crop.ZeroNonFinite = 100, 15*3.5, zero
			var warnings []string
			res := oct.Resources{Workers: 2, Mem: 64 << 20, Warn: func(m string) { warnings = append(warnings, m) }}
			im, m, err := Run(octtest.Ctx, in, store.Memory(), crop, oct.Layout{}, res)
			if err != nil {
				t.Fatal(err)
			}
			said := map[bool]string{false: "they stay in the output", true: "they are 0 in the output"}[zero]
			if m.NonFinite != 3 || m.First+m.Kept <= 20 || len(warnings) != 1 || !strings.Contains(warnings[0], said) {
				t.Errorf("zero_nonfinite %v: %+v, %q", zero, m, warnings)
			}
			v := octtest.Values(t, im.Levels[0].Array)
			if len(v) != m.Kept*ny*nx {
				t.Fatalf("%d voxels in %d planes", len(v), m.Kept)
			}
			for i := range v {
				at := i + m.First*ny*nx
				want := float64(value(at))
				if _, is := bad[at]; is && zero {
					want = 0
				}
				if got := v[i]; got != want && !(math.IsNaN(got) && math.IsNaN(want)) {
					t.Fatalf("zero_nonfinite %v, voxel %d: %v, want %v", zero, at, got, want)
				}
			}
		}
	}
}

// The clip is the exact percentile of the magnitudes; NaN has no part in it.
func TestCropPercentile(t *testing.T) {
	value := func(i int) float32 {
		switch {
		case i%1000 == 7:
			return float32(math.NaN())
		case i%1000 == 8:
			return float32(math.Inf(-1))
		}
		return float32(i*i%7919)*1e-3 - 3
	}
	in, _ := octtest.Made(t, []int{10, 30, 40}, []int{10, 16, 16}, nil, nil, value)
	var all []float64
	for i := range 10 * 30 * 40 {
		if v := float64(value(i)); v-v == 0 {
			all = append(all, math.Abs(v))
		}
	}
	slices.Sort(all)
	for _, percent := range []float64{0, 10, 99.9, 100} {
		crop := below()
		crop.PercentileMax = percent
		mt := &meter.Meter{}
		_, m, err := Run(octtest.Ctx, in, store.Memory(), crop, oct.Layout{}, oct.Resources{Workers: 2, Mem: 64 << 20, Meter: mt})
		if err != nil {
			t.Fatal(err)
		}
		pos := percent / 100 * float64(len(all)-1)
		k := int(pos)
		want := all[k] + (all[min(k+1, len(all)-1)]-all[k])*(pos-float64(k))
		if percent == 100 {
			want = 0 // nothing is clipped
		}
		if math.Abs(m.Clip-want) > 1e-6*want {
			t.Errorf("percentile %v: %v, want %v", percent, m.Clip, want)
		}
		if m.NonFinite != 24 || mt.NonFinite() != 24 {
			t.Errorf("percentile %v: %d voxels are not finite, %d counted, want 24", percent, m.NonFinite, mt.NonFinite())
		}
	}
}

// Nothing brightens: all planes from the first, and a warning.
func TestCropOfFlatImages(t *testing.T) {
	for _, shape := range [][]int{{20, 16, 16}, {1, 9, 9}} {
		for _, v := range []float32{0, 5} {
			in, _ := octtest.Made(t, shape, []int{20, 8, 8}, nil, nil, func(int) float32 { return v })
			var warnings []string
			res := octtest.Small()
			res.Warn = func(w string) { warnings = append(warnings, w) }
			crop := below()
			crop.Depth, crop.BeforeInterface, crop.PadAfter = 35, true, true
			out, m, err := Run(octtest.Ctx, in, store.Memory(), crop, oct.Layout{}, res)
			if err != nil {
				t.Fatal(err)
			}
			if m.Found || m.Interface != 0 || m.Planes != 10 || out.Levels[0].Array.Shape()[0] != 10 {
				t.Errorf("shape %v of %v: %+v", shape, v, m)
			}
			if len(warnings) != 1 || !strings.Contains(warnings[0], "brightens nowhere") {
				t.Errorf("shape %v of %v: warnings %q", shape, v, warnings)
			}
		}
	}
}

func TestCropRefuses(t *testing.T) {
	in, _ := octtest.Made(t, []int{8, 32, 32}, []int{8, 16, 16}, nil, nil, func(i int) uint8 { return uint8(i / 1024 * 9) })
	for _, c := range []struct {
		name   string
		change func(*Options)
		layout oct.Layout
		mem    int64
		is     error
		want   string
	}{
		{"depth 0", func(c *Options) { c.Depth = 0 }, oct.Layout{}, 64 << 20, oct.ErrLayout, "--depth is 0"},
		{"percentile", func(c *Options) { c.PercentileMax = 101 }, oct.Layout{}, 64 << 20, oct.ErrLayout, "--percentile_max is 101"},
		{"fraction", func(c *Options) { c.MaxFraction = 0 }, oct.Layout{}, 64 << 20, oct.ErrLayout, "--max_interface_fraction is 0"},
		{"sigma", func(c *Options) { c.SigmaZ = -1 }, oct.Layout{}, 64 << 20, oct.ErrLayout, "--sigma_z"},
		{"terabytes of zeros", func(c *Options) { c.Depth, c.PadAfter = 1e12, true }, oct.Layout{}, 64 << 20, oct.ErrLayout, "is it meant to be in µm"},
		{"chunks", func(*Options) {}, oct.Layout{Chunks: []int{4, 16, 5}}, 64 << 20, oct.ErrLayout, "--chunks"},
		{"memory", func(*Options) {}, oct.Layout{}, 1 << 20, nil, "--mem grants 1 MiB"},
	} {
		crop := below()
		c.change(&crop)
		_, _, err := Run(octtest.Ctx, in, store.Memory(), crop, c.layout, oct.Resources{Workers: 1, Mem: c.mem})
		if err == nil || c.is != nil && !errors.Is(err, c.is) || c.is == nil && errors.Is(err, oct.ErrInput) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	if _, _, err := Run(octtest.Ctx, octtest.Open(t, octtest.Locked{Store: in.Group.Store()}), store.Memory(), below(), oct.Layout{}, octtest.Small()); !errors.Is(err, oct.ErrInput) {
		t.Errorf("chunks that may not be read: %v", err)
	}
}

// The first voxel's position moves with the planes that are cut off.
func TestCropTranslation(t *testing.T) {
	st := store.Memory()
	w, err := ngff.Create(octtest.Ctx, st, "", ngff.ImageSpec{Format: 3, Shape: []int{30, 8, 8}, Chunks: []int{30, 8, 8}, DType: dtype.Uint8,
		Axes: ngff.SpaceAxes("zyx", "micrometer"), Scale: []float64{2, 1, 1}, Translation: []float64{5, 6, 7}})
	if err != nil {
		t.Fatal(err)
	}
	v := make([]byte, 30*64)
	for i := range v {
		if i >= 9*64 {
			v[i] = 200
		}
	}
	if err := w.WriteTile(octtest.Ctx, []int{0, 0, 0}, []int{30, 8, 8}, v); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(octtest.Ctx); err != nil {
		t.Fatal(err)
	}
	crop := below()
	crop.Depth, crop.BeforeInterface = 20, true
	out, m, err := Run(octtest.Ctx, octtest.Open(t, st), store.Memory(), crop, oct.Layout{}, octtest.Small())
	if err != nil {
		t.Fatal(err)
	}
	if got := out.Levels[0].Translation; m.First != 9 || !slices.Equal(got, []float64{23, 6, 7}) {
		t.Errorf("from plane %d: translation %v, want 5 + 9·2 along z", m.First, got)
	}
}

// Noise has no interface: the plane that is cut at is told to be a guess.
func TestNoise(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	in, _ := octtest.Made(t, []int{30, 96, 96}, []int{30, 48, 48}, nil, nil, func(int) float32 { return float32(100 + 10*rng.NormFloat64()) })
	var warned []string
	res := octtest.Small()
	res.Warn = func(s string) { warned = append(warned, s) }
	_, found, err := Run(octtest.Ctx, in, store.Memory(), below(), oct.Layout{}, res)
	if err != nil || !found.Noise || !strings.Contains(strings.Join(warned, "\n"), surface.NoiseText) {
		t.Errorf("%+v, %v, %q", found, err, warned)
	}
}
