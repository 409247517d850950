package smooth

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"strata/pkg/dtype"
	"strata/pkg/meter"
	"strata/pkg/ngff"
	"strata/pkg/oct"
	"strata/pkg/tile"
	"strata/pkg/zarr"
	"strata/pkg/zarr/codec"
	"strata/pkg/zarr/store"
	"strata/tests/golden"
	"strata/tests/octtest"
)

// imageOf writes an image and opens it again.
func imageOf(t *testing.T, spec ngff.ImageSpec, raw []byte) *ngff.Image {
	t.Helper()
	st := store.Memory()
	w, err := ngff.Create(octtest.Ctx, st, "", spec)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.WriteTile(octtest.Ctx, make([]int, len(spec.Shape)), spec.Shape, raw); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(octtest.Ctx); err != nil {
		t.Fatal(err)
	}
	return octtest.Open(t, st)
}

// elementsOf are all bytes of an array.
func elementsOf(t *testing.T, a *zarr.Array) []byte {
	t.Helper()
	n := a.DType().Size()
	for _, s := range a.Shape() {
		n *= s
	}
	raw := dtype.Bytes(make([]uint64, (n+7)/8))[:n]
	if err := a.Read(octtest.Ctx, a.Bounds(), raw); err != nil {
		t.Fatal(err)
	}
	return raw
}

// leastMem is about the least memory that a call is content with.
func leastMem(t *testing.T, run func(mem int64) error) int64 {
	t.Helper()
	for mem := int64(16 << 10); mem < 1<<30; mem += mem / 4 {
		err := run(mem)
		if err == nil {
			return mem
		}
		if !strings.Contains(err.Error(), "--mem grants") {
			t.Fatal(err)
		}
	}
	t.Fatal("no memory is enough")
	return 0
}

type smoothCase struct {
	Axes    string
	Median  int
	Sigma   []float64
	SigmaPx []float64 `json:"sigma_px"`
	Grad    bool      `json:"gradient"`
	Border  string
	DType   string
}

func (c smoothCase) how(t *testing.T) Options {
	how := Options{Median: c.Median, Sigma: c.Sigma, Gradient: c.Grad,
		Border: map[string]tile.BorderMode{"": tile.Reflect, "nearest": tile.Replicate, "constant": tile.Zero}[c.Border]}
	if c.SigmaPx != nil {
		how.Sigma, how.InVoxels = c.SigmaPx, true
	}
	if c.DType != "" {
		var err error
		if how.DType, err = dtype.Parse(c.DType); err != nil {
			t.Fatal(err)
		}
	}
	return how
}

// The numbers are those of scipy.ndimage. They are the same bits whatever the chunks of the input and of the output,
// the memory (and with it the tiles and the cache) and the workers.
func TestSmoothGolden(t *testing.T) {
	for i, c := range golden.Cases(t, "smooth") {
		if testing.Short() && i%4 > 0 {
			continue // the race detector has seen enough
		}
		t.Run(c.Name, func(t *testing.T) {
			var p smoothCase
			if err := json.Unmarshal(c.Params, &p); err != nil {
				t.Fatal(err)
			}
			in, want := c.Arrays["input"], c.Arrays["expected"]
			spec := ngff.ImageSpec{Shape: in.Shape, DType: in.Type, Axes: ngff.SpaceAxes(p.Axes, "micrometer"), Levels: 0}
			lead := len(in.Shape) - len(c.VoxelSize[0])
			spec.Scale = append(slices.Repeat([]float64{1}, lead), c.VoxelSize[0]...)
			small := slices.Clone(in.Shape)
			for d := range small {
				small[d] = min(small[d], 1+3*d+d%2)
			}
			var first []byte
			for _, chunks := range [][]int{in.Shape, small} {
				spec.Chunks = chunks
				im := imageOf(t, spec, in.Data)
				for _, layout := range []oct.Layout{{}, {Chunks: small}, {Chunks: slices.Repeat([]int{7}, len(in.Shape))}} {
					run := func(workers int, mem int64) (*ngff.Image, error) {
						return Run(octtest.Ctx, im, store.Memory(), p.how(t), layout, oct.Resources{Workers: workers, Mem: mem})
					}
					least := leastMem(t, func(mem int64) error { _, err := run(1, mem); return err })
					for _, res := range []oct.Resources{{Workers: 1, Mem: 64 << 20}, {Workers: 3, Mem: least}, {Workers: 3, Mem: 3 * least}} {
						out, err := run(res.Workers, res.Mem)
						if err != nil {
							t.Fatal(err)
						}
						a := out.Levels[0].Array
						got := elementsOf(t, a)
						if first == nil {
							first = got
							sameAsScipy(t, a, got, want, c.Tolerance.Rel)
						} else if !slices.Equal(got, first) {
							t.Fatalf("chunks %v, %+v, %d workers, %d KiB: other numbers", chunks, layout, res.Workers, res.Mem>>10)
						}
					}
				}
			}
		})
	}
}

// sameAsScipy compares with what scipy makes in float64. Integers are equal, but where its number lies between two of
// them, as exactly as this one is computed: the rounding goes either way.
func sameAsScipy(t *testing.T, a *zarr.Array, raw []byte, want golden.Array, rel float64) {
	t.Helper()
	if want.Type == a.DType() && slices.Equal(want.Data, raw) {
		return
	}
	if want.Type != dtype.Float64 {
		t.Fatalf("medians of %v differ from %v", a.DType(), want.Type)
	}
	var got []float64
	dtype.Each(raw, a.DType(), func(v float64) { got = append(got, v) })
	largest := 0.0
	dtype.Each(want.Data, want.Type, func(v float64) { largest = max(largest, math.Abs(v)) })
	i, halves := 0, 0
	dtype.Each(want.Data, want.Type, func(w float64) {
		g := got[i]
		i++
		allowed := rel*math.Abs(w) + rel/10*largest
		if a.DType().IsInteger() {
			allowed = rel / 10 * largest // of some sums of float32 or float64
			lo, hi := limits(a.DType())
			rounded := max(lo, min(math.RoundToEven(w), hi))
			if g == rounded {
				return
			}
			if math.Abs(math.Abs(w-math.Floor(w))-0.5) > allowed || math.Abs(g-w) > 0.5+allowed {
				t.Errorf("voxel %d is %v, want %v", i-1, g, w)
			}
			halves++
		} else if !(math.Abs(g-w) <= allowed) {
			t.Errorf("voxel %d is %v, want %v", i-1, g, w)
		}
	})
	if largest < 1/rel && halves > 1+len(got)/200 {
		t.Errorf("%d of %d voxels were rounded the other way", halves, len(got))
	}
}

func limits(t dtype.Type) (lo, hi float64) {
	bits := float64(8 * t.Size())
	if strings.HasPrefix(t.String(), "u") {
		return 0, math.Exp2(bits) - 1
	}
	return -math.Exp2(bits - 1), math.Exp2(bits-1) - 1
}

// An image that is larger than the memory is filtered in tiles of several chunks, each chunk is decoded few times, and
// what is in memory stays within the limit.
func TestSmoothTiling(t *testing.T) {
	for name, c := range map[string]struct {
		shape, chunks []int
		kind          dtype.Type
		how           Options
		mem           int64
		ratio, loads  float64 // of the halo's share, and of loading, at most
	}{
		"slide":           {[]int{60000, 100000}, []int{512, 512}, dtype.Uint8, Options{Median: 5}, 512 << 20, 1.1, 1},
		"slide of strips": {[]int{60000, 100000}, []int{16, 100000}, dtype.Uint8, Options{Median: 5}, 512 << 20, 1.2, 3},
		"volume":          {[]int{500, 4000, 4000}, []int{64, 128, 128}, dtype.Uint16, Options{Sigma: []float64{2}}, 2 << 30, 1.6, 3},
		"wide Gaussian":   {[]int{500, 4000, 4000}, []int{64, 128, 128}, dtype.Uint16, Options{Sigma: []float64{20}}, 8 << 30, 9, 27},
		"less memory":     {[]int{500, 4000, 4000}, []int{64, 128, 128}, dtype.Uint16, Options{Sigma: []float64{20}}, 512 << 20, 18, 9},
	} {
		t.Run(name, func(t *testing.T) {
			axes := ngff.SpaceAxes("zyx"[3-len(c.shape):], "micrometer")
			a, err := zarr.CreateArray(octtest.Ctx, store.Memory(), "", zarr.Spec{Format: 3, Shape: c.shape, Chunks: c.chunks, DType: c.kind, Codecs: mustCodec(t, c.kind)})
			if err != nil {
				t.Fatal(err)
			}
			c.how.InVoxels = true
			im := &ngff.Image{Axes: axes, Levels: []ngff.Level{{Array: a}}, VoxelSize: []float64{1, 1, 1}[:len(axes)]}
			p, err := planSmooth(im, c.how, oct.Layout{}, oct.Resources{Workers: 2, Mem: c.mem})
			if err == nil {
				err = tileSmooth[uint16, float32](p)
			}
			if err != nil {
				t.Fatal(err)
			}
			ratio, size := 1.0, 1.0
			for d, n := range p.tile {
				ratio *= 1 + 2*float64(p.radius[d+3-len(p.tile)])/float64(n)
				size *= float64(n)
			}
			view := ratio * size * float64(c.kind.Size())
			if most := float64(c.mem) * 3 / 4; float64(p.workers)*view+float64(p.cache) > most || float64(p.cache) < size*float64(c.kind.Size()) {
				t.Errorf("%d views of %.0f MiB and a cache of %d MiB in %.0f MiB", p.workers, view/(1<<20), p.cache>>20, most/(1<<20))
			}
			loads, _ := p.loads(p, math.Floor(float64(p.cache)/(size*float64(c.kind.Size())))-float64(p.workers))
			t.Logf("tiles of %v, order %v, %d workers, cache %d MiB: ratio %.2f, loaded %.2f times", p.tile, p.order, p.workers, p.cache>>20, ratio, loads)
			if ratio > c.ratio || loads > c.loads {
				t.Errorf("tiles of %v: %.2f times their voxels with halos, loaded %.1f times; want %v and %v", p.tile, ratio, loads, c.ratio, c.loads)
			}
		})
	}
}

// Channels and time points are planes of their own, also where the last chunk holds fewer of them than others.
func TestSmoothPlanes(t *testing.T) {
	const nt, nc, ny, nx = 3, 5, 20, 30
	v := make([]uint16, nt*nc*ny*nx)
	for i := range v {
		v[i] = uint16(i * 7919 >> 3)
	}
	how := Options{Median: 3, Sigma: []float64{1.2}}
	whole := imageOf(t, ngff.ImageSpec{Shape: []int{nt, nc, ny, nx}, Chunks: []int{2, 3, 8, 8}, DType: dtype.Uint16, Axes: ngff.SpaceAxes("tcyx", "micrometer"),
		Scale: []float64{1, 1, 1, 1}}, dtype.Bytes(v))
	out, err := Run(octtest.Ctx, whole, store.Memory(), how, oct.Layout{Chunks: []int{2, 3, 8, 8}}, octtest.Small())
	if err != nil {
		t.Fatal(err)
	}
	got := elementsOf(t, out.Levels[0].Array)
	for k := range nt * nc {
		plane := imageOf(t, ngff.ImageSpec{Shape: []int{ny, nx}, Chunks: []int{ny, nx}, DType: dtype.Uint16, Axes: ngff.SpaceAxes("yx", "micrometer"), Scale: []float64{1, 1}},
			dtype.Bytes(v[k*ny*nx:(k+1)*ny*nx]))
		want, err := Run(octtest.Ctx, plane, store.Memory(), how, oct.Layout{}, octtest.Small())
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(got[k*2*ny*nx:][:2*ny*nx], elementsOf(t, want.Levels[0].Array)) {
			t.Errorf("plane %d is not what it is alone", k)
		}
	}
}

func mustCodec(t *testing.T, kind dtype.Type) codec.Chain {
	t.Helper()
	chain, err := codec.FromFlag("zstd:1", kind, 3)
	if err != nil {
		t.Fatal(err)
	}
	return chain
}

// What cannot be is refused in one line, and it is known whose fault it is.
func TestSmoothRefuses(t *testing.T) {
	im := imageOf(t, ngff.ImageSpec{Shape: []int{4, 8, 8}, Chunks: []int{4, 8, 8}, DType: dtype.Uint8, Axes: ngff.SpaceAxes("zyx", "micrometer"), Scale: []float64{1, 2, 2}}, make([]byte, 256))
	half := imageOf(t, ngff.ImageSpec{Shape: []int{8, 8}, Chunks: []int{8, 8}, DType: dtype.Float16, Axes: ngff.SpaceAxes("yx", "micrometer"), Scale: []float64{1, 1}}, make([]byte, 128))
	for name, c := range map[string]struct {
		im   *ngff.Image
		how  Options
		mem  int64
		kind error
		text string
	}{
		"nothing":        {im, Options{}, 1 << 20, oct.ErrLayout, "no filter"},
		"even median":    {im, Options{Median: 4}, 1 << 20, oct.ErrLayout, "--median 4: want an odd number"},
		"two sigmas":     {im, Options{Sigma: []float64{1, 2}}, 1 << 20, oct.ErrLayout, "--sigma has 2 numbers: want one, or 3 for [z y x]"},
		"huge sigma":     {im, Options{Sigma: []float64{1e5}}, 1 << 20, oct.ErrLayout, "--sigma 100000 is 1e+05 voxels along z"},
		"negative":       {im, Options{Sigma: []float64{-1}, InVoxels: true}, 1 << 20, oct.ErrLayout, "--sigma_px -1"},
		"NaN":            {im, Options{Sigma: []float64{math.NaN()}}, 1 << 20, oct.ErrLayout, "--sigma NaN"},
		"no slope":       {im, Options{Sigma: []float64{0.01}, Gradient: true}, 1 << 20, oct.ErrLayout, "no axis has a gradient"},
		"type":           {half, Options{Median: 3}, 1 << 20, oct.ErrInput, "data type float16"},
		"too wide":       {im, Options{Sigma: []float64{4000}, InVoxels: true}, 64 << 20, nil, "needs [0-9]+ MiB of buffers, --mem grants 64 MiB"},
		"little memory":  {im, Options{Sigma: []float64{20}}, 1 << 20, nil, "--mem grants 1 MiB"},
		"unknown border": {im, Options{Sigma: []float64{1}, Border: 99}, 1 << 20, nil, "unknown border"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Run(octtest.Ctx, c.im, store.Memory(), c.how, oct.Layout{}, oct.Resources{Workers: 2, Mem: c.mem})
			if err == nil || !matches(c.text, err.Error()) || c.kind != nil && !errors.Is(err, c.kind) {
				t.Errorf("%v, want %q", err, c.text)
			}
		})
	}
}

func matches(pattern, text string) bool {
	before, after, found := strings.Cut(pattern, "[0-9]+")
	return strings.Contains(text, before) && (!found || strings.Contains(text, after))
}

// Voxels that are no numbers are counted once each, however many halos show them.
func TestSmoothCountsNonFinite(t *testing.T) {
	v := make([]float32, 30*40)
	for i := range v {
		v[i] = float32(i % 7)
	}
	for _, i := range []int{0, 15*40 + 20, 16*40 + 16, 29*40 + 39} {
		v[i] = float32(math.NaN())
	}
	im := imageOf(t, ngff.ImageSpec{Shape: []int{30, 40}, Chunks: []int{8, 8}, DType: dtype.Float32, Axes: ngff.SpaceAxes("yx", "micrometer"), Scale: []float64{1, 1}}, dtype.Bytes(v))
	for _, how := range []Options{{Median: 3}, {Sigma: []float64{2}}, {Median: 3, Gradient: true}} {
		res := octtest.Small()
		res.Meter = &meter.Meter{}
		out, err := Run(octtest.Ctx, im, store.Memory(), how, oct.Layout{Chunks: []int{8, 8}}, res)
		if err != nil {
			t.Fatal(err)
		}
		if n := res.Meter.NonFinite(); n != 4 {
			t.Errorf("%+v: %d voxels are no numbers, want 4", how, n)
		}
		bad := 0
		for _, f := range octtest.Read(t, out.Levels[0].Array) {
			if f != f {
				bad++
			}
		}
		// a Gaussian spreads them as far as it reaches; a median leaves them out
		if fmt.Sprint(how.Sigma) == "[]" && bad > 0 || how.Sigma != nil && bad < 4*81 {
			t.Errorf("%+v: %d voxels of the output are no numbers", how, bad)
		}
	}
}
