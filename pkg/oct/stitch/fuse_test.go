package stitch

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"strata/pkg/dtype"
	"strata/pkg/filter"
	"strata/pkg/meter"
	"strata/pkg/ngff"
	"strata/pkg/oct"
	"strata/pkg/oct/stitch/affine"
	"strata/pkg/oct/stitch/canvas"
	"strata/pkg/phantom"
	"strata/pkg/zarr/store"
	"strata/tests/octtest"
	"strata/tests/race"
)

// stitchModel is what a stitched slice should be, pixel by pixel from the
// definition.
type stitchModel struct {
	shape    [3]int // of the mosaic
	tile     [2]int
	v        []float64
	m        affine.Matrix
	overlap  float64
	blending canvas.Blending
	between  bool // interpolate

	ny, nx       int
	exact        [][2]float64 // positions
	at           [][2]int     // of first voxels on the canvas
	origin, size [2]int
	empty        []bool
	weights      [][]float32
}

func (s *stitchModel) extent(t int) [2]int {
	return [2]int{min(s.tile[0], s.shape[1]-t/s.nx*s.tile[0]), min(s.tile[1], s.shape[2]-t%s.nx*s.tile[1])}
}

// place puts tile (i, j) at M·(i·h·(1−o), j·w·(1−o)).
func (s *stitchModel) place() {
	s.ny, s.nx = (s.shape[1]+s.tile[0]-1)/s.tile[0], (s.shape[2]+s.tile[1]-1)/s.tile[1]
	lo, hi := [2]int{math.MaxInt, math.MaxInt}, [2]int{math.MinInt, math.MinInt}
	for t := range s.ny * s.nx {
		y, x := float64(t/s.nx*s.tile[0])*(1-s.overlap), float64(t%s.nx*s.tile[1])*(1-s.overlap)
		p := [2]float64{s.m[0][0]*y + s.m[0][1]*x, s.m[1][0]*y + s.m[1][1]*x}
		s.exact = append(s.exact, p)
		s.at = append(s.at, [2]int{int(math.RoundToEven(p[0])), int(math.RoundToEven(p[1]))})
		for d, n := range s.extent(t) {
			lo[d], hi[d] = min(lo[d], s.at[t][d]), max(hi[d], s.at[t][d]+n)
		}
	}
	for d := range 2 {
		s.origin[d], s.size[d] = lo[d], hi[d]-lo[d]
	}
	for t := range s.at {
		n := s.extent(t)
		zero := true
		for z := range s.shape[0] {
			for y := range n[0] {
				for x := range n[1] {
					zero = zero && s.voxel(t, z, y, x) == 0
				}
			}
		}
		s.empty = append(s.empty, zero)
		w := make([]float32, n[0]*n[1])
		if s.blending == canvas.BlendDiffusion {
			var others []filter.Rect
			for o := range s.at {
				if o != t {
					k := s.extent(o)
					others = append(others, filter.Rect{Y1: k[0], X1: k[1]}.Moved(s.at[o][0]-s.at[t][0], s.at[o][1]-s.at[t][1]))
				}
			}
			filter.Diffusion(w, n[0], n[1], others)
		} else {
			for i := range w {
				y, x := i/n[1], i%n[1]
				w[i] = float32(min(2*y+1, 2*(n[0]-y)-1) * min(2*x+1, 2*(n[1]-x)-1))
				if s.blending == canvas.BlendAverage {
					w[i] = 1
				}
			}
		}
		s.weights = append(s.weights, w)
	}
}

func (s *stitchModel) voxel(t, z, y, x int) float64 {
	return s.v[(z*s.shape[1]+t/s.nx*s.tile[0]+y)*s.shape[2]+t%s.nx*s.tile[1]+x]
}

// sample is a tile at a pixel of its own, which may be off the voxels.
func (s *stitchModel) sample(t, z, y, x int) float64 {
	if !s.between {
		return s.voxel(t, z, y, x)
	}
	n := s.extent(t)
	var k [2]int
	var f [2]float64
	for d, c := range [2]int{y, x} {
		p := min(max(float64(c)-(s.exact[t][d]-math.RoundToEven(s.exact[t][d])), 0), float64(n[d]-1))
		k[d] = min(int(p), max(n[d]-2, 0))
		f[d] = p - float64(k[d])
	}
	sum := 0.0
	for c := range 4 {
		w := 1.0
		for d := range 2 {
			if c>>d&1 == 1 {
				w *= f[d]
			} else {
				w *= 1 - f[d]
			}
		}
		if w != 0 {
			sum += w * s.voxel(t, z, k[0]+c&1, k[1]+c>>1)
		}
	}
	return sum
}

// value is the mean of what tiles say of a voxel, and the range of it. Of three or
// more of which one is NaN only the range is sure.
func (s *stitchModel) value(z, y, x int) (mean, lo, hi float64) {
	var sum, weight, best float64
	seen, numbers := 0, 0
	lo, hi = math.Inf(1), math.Inf(-1)
	chosen := math.NaN()
	for t, at := range s.at {
		n := s.extent(t)
		v, u := y+s.origin[0]-at[0], x+s.origin[1]-at[1]
		if v < 0 || u < 0 || v >= n[0] || u >= n[1] || s.empty[t] {
			continue
		}
		seen++
		f := s.sample(t, z, v, u)
		if f != f {
			continue
		}
		numbers++
		lo, hi = min(lo, f), max(hi, f)
		w := float64(s.weights[t][v*n[1]+u])
		if w > best {
			best, chosen = w, f
		}
		sum, weight = sum+w*f, weight+w
	}
	switch {
	case seen == 0:
		return 0, 0, 0
	case numbers == 0:
		return math.NaN(), 0, 0
	case numbers < seen && numbers > 1:
		return (lo + hi) / 2, lo, hi
	case s.blending == canvas.BlendNone:
		return chosen, chosen, chosen
	}
	return sum / weight, sum / weight, sum / weight
}

func stitchAgainstModel[T dtype.Element](t *testing.T, scale float64, low float64) {
	rng := rand.New(rand.NewPCG(uint64(scale), uint64(dtype.Of[T]())))
	float := any(*new(T)) == any(float32(0)) || any(*new(T)) == any(float64(0))
	for trial := range 12 {
		s := &stitchModel{shape: [3]int{3, 1 + rng.IntN(60), 1 + rng.IntN(60)}, tile: [2]int{5 + rng.IntN(14), 5 + rng.IntN(14)},
			overlap: []float64{0, 0.2, 0.25, 0.6}[rng.IntN(4)], blending: canvas.Blending(canvas.Blendings[trial%4]), between: rng.IntN(2) == 1}
		s.m = affine.Matrix{{1 + 0.1*rng.NormFloat64(), 0.1 * rng.NormFloat64()}, {0.1 * rng.NormFloat64(), 1 + 0.1*rng.NormFloat64()}}
		v := make([]T, s.shape[0]*s.shape[1]*s.shape[2])
		for i := range v {
			v[i] = T(low + scale*rng.Float64())
			if nan := math.NaN(); float && rng.IntN(30) == 0 && !s.between {
				v[i] = T(nan)
			}
			if y, x := i/s.shape[2]%s.shape[1], i%s.shape[2]; y/s.tile[0] == 1 && x/s.tile[1] == 0 {
				v[i] = 0 // a tile that was left out
			}
		}
		dtype.Each(dtype.Bytes(v), dtype.Of[T](), func(f float64) { s.v = append(s.v, f) })
		s.place()
		in := octtest.MosaicOf(t, ngff.ImageSpec{Format: 3, Shape: s.shape[:], Chunks: []int{2, s.tile[0], s.tile[1]}}, v)
		out, st, err := Run(octtest.Ctx, in, store.Memory(), oct.Layout{Chunks: []int{2, 16, 24}},
			Options{Overlap: s.overlap, Transform: s.m, Interpolate: s.between, Blending: s.blending}, octtest.Small())
		if err != nil {
			t.Fatal(err)
		}
		what := fmt.Sprintf("%v, %s, overlap %g, interpolate %v, tiles of %v in %v, matrix %v", dtype.Of[T](), s.blending, s.overlap, s.between, s.tile, s.shape, s.m)
		if st.Origin != s.origin || st.Size != s.size {
			t.Fatalf("%s: canvas from %v of %v, want from %v of %v", what, st.Origin, st.Size, s.origin, s.size)
		}
		for k, p := range st.Tiles {
			if math.Hypot(p.Position[0]-s.exact[k][0], p.Position[1]-s.exact[k][1]) > 1e-9 || p.Empty != s.empty[k] {
				t.Fatalf("%s: tile %v at %v (empty: %v), want %v (%v)", what, p.Tile, p.Position, p.Empty, s.exact[k], s.empty[k])
			}
		}
		got := octtest.Values(t, out.Levels[0].Array)
		near := 3e-6 * (scale + math.Abs(low))
		if !float {
			near += 0.5
		}
		for i, g := range got {
			z, y, x := i/(s.size[0]*s.size[1]), i/s.size[1]%s.size[0], i%s.size[1]
			mean, lo, hi := s.value(z, y, x)
			if mean != mean && g != g {
				continue
			}
			if !(g >= lo-near && g <= hi+near) {
				t.Fatalf("%s: voxel (%d, %d, %d) is %v, want %v (%v…%v)", what, z, y, x, g, mean, lo, hi)
			}
			if !float && g != math.RoundToEven(g) {
				t.Fatalf("%s: voxel (%d, %d, %d) is %v", what, z, y, x, g)
			}
		}
	}
}

// Where tiles go, whose voxels are taken, and their means, against the definition:
// all types, partial tiles, tiles that are left out, NaN, gaps.
func TestStitchIsItsDefinition(t *testing.T) {
	stitchAgainstModel[uint8](t, 255, 0)
	stitchAgainstModel[int8](t, 255, -128)
	stitchAgainstModel[uint16](t, 65535, 0)
	stitchAgainstModel[int16](t, 65535, -32768)
	stitchAgainstModel[uint32](t, 1<<32-1, 0)
	stitchAgainstModel[int32](t, 1<<32-1, -1<<31)
	stitchAgainstModel[uint64](t, 1<<50, 0)
	stitchAgainstModel[int64](t, 1<<50, -1<<49)
	stitchAgainstModel[float32](t, 1000, -300)
	stitchAgainstModel[float64](t, 1000, -300)
}

// A mosaic of one tile, of equal voxels, of nothing: what comes in comes out.
func TestStitchOfLittle(t *testing.T) {
	for name, c := range map[string]struct {
		shape, tile [3]int
		value       float32
	}{
		"a tile":     {[3]int{4, 20, 30}, [3]int{4, 20, 30}, 3},
		"part of it": {[3]int{4, 15, 30}, [3]int{4, 20, 40}, 3},
		"a voxel":    {[3]int{1, 1, 1}, [3]int{1, 1, 1}, 3},
		"constant":   {[3]int{4, 40, 50}, [3]int{4, 20, 20}, 1e30},
		"zero":       {[3]int{4, 40, 50}, [3]int{4, 20, 20}, 0},
		"NaN":        {[3]int{4, 40, 50}, [3]int{4, 20, 20}, float32(math.NaN())},
		"infinite":   {[3]int{4, 40, 50}, [3]int{4, 20, 20}, float32(math.Inf(-1))},
	} {
		in := octtest.MosaicOf(t, ngff.ImageSpec{Format: 2, Shape: c.shape[:], Chunks: c.tile[:]}, octtest.Made3(c.shape[:], func(int) float32 { return c.value }))
		for _, blending := range canvas.Blendings {
			out, st, err := Run(octtest.Ctx, in, store.Memory(), oct.Layout{}, Options{Overlap: 0.2, Blending: canvas.Blending(blending), MaxRefinement: 2, Seams: true}, octtest.Small())
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			octtest.SameBits(t, octtest.Read(t, out.Levels[0].Array), octtest.Made3(out.Levels[0].Array.Shape(), func(int) float32 { return c.value }))
			for _, p := range st.Tiles {
				if p.Residual != ([2]float64{}) || p.Used || p.Empty != (c.value == 0) {
					t.Errorf("%s: %+v", name, p)
				}
			}
		}
	}
}

// Canvases that only a mistake can ask for are refused with their size.
func TestStitchRefusesCanvases(t *testing.T) {
	g := grid{ny: 3, nx: 3, tile: [2]int{1000, 1000}, shape: [2]int{3000, 3000}}
	at := func(step float64) (p [][2]float64) {
		for k := range 9 {
			p = append(p, [2]float64{float64(k/3) * step, float64(k%3) * step})
		}
		return p
	}
	for _, c := range []struct {
		step   float64
		column int
		want   string // "": fine
	}{
		{800, 1 << 20, ""}, {1200, 1 << 30, ""}, {10000, 4, ""},
		{12000, 4, "canvas of 25000 × 25000 voxels per plane, 0.00227 TiB in all, 69 times"},
		{5000, 1 << 14, "canvas of 11000 × 11000 voxels per plane, 1.8 TiB in all, 13 times"},
		{1e12, 4, "canvas of 2000000001000 × 2000000001000"}, {math.NaN(), 4, "canvas of NaN"},
	} {
		_, _, size, err := g.canvas("in", at(c.step), false, c.column)
		if c.want == "" {
			if n := 2*int(c.step) + 1000; err != nil || size != [2]int{n, n} {
				t.Errorf("steps of %g: %v, %v", c.step, size, err)
			}
		} else if !errors.Is(err, oct.ErrInput) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("steps of %g: %v, want %q", c.step, err, c.want)
		}
	}
	far := at(800)
	for k := range far {
		far[k][1] += 1e10
	}
	if _, _, _, err := g.canvas("in", far, false, 4); !errors.Is(err, oct.ErrInput) || !strings.Contains(err.Error(), "out of range") {
		t.Errorf("far away: %v", err)
	}
}

// At the default memory every byte is read once, of empty tiles too, and twice where
// the places of tiles are measured. With little memory some are read again, and
// the numbers are the same.
func TestTilesAreReadOnce(t *testing.T) {
	race.Leave(t)
	c := phantom.Default()
	c.Tiles, c.Tile, c.Agarose, c.Floor = [2]int{6, 7}, [3]int{24, 48, 48}, 0, 0
	for _, flag := range []string{"raw", "zstd:1"} {
		_, in := stitchSpecimen(t, c, phantom.Storage{Codecs: stitchChain(t, flag, dtype.Float32, 3), Chunks: []int{8, 48, 48}})
		stored := int64(0)
		a := in.Levels[0].Array
		for k := range 3 * 6 * 7 {
			b, err := a.Store().Get(octtest.Ctx, a.ChunkKey([]int{k / 42, k / 7 % 6, k % 7}), nil, 1<<30)
			if err != nil {
				t.Fatal(err)
			}
			stored += int64(len(b))
		}
		run := func(opt Options, mem int64) (float64, []byte) {
			m := &meter.Meter{}
			opt.Overlap, opt.Blending = 0.2, canvas.BlendFeather
			out, _, err := Run(octtest.Ctx, in, store.Memory(), oct.Layout{}, opt, oct.Resources{Workers: 2, Mem: mem, Meter: m})
			if err != nil {
				t.Fatal(err)
			}
			return float64(m.BytesRead()) / float64(stored), stitchBytesOf(t, out.Levels[0].Array)
		}
		if times, _ := run(Options{Estimate: true, MaxRefinement: 2}, 512<<20); times != 2 {
			t.Errorf("%s: bytes read %.4f times with estimate and refinement", flag, times)
		}
		once, voxels := run(Options{}, 512<<20)
		if once != 1 {
			t.Errorf("%s: bytes read %.4f times", flag, once)
		}
		often, same := run(Options{}, 2500<<10)
		t.Logf("%s: bytes read %.2f times with little memory", flag, often)
		if !bytes.Equal(voxels, same) || often <= 1 {
			t.Errorf("%s: other voxels with little memory", flag)
		}
	}
}
