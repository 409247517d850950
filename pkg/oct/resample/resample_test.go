package resample

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"strata/pkg/dtype"
	"strata/pkg/meter"
	"strata/pkg/ngff"
	"strata/pkg/oct"
	"strata/pkg/zarr/codec"
	"strata/pkg/zarr/store"
	"strata/tests/golden"
	"strata/tests/octtest"
)

func isotropic(um float64) Options {
	return Options{Resolution: [3]float64{um, um, um}, Prefetch: 8}
}

func TestResampleGolden(t *testing.T) {
	for _, c := range golden.Cases(t, "resample") {
		t.Run(c.Name, func(t *testing.T) {
			var p struct {
				Resolution float64
				Levels     int `json:"n_levels"`
			}
			if err := json.Unmarshal(c.Params, &p); err != nil {
				t.Fatal(err)
			}
			in := octtest.Open(t, store.Folder(golden.Input(t, c)))
			to := isotropic(p.Resolution)
			to.Corner = true
			out, err := Run(octtest.Ctx, in, store.Memory(), to, oct.Layout{Levels: p.Levels}, octtest.Small())
			if err != nil {
				t.Fatal(err)
			}
			if len(out.Levels) != len(c.VoxelSize) {
				t.Fatalf("%d levels, want %d", len(out.Levels), len(c.VoxelSize))
			}
			if got := out.Levels[0].Array.Chunks(); !slices.Equal(got, c.Chunks) {
				t.Errorf("chunks %v, want %v", got, c.Chunks)
			}
			for k, level := range out.Levels {
				want := c.Arrays[fmt.Sprintf("level%d", k)]
				if !slices.Equal(level.Array.Shape(), want.Shape) || level.Array.DType() != want.Type {
					t.Fatalf("level %d: %v of shape %v, want %v of %v", k, level.Array.DType(), level.Array.Shape(), want.Type, want.Shape)
				}
				got := octtest.Values(t, level.Array)
				var i, off, ties int
				dtype.Each(want.Data, want.Type, func(w float64) {
					d := math.Abs(got[i] - w)
					if !(d <= c.Tolerance.Abs+c.Tolerance.Rel*math.Abs(w)) {
						off++
					} else if k == 0 && want.Type.IsInteger() && d > 0 {
						ties++ // float32 on one side of a half, float64 on the other
					}
					i++
				})
				if float64(off) > c.Tolerance.Off*float64(i) {
					t.Errorf("level %d: %d of %d voxels differ", k, off, i)
				}
				if ties > i/1000 {
					t.Errorf("level %d: %d of %d voxels are rounded the other way", k, ties, i)
				}
			}
			octtest.CheckVoxels(t, out, c.VoxelSize[0])
		})
	}
}

// definition resamples a mosaic as the specification words it: tile by tile,
// first a blur along every axis that shrinks, then linear sampling, in float64.
func definition(v []float64, shape, tile [3]int, voxel, target [3]float64, corner bool) (out []float64, outShape [3]int) {
	tile[0] = shape[0]
	type piece struct {
		from, n, to, m int
		f              float64 // voxels of the mosaic in one of the output
	}
	var pieces [3][]piece
	for d := range 3 {
		for from := 0; from < shape[d]; from += tile[d] {
			n := min(tile[d], shape[d]-from)
			m := max(1, int(math.RoundToEven(float64(n)*voxel[d]/target[d])))
			f := float64(n) / float64(m)
			if !corner { // as far apart as in whole tiles
				f = float64(tile[d]) / max(1, math.RoundToEven(float64(tile[d])*voxel[d]/target[d]))
				m = max(1, int(math.RoundToEven(float64(n)/f)))
			}
			pieces[d] = append(pieces[d], piece{from, n, outShape[d], m, f})
			outShape[d] += m
		}
	}
	out = make([]float64, outShape[0]*outShape[1]*outShape[2])
	for _, pz := range pieces[0] {
		for _, py := range pieces[1] {
			for _, px := range pieces[2] {
				a := newVolume(pz.n, py.n, px.n)
				a.each(func(z, y, x int) float64 {
					return v[((pz.from+z)*shape[1]+py.from+y)*shape[2]+px.from+x]
				})
				for d, p := range []piece{pz, py, px} {
					a = a.resampled(d, p.m, p.f, corner)
				}
				for z := range pz.m {
					for y := range py.m {
						for x := range px.m {
							out[((pz.to+z)*outShape[1]+py.to+y)*outShape[2]+px.to+x] = a.at(z, y, x)
						}
					}
				}
			}
		}
	}
	return out, outShape
}

type volume struct {
	n [3]int
	v []float64
}

func newVolume(z, y, x int) *volume { return &volume{[3]int{z, y, x}, make([]float64, z*y*x)} }

func (a *volume) at(z, y, x int) float64 { return a.v[(z*a.n[1]+y)*a.n[2]+x] }

func (a *volume) each(f func(z, y, x int) float64) {
	for z := range a.n[0] {
		for y := range a.n[1] {
			for x := range a.n[2] {
				a.v[(z*a.n[1]+y)*a.n[2]+x] = f(z, y, x)
			}
		}
	}
}

// resampled blurs an axis and samples it m times, every f voxels or from corner to corner.
func (a *volume) resampled(axis, m int, f float64, corner bool) *volume {
	n := a.n[axis]
	line := func(at [3]int) []float64 {
		l := make([]float64, n)
		for i := range l {
			at[axis] = i
			l[i] = a.at(at[0], at[1], at[2])
		}
		if f > 1 {
			l = blur(l, (f-1)/2)
		}
		return l
	}
	shape := a.n
	shape[axis] = m
	b := newVolume(shape[0], shape[1], shape[2])
	lines := map[[3]int][]float64{}
	b.each(func(z, y, x int) float64 {
		at := [3]int{z, y, x}
		i := at[axis]
		at[axis] = 0
		if lines[at] == nil {
			lines[at] = line(at)
		}
		pos := min(max((float64(i)+0.5)*f-0.5, 0), float64(n-1))
		if corner {
			pos = float64(i) * float64(n-1) / float64(max(m-1, 1))
		}
		k := min(int(pos), n-1)
		next := min(k+1, n-1)
		return lines[at][k] + (pos-float64(k))*(lines[at][next]-lines[at][k])
	})
	return b
}

// blur is a Gaussian of 4 sigma on either side, the edge sample repeated.
func blur(l []float64, sigma float64) []float64 {
	r := math.Floor(4*sigma + 0.5)
	out := make([]float64, len(l))
	for i := range l {
		var sum, norm float64
		for j := -r; j <= r; j++ {
			g := math.Exp(-0.5 * j * j / (sigma * sigma))
			k := i + int(j)
			for k < 0 || k >= len(l) {
				if k < 0 {
					k = -k - 1
				} else {
					k = 2*len(l) - 1 - k
				}
			}
			sum, norm = sum+g*l[k], norm+g
		}
		out[i] = sum / norm
	}
	return out
}

func TestResampleAgainstDefinition(t *testing.T) {
	t.Run("uint8", func(t *testing.T) { againstDefinition(t, 100, func(u uint64) uint8 { return uint8(u) }) })
	t.Run("int8", func(t *testing.T) { againstDefinition(t, 50, func(u uint64) int8 { return int8(u) }) })
	t.Run("uint16", func(t *testing.T) { againstDefinition(t, 2e4, func(u uint64) uint16 { return uint16(u) }) })
	t.Run("int16", func(t *testing.T) { againstDefinition(t, 1e4, func(u uint64) int16 { return int16(u) }) })
	t.Run("uint32", func(t *testing.T) { againstDefinition(t, 1e9, func(u uint64) uint32 { return uint32(u) }) })
	t.Run("int32", func(t *testing.T) { againstDefinition(t, 1e9, func(u uint64) int32 { return int32(u) }) })
	t.Run("uint64", func(t *testing.T) { againstDefinition(t, 1e19, func(u uint64) uint64 { return u }) })
	t.Run("int64", func(t *testing.T) { againstDefinition(t, 1e19, func(u uint64) int64 { return int64(u) }) })
	t.Run("float32", func(t *testing.T) {
		againstDefinition(t, 1, func(u uint64) float32 { return float32(u>>40) / (1 << 24) })
	})
	t.Run("float64", func(t *testing.T) {
		againstDefinition(t, 1e100, func(u uint64) float64 { return float64(u>>11) / (1 << 53) })
	})
}

type definitionCase struct {
	shape, tile [3]int
	target      [3]float64
}

// twice has each case two times in a row: for either way of sampling.
func twice(cases []definitionCase) (all []definitionCase) {
	for _, c := range cases {
		all = append(all, c, c)
	}
	return all
}

// againstDefinition compares mosaics of one type, of magnitude large: 2e-6 of it,
// or for integers a half more, is float32's due.
func againstDefinition[T dtype.Element](t *testing.T, large float64, value func(u uint64) T) {
	if dtype.Of[T]() == dtype.Float64 {
		large = 1
	}
	r := rand.New(rand.NewPCG(21, 22))
	for n, c := range twice([]definitionCase{
		{[3]int{20, 32, 32}, [3]int{20, 16, 16}, [3]float64{10, 10, 10}},
		{[3]int{20, 37, 21}, [3]int{8, 16, 9}, [3]float64{10, 10, 10}},   // partial tiles, chunks along z
		{[3]int{9, 17, 13}, [3]int{9, 16, 12}, [3]float64{1.7, 1.3, 9}},  // finer and coarser; an edge of one voxel
		{[3]int{1, 11, 12}, [3]int{1, 5, 12}, [3]float64{50, 1, 2}},      // Z = 1
		{[3]int{3, 4, 5}, [3]int{64, 64, 64}, [3]float64{100, 100, 100}}, // one tile, one voxel
		{[3]int{30, 8, 8}, [3]int{7, 8, 8}, [3]float64{21, 2, 1.5}},      // z shrinks, x grows
	}) {
		shape, tile := c.shape[:], c.tile[:]
		v := octtest.Made3(shape, func(int) T { return value(r.Uint64()) })
		in := octtest.MosaicOf(t, ngff.ImageSpec{Format: 3, Shape: shape, Chunks: tile}, v)
		corner := n%2 == 1
		out, err := Run(octtest.Ctx, in, store.Memory(), Options{Resolution: c.target, Prefetch: 2, Corner: corner}, oct.Layout{}, octtest.Small())
		if err != nil {
			t.Fatal(err)
		}
		f := make([]float64, len(v))
		for i := range v {
			f[i] = float64(v[i])
		}
		want, wantShape := definition(f, c.shape, [3]int{tile[0], min(tile[1], shape[1]), min(tile[2], shape[2])}, [3]float64{3.5, 2, 2}, c.target, corner)
		a := out.Levels[0].Array
		if !slices.Equal(a.Shape(), wantShape[:]) || a.DType() != dtype.Of[T]() {
			t.Fatalf("%v to %v: %v of shape %v, want %v", shape, c.target, a.DType(), a.Shape(), wantShape)
		}
		tolerance := 2e-6 * large
		if a.DType().IsInteger() {
			tolerance += 0.5
		}
		for i, g := range octtest.Values(t, a) {
			if !(math.Abs(g-want[i]) <= tolerance) {
				t.Fatalf("%v to %v: voxel %d is %v, want %v", shape, c.target, i, g, want[i])
			}
		}
	}
}

// The numbers depend on nothing but the voxels and the tiles: not on chunks
// along z, shards, codecs, workers, memory or what is read ahead.
func TestResampleIsTheSameHoweverStored(t *testing.T) {
	zstd, err := codec.FromFlag("zstd:1", dtype.Float32, 3)
	if err != nil {
		t.Fatal(err)
	}
	blosc, err := codec.FromFlag("blosc-zstd:1", dtype.Float32, 3)
	if err != nil {
		t.Fatal(err)
	}
	shape := []int{23, 70, 90}
	v := octtest.Made3(shape, func(i int) float32 {
		return float32(rand.New(rand.NewPCG(9, uint64(i))).NormFloat64() * math.Exp(float64(i%13)))
	})
	for _, target := range []Options{isotropic(10), {Resolution: [3]float64{1.5, 9, 5}, Prefetch: 1}, {Resolution: [3]float64{20, 2, 1}, Prefetch: 3}} {
		var want []float32
		for _, s := range []struct {
			name   string
			z      int
			shard  []int
			chain  codec.Chain
			format int
		}{
			{"whole columns, raw", 23, nil, nil, 3},
			{"chunks along z, raw", 5, nil, nil, 2},
			{"chunks along z, zstd", 5, nil, zstd, 3},
			{"shards", 8, []int{24, 64, 96}, blosc, 3},
			{"long chunk", 64, nil, blosc, 3},
		} {
			in := octtest.MosaicOf(t, ngff.ImageSpec{Format: s.format, Shape: shape, Chunks: []int{s.z, 32, 32}, Shard: s.shard, Codecs: s.chain}, v)
			for _, workers := range []int{1, 3} {
				target.Prefetch = 2*workers - 1
				out, err := Run(octtest.Ctx, in, store.Memory(), target, oct.Layout{Levels: 2}, oct.Resources{Workers: workers, Mem: int64(5<<20) << workers})
				if err != nil {
					t.Fatal(err)
				}
				got := octtest.Read(t, out.Levels[0].Array)
				if want == nil {
					want = got
				}
				octtest.SameBits(t, got, want)
			}
		}
	}
}

// One tile is shared by all processors, and has the same bytes: planes are filtered by several, and added in their
// order.
func TestResampleSharesATile(t *testing.T) {
	zstd, err := codec.FromFlag("zstd:1", dtype.Float32, 3)
	if err != nil {
		t.Fatal(err)
	}
	shape := []int{90, 150, 160}
	const nans = (90*150*160 + 100_002) / 100_003
	v := octtest.Made3(shape, func(i int) float32 {
		if i%100_003 == 0 {
			return float32(math.NaN())
		}
		return float32(rand.New(rand.NewPCG(5, uint64(i))).NormFloat64() * math.Exp(float64(i%13)))
	})
	in := octtest.MosaicOf(t, ngff.ImageSpec{Format: 3, Shape: shape, Chunks: shape, Codecs: zstd}, v)
	for _, target := range []Options{isotropic(10), {Resolution: [3]float64{20, 2, 1}}} {
		var want []float32
		for _, workers := range []int{1, 8, 8, 8} {
			m := &meter.Meter{}
			out, err := Run(octtest.Ctx, in, store.Memory(), target, oct.Layout{}, oct.Resources{Workers: workers, Mem: 256 << 20, Meter: m})
			if err != nil {
				t.Fatal(err)
			}
			if m.NonFinite() != nans {
				t.Errorf("%d workers: %d voxels counted, want %d", workers, m.NonFinite(), nans)
			}
			got := octtest.Read(t, out.Levels[0].Array)
			if want == nil {
				want = got
			}
			octtest.SameBits(t, got, want)
		}
	}
}

// A raw plane larger than a piece is read whole; a chunk of a prime number of
// rows is read where it lies.
func TestResampleOfLargePlanes(t *testing.T) {
	shape := []int{5, 1018, 403}
	v := octtest.Made3(shape, func(i int) float32 { return float32(i * 7919 % 10007) })
	var want []float32
	for _, chain := range []codec.Chain{nil, {codec.CRC32C()}} {
		in := octtest.MosaicOf(t, ngff.ImageSpec{Format: 3, Shape: shape, Chunks: []int{3, 509, 401}, Codecs: chain}, v)
		m := &meter.Meter{}
		var done atomic.Int64
		out, err := Run(octtest.Ctx, in, store.Memory(), isotropic(10), oct.Layout{}, oct.Resources{Workers: 1, Mem: 64 << 20, Meter: m, Progress: func(n int64) { done.Add(n) }})
		if err != nil {
			t.Fatal(err)
		}
		if total := int64(4 * len(v)); done.Load() != total || m.BytesRead() < total {
			t.Errorf("progress counted %d bytes, the meter %d, of %d", done.Load(), m.BytesRead(), total)
		}
		got := octtest.Read(t, out.Levels[0].Array)
		if want == nil {
			want = got
		}
		octtest.SameBits(t, got, want)
	}
}

// At its own voxel size a mosaic stays as it is, partial tiles and NaN too.
func TestResampleToTheSameVoxelSize(t *testing.T) {
	shape := []int{6, 21, 17}
	v := octtest.Made3(shape, func(i int) float32 { return float32(i%97) - 40 })
	v[100], v[900] = float32(math.NaN()), float32(math.Inf(-1))
	in := octtest.MosaicOf(t, ngff.ImageSpec{Format: 3, Shape: shape, Chunks: []int{4, 8, 8}}, v)
	m := &meter.Meter{}
	out, err := Run(octtest.Ctx, in, store.Memory(), Options{Resolution: [3]float64{3.5, 2, 2}, Prefetch: 1}, oct.Layout{}, oct.Resources{Workers: 2, Mem: 64 << 20, Meter: m})
	if err != nil {
		t.Fatal(err)
	}
	octtest.SameBits(t, octtest.Read(t, out.Levels[0].Array), v)
	if m.NonFinite() != 2 {
		t.Errorf("%d non-finite voxels counted, want 2", m.NonFinite())
	}
	long := octtest.Made3(shape, func(i int) int16 { return int16(i * 7919) })
	in16 := octtest.MosaicOf(t, ngff.ImageSpec{Format: 2, Shape: shape, Chunks: []int{6, 8, 8}}, long)
	out, err = Run(octtest.Ctx, in16, store.Memory(), Options{Resolution: [3]float64{3.5, 2, 2}, Prefetch: 1}, oct.Layout{}, octtest.Small())
	if err != nil {
		t.Fatal(err)
	}
	for i, g := range octtest.Values(t, out.Levels[0].Array) {
		if g != float64(long[i]) {
			t.Fatalf("voxel %d: %v, want %d", i, g, long[i])
		}
	}
}

// Constant mosaics stay constant, at the ends of the integers' range too.
func TestResampleOfConstants(t *testing.T) {
	shape := []int{11, 30, 30}
	for _, c := range []uint16{0, 1, 12345, math.MaxUint16} {
		in := octtest.MosaicOf(t, ngff.ImageSpec{Format: 3, Shape: shape, Chunks: []int{11, 16, 16}}, octtest.Made3(shape, func(int) uint16 { return c }))
		for _, um := range []float64{10, 1.1} {
			out, err := Run(octtest.Ctx, in, store.Memory(), isotropic(um), oct.Layout{}, octtest.Small())
			if err != nil {
				t.Fatal(err)
			}
			for i, g := range octtest.Values(t, out.Levels[0].Array) {
				if g != float64(c) {
					t.Fatalf("%v µm: voxel %d is %v, want %d", um, i, g, c)
				}
			}
		}
	}
}

// A NaN spoils the voxels whose filter it lies in and is counted; everything
// else is as without it.
func TestResampleOfNonFiniteVoxels(t *testing.T) {
	shape := []int{40, 64, 64}
	clean := octtest.Made3(shape, func(i int) float32 { return float32(i % 1009) })
	dirty := slices.Clone(clean)
	at := func(z, y, x int) int { return (z*64+y)*64 + x }
	dirty[at(20, 10, 10)], dirty[at(21, 10, 11)], dirty[at(39, 63, 63)] = float32(math.NaN()), float32(math.NaN()), float32(math.Inf(1))
	for _, target := range []Options{isotropic(10), {Resolution: [3]float64{14, 2, 1.5}, Prefetch: 8}} {
		var got [2][]float32
		var m meter.Meter
		var outShape []int
		for k, v := range [][]float32{clean, dirty} {
			in := octtest.MosaicOf(t, ngff.ImageSpec{Format: 3, Shape: shape, Chunks: []int{40, 32, 32}}, v)
			out, err := Run(octtest.Ctx, in, store.Memory(), target, oct.Layout{}, oct.Resources{Workers: 1, Mem: 64 << 20, Meter: &m})
			if err != nil {
				t.Fatal(err)
			}
			got[k], outShape = octtest.Read(t, out.Levels[0].Array), out.Levels[0].Array.Shape()
		}
		if m.NonFinite() != 3 {
			t.Errorf("%d voxels counted, want 3", m.NonFinite())
		}
		spoiled := 0
		for i, v := range got[1] {
			y, x := i/outShape[2]%outShape[1], i%outShape[2]
			far := (y >= outShape[1]/2) != (x >= outShape[2]/2) // the tiles without any
			switch finite := v-v == 0; {
			case !finite && far:
				t.Fatalf("voxel %d of a clean tile is %v", i, v)
			case finite && v != got[0][i]:
				t.Fatalf("voxel %d: %v, without NaN %v", i, v, got[0][i])
			case !finite:
				spoiled++
			}
		}
		if spoiled == 0 || spoiled > len(got[1])/4 {
			t.Errorf("%d of %d voxels are spoiled", spoiled, len(got[1]))
		}
	}
	// float64 beyond float32 becomes infinite, but is no infinity of the input
	m := &meter.Meter{}
	big := octtest.MosaicOf(t, ngff.ImageSpec{Format: 3, Shape: []int{1, 4, 4}, Chunks: []int{1, 4, 4}}, octtest.Made3([]int{1, 4, 4}, func(int) float64 { return 1e300 }))
	if _, err := Run(octtest.Ctx, big, store.Memory(), isotropic(4), oct.Layout{}, oct.Resources{Workers: 1, Mem: 64 << 20, Meter: m}); err != nil || m.NonFinite() != 0 {
		t.Errorf("%v, %d voxels counted, want none", err, m.NonFinite())
	}
}

// Lengths are written in the unit that the input has.
func TestResampleKeepsUnitAndOrigin(t *testing.T) {
	in := octtest.MosaicOf(t, ngff.ImageSpec{Format: 3, Name: "mosaic", Shape: []int{8, 8, 8}, Chunks: []int{8, 8, 8}, Axes: ngff.SpaceAxes("zyx", "nanometer"),
		Scale: []float64{3500, 2000, 2000}, Translation: []float64{1, 20, 300}}, make([]uint8, 512))
	for _, c := range []struct {
		corner             bool
		x                  float64 // µm
		scale, translation []float64
	}{
		{false, 8, []float64{7000, 4000, 8000}, []float64{1751, 1020, 3300}},
		{false, 3, []float64{7000, 4000, 3200}, []float64{1751, 1020, 900}}, // 8 voxels become 5
		{true, 8, []float64{7000, 4000, 8000}, []float64{1, 20, 300}},
		{true, 3, []float64{7000, 4000, 3000}, []float64{1, 20, 300}},
	} {
		to := Options{Resolution: [3]float64{7, 4, c.x}, Corner: c.corner}
		out, err := Run(octtest.Ctx, in, store.Memory(), to, oct.Layout{Levels: 1}, octtest.Small())
		if err != nil {
			t.Fatal(err)
		}
		l := out.Levels[0]
		if !slices.Equal(l.Scale, c.scale) || !slices.Equal(l.Translation, c.translation) || out.Axes[2].Unit != "nanometer" || out.Name != "mosaic" {
			t.Errorf("%q: scale %v, translation %v in %s", out.Name, l.Scale, l.Translation, out.Axes[2].Unit)
		}
	}
}

func TestResampleRefuses(t *testing.T) {
	cube := func(spec ngff.ImageSpec) *ngff.Image {
		spec.Format, spec.Shape, spec.Chunks = 3, []int{64, 64, 64}, []int{64, 64, 64}
		return octtest.MosaicOf(t, spec, make([]float32, 64*64*64))
	}
	plain := cube(ngff.ImageSpec{})
	for name, c := range map[string]struct {
		in   *ngff.Image
		to   Options
		is   error
		text string
	}{
		"terabytes":       {plain, isotropic(0.001), oct.ErrLayout, "TiB"},
		"beyond counting": {plain, isotropic(1e-300), oct.ErrLayout, "along z: voxel size 1e-300 µm"},
		"zero":            {plain, Options{Resolution: [3]float64{1, 0, 1}, Prefetch: 1}, oct.ErrLayout, "along y: voxel size 0 µm"},
		"not a number":    {plain, isotropic(math.NaN()), oct.ErrLayout, "along z: voxel size NaN µm"},
		"not of space": {cube(ngff.ImageSpec{Axes: []ngff.Axis{{Name: "z", Type: ngff.TypeSpace, Unit: "micrometer"},
			{Name: "y", Type: ngff.TypeSpace, Unit: "micrometer"}, {Name: "x", Type: ngff.TypeSpace}}}), isotropic(10), nil, ""}, // a guess, with a warning
		"tiny voxels": {cube(ngff.ImageSpec{Scale: []float64{1e-3, 2, 2}}), isotropic(10), nil, ""}, // one voxel remains
		"huge voxels": {cube(ngff.ImageSpec{Scale: []float64{1e6, 2, 2}}), isotropic(0.001), oct.ErrLayout, "TiB"},
	} {
		_, err := Run(octtest.Ctx, c.in, store.Memory(), c.to, oct.Layout{}, octtest.Small())
		switch {
		case c.text == "":
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
		case !errors.Is(err, c.is) || !strings.Contains(err.Error(), c.text):
			t.Errorf("%s: %v, want %v with %q", name, err, c.is, c.text)
		}
	}
}

// The memory that a refusal asks for is enough, for a chunk and for what it grows to.
func TestResampleSaysWhatItNeeds(t *testing.T) {
	in := octtest.MosaicOf(t, ngff.ImageSpec{Format: 3, Shape: []int{64, 64, 64}, Chunks: []int{64, 64, 64}, Codecs: codec.Chain{codec.CRC32C()}}, make([]float32, 64*64*64))
	for _, um := range []float64{10, 1.2} {
		_, err := Run(octtest.Ctx, in, store.Memory(), isotropic(um), oct.Layout{Levels: 3}, oct.Resources{Workers: 2, Mem: 1 << 20})
		var shape, to [3]int
		var need, mem int64
		if err == nil {
			t.Fatalf("%v µm in 1 MiB: no error", um)
		}
		text := err.Error()[strings.Index(err.Error(), "resampling"):]
		if _, scan := fmt.Sscanf(text, "resampling tiles of [%d %d %d] voxels to [%d %d %d] needs %d MiB of buffers, --mem grants %d MiB",
			&shape[0], &shape[1], &shape[2], &to[0], &to[1], &to[2], &need, &mem); scan != nil || mem != 1 {
			t.Fatalf("%v (%v)", err, scan)
		}
		if errors.Is(err, oct.ErrInput) || errors.Is(err, oct.ErrLayout) {
			t.Errorf("%v: it is not the input's fault", err)
		}
		if _, err := Run(octtest.Ctx, in, store.Memory(), isotropic(um), oct.Layout{Levels: 3}, oct.Resources{Workers: 2, Mem: need << 20}); err != nil {
			t.Errorf("with %d MiB: %v", need, err)
		}
	}
}

// A raw tile may be larger than the memory, of a Blosc tile the encoded chunk counts:
// only its planes pass through.
func TestResampleOfTilesBeyondMemory(t *testing.T) {
	blosc, err := codec.FromFlag("blosc-zstd:1", dtype.Float32, 3)
	if err != nil {
		t.Fatal(err)
	}
	shape := []int{90, 150, 150}
	v := octtest.Made3(shape, func(i int) float32 { return float32(i / 150 % 151) })
	var want []float32
	for _, c := range []struct {
		chain codec.Chain
		mem   int64
	}{{nil, 4 << 20}, {blosc, 28 << 20}, {codec.Chain{codec.CRC32C()}, 64 << 20}} { // 8 MB of float32
		in := octtest.MosaicOf(t, ngff.ImageSpec{Format: 3, Shape: shape, Chunks: shape, Codecs: c.chain}, v)
		out, err := Run(octtest.Ctx, in, store.Memory(), isotropic(10), oct.Layout{}, oct.Resources{Workers: 1, Mem: c.mem})
		if err != nil {
			t.Fatal(err)
		}
		got := octtest.Read(t, out.Levels[0].Array)
		if want == nil {
			want = got
		}
		octtest.SameBits(t, got, want)
	}
}

func TestResampleStopsWithItsContext(t *testing.T) {
	in, _ := octtest.Made(t, []int{4, 64, 64}, []int{4, 8, 8}, nil, nil, func(int) float32 { return 1 })
	c, cancel := context.WithCancel(octtest.Ctx)
	_, err := Run(c, in, store.Memory(), isotropic(10), oct.Layout{}, oct.Resources{Workers: 2, Mem: 64 << 20, Progress: func(int64) { cancel() }})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want the cancellation", err)
	}
}

func TestResampleWithoutPermission(t *testing.T) {
	in, _ := octtest.Made(t, []int{4, 16, 16}, []int{4, 8, 8}, nil, nil, func(int) uint8 { return 7 })
	unreadable := octtest.Open(t, octtest.Locked{Store: in.Group.Store()})
	if _, err := Run(octtest.Ctx, unreadable, store.Memory(), isotropic(10), oct.Layout{}, octtest.Small()); !errors.Is(err, oct.ErrInput) || !errors.Is(err, fs.ErrPermission) {
		t.Errorf("chunks that may not be read: %v, want ErrInput and ErrPermission", err)
	}
	if _, err := Run(octtest.Ctx, in, octtest.Unwritable{Writer: store.Memory()}, isotropic(10), oct.Layout{}, octtest.Small()); errors.Is(err, oct.ErrInput) || !errors.Is(err, fs.ErrPermission) {
		t.Errorf("an output that may not be written: %v, want ErrPermission without ErrInput", err)
	}
}

// slow is a store whose reads take their time; it notes how many there are at once.
type slow struct {
	store.Store
	now, most atomic.Int64
}

func (s *slow) wait(key string) {
	if !strings.Contains(key, "0/c/") {
		return
	}
	n := s.now.Add(1)
	for {
		most := s.most.Load()
		if n <= most || s.most.CompareAndSwap(most, n) {
			break
		}
	}
	time.Sleep(5 * time.Millisecond)
	s.now.Add(-1)
}

func (s *slow) Get(ctx context.Context, key string, dst []byte, limit int64) ([]byte, error) {
	s.wait(key)
	return s.Store.Get(ctx, key, dst, limit)
}

type slowObject struct {
	store.Object
	s   *slow
	key string
}

func (o slowObject) ReadAt(ctx context.Context, p []byte, off int64) (int, error) {
	o.s.wait(o.key)
	return o.Object.ReadAt(ctx, p, off)
}

func (s *slow) Open(ctx context.Context, key string) (store.Object, error) {
	o, err := s.Store.Open(ctx, key)
	return slowObject{o, s, key}, err
}

// Tiles are read ahead where they wait for their storage, as many as --prefetch
// says and memory holds, and the numbers stay.
func TestResampleReadsAhead(t *testing.T) {
	blosc, err := codec.FromFlag("blosc-lz4", dtype.Uint16, 3)
	if err != nil {
		t.Fatal(err)
	}
	shape := []int{8, 64, 128}
	for name, chain := range map[string]codec.Chain{"raw": nil, "blosc": blosc, "crc": {codec.CRC32C()}} {
		in := octtest.MosaicOf(t, ngff.ImageSpec{Format: 3, Shape: shape, Chunks: []int{8, 16, 16}, Codecs: chain}, octtest.Made3(shape, func(i int) uint16 { return uint16(i * 7919) }))
		var want []float64
		for _, c := range []struct {
			prefetch, most int
			mem            int64
		}{{1, 1, 64 << 20}, {4, 4, 64 << 20}, {8, 8, 64 << 20}, {8, 1, 600 << 10}} {
			if chain != nil && c.mem < 1<<20 {
				continue // encoded tiles are small: this holds several
			}
			s := &slow{Store: in.Group.Store()}
			m := &meter.Meter{}
			out, err := Run(octtest.Ctx, octtest.Open(t, s), store.Memory(), Options{Resolution: [3]float64{10, 5, 5}, Prefetch: c.prefetch}, oct.Layout{}, oct.Resources{Workers: 1, Mem: c.mem, Meter: m})
			if err != nil {
				t.Fatal(err)
			}
			got := octtest.Values(t, out.Levels[0].Array)
			if want == nil {
				want = got
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s: reading ahead changes the numbers", name)
			}
			if most := int(s.most.Load()); most > c.most || most < min(c.most, 2) {
				t.Errorf("%s, prefetch %d, %d bytes: %d tiles are read at a time, want %d", name, c.prefetch, c.mem, most, c.most)
			}
			if m.Busy(meter.Read) < 20*time.Millisecond || m.BytesRead() == 0 {
				t.Errorf("%s: %v of reading, %d bytes counted", name, m.Busy(meter.Read), m.BytesRead())
			}
		}
	}
}
