package preview

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image"
	"image/color"
	"io/fs"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"strata/pkg/dtype"
	"strata/pkg/ngff"
	"strata/pkg/ngff/spatial"
	"strata/pkg/oct"
	"strata/pkg/zarr/codec"
	"strata/pkg/zarr/store"
	"strata/tests/octtest"
)

var ctx = context.Background()

func resources() oct.Resources { return oct.Resources{Workers: 2, Mem: 128 << 20} }

// spec is an image for tests: axes by their letters, µm.
type spec struct {
	axes   string
	shape  []int
	chunks []int
	scale  []float64
	codec  string
	levels int
}

// create writes an image whose voxels are f(index in C order).
func create[T dtype.Element](t *testing.T, s spec, f func(i int) T) (*ngff.Image, store.Writer) {
	t.Helper()
	st := store.Memory()
	if s.codec == "" {
		s.codec = "zstd:1"
	}
	chain, err := codec.FromFlag(s.codec, dtype.Of[T](), 3)
	if err != nil {
		t.Fatal(err)
	}
	if s.scale == nil {
		s.scale = slices.Repeat([]float64{1}, len(s.shape))
	}
	w, err := ngff.Create(ctx, st, "", ngff.ImageSpec{Shape: s.shape, Chunks: s.chunks, DType: dtype.Of[T](), Codecs: chain,
		Axes: ngff.SpaceAxes(s.axes, "micrometer"), Scale: s.scale, Levels: s.levels})
	if err != nil {
		t.Fatal(err)
	}
	n := 1
	for _, k := range s.shape {
		n *= k
	}
	v := make([]T, n)
	for i := range v {
		v[i] = f(i)
	}
	if err := w.WriteTile(ctx, make([]int, len(s.shape)), s.shape, dtype.Bytes(v)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(ctx); err != nil {
		t.Fatal(err)
	}
	return open(t, st), st
}

func open(t *testing.T, st store.Store) *ngff.Image {
	t.Helper()
	im, err := ngff.Open(ctx, st, "")
	if err != nil {
		t.Fatal(err)
	}
	return im
}

// bare options show voxels as pixels and nothing else.
func bare() Options {
	o := Defaults()
	o.Labels, o.ScaleBar = false, false
	return o
}

func render(t *testing.T, im *ngff.Image, o Options) *Preview {
	t.Helper()
	p, err := Render(ctx, im, o, resources())
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// grey is what a value looks like.
func grey(v, lo, hi float64) uint8 {
	return uint8(math.Floor(min(1, max(0, (v-lo)/(hi-lo)))*255 + 0.5))
}

// Every pixel of the three cuts is the voxel that it should be, whatever the order
// of the axes, the chunks and the codec.
func TestCuts(t *testing.T) {
	const nz, ny, nx = 7, 20, 31
	value := func(z, y, x int) float64 { return float64(z*1000 + y*40 + x) }
	for _, s := range []spec{
		{axes: "zyx", shape: []int{nz, ny, nx}, chunks: []int{7, 8, 8}},
		{axes: "zyx", shape: []int{nz, ny, nx}, chunks: []int{2, 20, 5}, codec: "raw"},
		{axes: "xyz", shape: []int{nx, ny, nz}, chunks: []int{10, 7, 7}},
		{axes: "tczyx", shape: []int{1, 1, nz, ny, nx}, chunks: []int{1, 1, 3, 8, 8}},
	} {
		t.Run(s.axes+fmt.Sprint(s.chunks), func(t *testing.T) {
			im, _ := create(t, s, func(i int) float32 {
				if s.axes == "xyz" {
					return float32(value(i%nz, i/nz%ny, i/nz/ny))
				}
				return float32(value(i/ny/nx, i/nx%ny, i%nx))
			})
			for _, at := range [][]int{nil, {0, 0, 0}, {6, 19, 30}, {2, 11, 5}} {
				o := bare()
				o.At = at
				p := render(t, im, o)
				if at == nil {
					at = []int{3, 10, 15}
				}
				lo, hi := p.Window[0], p.Window[1]
				for i, panel := range p.Panels {
					if want := at[i]; panel.Index != want {
						t.Errorf("at %v: %s at %d, want %d", at, panel.Name, panel.Index, want)
					}
					for b := range panel.Rect.Dy() {
						for a := range panel.Rect.Dx() {
							v := map[string]float64{"xy": value(at[0], b, a), "xz": value(b, at[1], a), "yz": value(a, b, at[2])}[panel.Name]
							if got, want := p.Image.RGBAAt(panel.Rect.Min.X+a, panel.Rect.Min.Y+b).R, grey(v, lo, hi); got != want {
								t.Fatalf("at %v, %s pixel (%d, %d): %d, want %d", at, panel.Name, a, b, got, want)
							}
						}
					}
				}
				sizes := []image.Point{{nx, ny}, {nx, nz}, {nz, ny}}
				for i, panel := range p.Panels {
					if panel.Rect.Size() != sizes[i] {
						t.Errorf("%s is %v, want %v", panel.Name, panel.Rect.Size(), sizes[i])
					}
				}
			}
		})
	}
}

// Of a deep volume the panels stand side by side, z down; the voxels are where they
// should be, also in projections.
func TestTall(t *testing.T) {
	const nz, ny, nx = 60, 9, 7
	value := func(z, y, x int) float64 { return float64(z*100 + y*10 + x) }
	im, _ := create(t, spec{axes: "zyx", shape: []int{nz, ny, nx}, chunks: []int{13, 4, 7}}, func(i int) float32 {
		return float32(value(i/ny/nx, i/nx%ny, i%nx))
	})
	for _, kind := range []string{None, AIP, MIP} {
		o := bare()
		o.Projection = kind
		p := render(t, im, o)
		xy, xz, yz := p.Panels[0].Rect, p.Panels[1].Rect, p.Panels[2].Rect
		if xz.Size() != (image.Point{nx, nz}) || yz.Size() != (image.Point{ny, nz}) || xz.Min.X <= xy.Max.X-1 || yz.Min.X <= xz.Max.X-1 || xy.Min.Y != yz.Min.Y {
			t.Fatalf("panels at %v %v %v", xy, xz, yz)
		}
		x := map[string]float64{None: 3, AIP: 3, MIP: 6}[kind]
		for z := range nz {
			for y := range ny {
				want := grey(value(z, y, 0)+x, p.Window[0], p.Window[1])
				if got := p.Image.RGBAAt(yz.Min.X+y, yz.Min.Y+z).R; got != want {
					t.Fatalf("%s: yz pixel (%d, %d): %d, want %d", kind, y, z, got, want)
				}
			}
		}
	}
}

// Panels have the proportions of the specimen, not of the voxel grid.
func TestProportions(t *testing.T) {
	im, _ := create(t, spec{axes: "zyx", shape: []int{10, 50, 60}, chunks: []int{10, 50, 60}, scale: []float64{7, 2, 4}}, func(i int) uint8 { return uint8(i) })
	for _, labels := range []bool{true, false} {
		o := Defaults()
		o.Labels, o.ScaleBar = labels, labels
		p := render(t, im, o)
		for i, um := range [][2]float64{{60 * 4, 50 * 2}, {60 * 4, 10 * 7}, {10 * 7, 50 * 2}} {
			size := p.Panels[i].Rect.Size()
			if math.Abs(float64(size.X)*p.Pixel-um[0]) > p.Pixel/2 || math.Abs(float64(size.Y)*p.Pixel-um[1]) > p.Pixel/2 {
				t.Errorf("%s of %v px of %v µm, want %v µm", p.Panels[i].Name, size, p.Pixel, um)
			}
		}
		a, b, c := p.Panels[0].Rect, p.Panels[1].Rect, p.Panels[2].Rect
		if a.Min.X != b.Min.X || a.Max.X != b.Max.X || a.Min.Y != c.Min.Y || a.Max.Y != c.Max.Y || b.Min.Y <= a.Max.Y || c.Min.X <= a.Max.X {
			t.Errorf("panels do not stand side by side: %v %v %v", a, b, c)
		}
	}
}

// percentile sorts, as numpy's "linear" does.
func percentile(v []float64, q float64) float64 {
	slices.Sort(v)
	pos := float64(len(v)-1) * q / 100
	i := int(pos)
	if i+1 >= len(v) {
		return v[len(v)-1]
	}
	return v[i] + (v[i+1]-v[i])*(pos-float64(i))
}

// The window is the exact percentiles of the voxels that the cuts cross, also
// where there are too many of them to be kept; neither NaN nor infinities count.
func TestWindow(t *testing.T) {
	defer func(n int) { wholeSamples = n }(wholeSamples)
	wholeSamples = 20000
	rng := rand.New(rand.NewPCG(1, 2))
	odd := func(float64) float64 { return float64(rng.ExpFloat64()) }
	for _, s := range []spec{
		{axes: "zyx", shape: []int{9, 60, 70}, chunks: []int{4, 16, 16}},
		{axes: "yx", shape: []int{2050, 2060}, chunks: []int{256, 300}},               // more than are kept
		{axes: "yx", shape: []int{3, 40010}, chunks: []int{2, 1 << 13}, codec: "raw"}, // of extreme proportions
	} {
		values := []float32{}
		im, _ := create(t, s, func(i int) float32 {
			v := float32(odd(0))
			switch i % 97 {
			case 5:
				v = nan
			case 6:
				v = float32(math.Inf(1 - 2*(i/97%2)))
			}
			values = append(values, v)
			return v
		})
		o := bare()
		o.Percentiles, o.MaxSize = [2]float64{2, 97.5}, 150
		p := render(t, im, o)
		var shown []float64
		add := func(i int) {
			if v := float64(values[i]); v-v == 0 {
				shown = append(shown, v)
			}
		}
		if len(s.shape) == 2 {
			for i := range values {
				add(i)
			}
		} else {
			nz, ny, nx := s.shape[0], s.shape[1], s.shape[2]
			for i := range values {
				z, y, x := i/ny/nx, i/nx%ny, i%nx
				for _, on := range []bool{z == nz/2, y == ny/2, x == nx/2} {
					if on { // voxels on two cuts are shown twice
						add(i)
					}
				}
			}
		}
		for k, q := range o.Percentiles {
			if want := percentile(shown, q); p.Window[k] != want {
				t.Errorf("%v: percentile %v is %v, want %v", s.shape, q, p.Window[k], want)
			}
		}
	}
}

// A window that is given is used; its ends have the colormap's ends, NaN neither.
func TestColours(t *testing.T) {
	values := []float32{-5, 10, 15, 20, 99, nan, float32(math.Inf(1)), float32(math.Inf(-1))}
	im, _ := create(t, spec{axes: "yx", shape: []int{1, 8}, chunks: []int{1, 8}}, func(i int) float32 { return values[i] })
	o := bare()
	o.Window, o.Colormap = &[2]float64{10, 20}, "viridis"
	p := render(t, im, o)
	low, middle, high := color.RGBA{68, 1, 84, 255}, color.RGBA{33, 145, 140, 255}, color.RGBA{253, 231, 37, 255}
	for x, want := range []color.RGBA{low, low, middle, high, high, noData, high, low} {
		if got := p.Image.RGBAAt(x, 0); got != want {
			t.Errorf("%v: %v, want %v", values[x], got, want)
		}
	}
	// a constant image is not divided by its range of 0; one without numbers is drawn too
	for _, v := range []float32{3, nan} {
		im, _ := create(t, spec{axes: "yx", shape: []int{2, 2}, chunks: []int{2, 2}}, func(int) float32 { return v })
		var warned string
		res := resources()
		res.Warn = func(m string) { warned = m }
		p, err := Render(ctx, im, bare(), res)
		if err != nil {
			t.Fatal(err)
		}
		want := color.RGBA{0, 0, 0, 255}
		if v != v {
			want = noData
		}
		if got := p.Image.RGBAAt(1, 1); got != want || (v != v) != strings.Contains(warned, "no finite value") {
			t.Errorf("%v: %v %q", v, got, warned)
		}
	}
}

// Projections are the means and maxima along each axis, NaN left out.
func TestProjections(t *testing.T) {
	const nz, ny, nx = 5, 13, 17
	v := make([]float64, nz*ny*nx)
	rng := rand.New(rand.NewPCG(3, 4))
	for i := range v {
		v[i] = float64(rng.IntN(200))
		if rng.IntN(9) == 0 {
			v[i] = math.NaN()
		}
	}
	for z := range nz { // a line of nothing
		v[z*ny*nx+4*nx+4] = math.NaN()
	}
	for _, chunks := range [][]int{{5, 13, 17}, {2, 5, 6}, {1, 13, 4}} {
		im, _ := create(t, spec{axes: "zyx", shape: []int{nz, ny, nx}, chunks: chunks}, func(i int) float64 { return v[i] })
		for _, kind := range []string{AIP, MIP} {
			o := bare()
			o.Projection, o.Window = kind, &[2]float64{0, 200}
			p := render(t, im, o)
			for _, panel := range p.Panels {
				if panel.Index != -1 {
					t.Errorf("%s of %s has index %d", panel.Name, kind, panel.Index)
				}
				for b := range panel.Rect.Dy() {
					for a := range panel.Rect.Dx() {
						sum, n, most := 0.0, 0.0, math.Inf(-1)
						for i, f := range v {
							z, y, x := i/ny/nx, i/nx%ny, i%nx
							at := map[string][2]int{"xy": {x, y}, "xz": {x, z}, "yz": {z, y}}[panel.Name]
							if at == [2]int{a, b} && f == f {
								sum, n, most = sum+f, n+1, max(most, f)
							}
						}
						want := noData
						if n > 0 {
							g := grey(map[string]float64{AIP: float64(float32(sum / n)), MIP: most}[kind], 0, 200)
							want = color.RGBA{g, g, g, 255}
						}
						if got := p.Image.RGBAAt(panel.Rect.Min.X+a, panel.Rect.Min.Y+b); got != want {
							t.Fatalf("%s %s (%d, %d): %v, want %v", kind, panel.Name, a, b, got, want)
						}
					}
				}
			}
		}
	}
}

// The scale bar has the length that it says, a round one, and is drawn there.
func TestScaleBar(t *testing.T) {
	for _, um := range []float64{0.013, 6.5, 25000} {
		for _, n := range []int{3, 40, 700} {
			for _, size := range []int{128, 500, 1000} {
				im, _ := create(t, spec{axes: "yx", shape: []int{n, n}, chunks: []int{n, n}, scale: []float64{um, um}}, func(i int) uint8 { return 7 })
				o := Defaults()
				o.MaxSize = size
				p := render(t, im, o)
				width := float64(p.ScaleBar.Dx())
				if math.Abs(width*p.Pixel-p.ScaleBarMicrometres) > p.Pixel/2*(1+1e-9) && width > 1 {
					t.Errorf("%d voxels of %v µm in %d px: bar of %v px of %v µm says %v µm", n, um, size, width, p.Pixel, p.ScaleBarMicrometres)
				}
				digits := p.ScaleBarMicrometres / math.Pow(10, math.Floor(math.Log10(p.ScaleBarMicrometres)*(1+1e-14)))
				if d := math.Round(digits*1e6) / 1e6; d != 1 && d != 2 && d != 5 && d != 10 {
					t.Errorf("%v µm is no round length", p.ScaleBarMicrometres)
				}
				if b := p.ScaleBar; !b.In(p.Image.Rect) || p.Image.RGBAAt(b.Min.X, b.Min.Y) != words || p.Image.RGBAAt(b.Max.X-1, b.Max.Y-1) != words || p.Image.RGBAAt(b.Max.X, b.Min.Y) == words {
					t.Errorf("bar at %v is not drawn", b)
				}
				if width > float64(p.Image.Rect.Dx())/2 || (n > 3 && width < 10 && size > 200) {
					t.Errorf("bar of %v px in a picture of %v", width, p.Image.Rect.Size())
				}
			}
		}
	}
}

// No picture exceeds its maximal size, whatever the image; no panel vanishes.
func TestMaxSize(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for range 3000 {
		v := &volume{}
		for d := range 3 {
			v.Shape[d] = 1 + int(math.Exp(rng.Float64()*12))
			v.Size[d] = math.Exp(rng.Float64()*16 - 8)
		}
		o := Defaults()
		o.MaxSize, o.Labels, o.ScaleBar = 64+rng.IntN(3000), rng.IntN(2) == 0, rng.IntN(2) == 0
		lay := arrange(v, &o)
		if lay.size.X > o.MaxSize || lay.size.Y > o.MaxSize {
			t.Fatalf("%v voxels of %v µm: a picture of %v, at most %d is wanted", v.Shape, v.Size, lay.size, o.MaxSize)
		}
		for _, p := range lay.panels {
			if p.Empty() || !p.In(image.Rectangle{Max: lay.size}) {
				t.Fatalf("%v voxels of %v µm: panel %v in a picture of %v", v.Shape, v.Size, p, lay.size)
			}
		}
	}
}

// A picture has a size whatever the proportions of voxels are: files are refused before, numbers of a program's own are
// not.
func TestSizeOfAnyProportions(t *testing.T) {
	for _, size := range [][3]float64{{1, 1, 1e-300}, {1e-300, 1, 1}, {1e300, 1e-300, 1}, {1e6, 1e-3, 1e-3}, {5e-324, 1, 1e6}} {
		v := &volume{}
		v.Shape, v.Size = [3]int{16, 32, 1 << 40}, size
		o := Defaults()
		lay := arrange(v, &o)
		if lay.size.X < 1 || lay.size.Y < 1 || lay.size.X > o.MaxSize || lay.size.Y > o.MaxSize {
			t.Errorf("voxels of %v µm: a picture of %v, at most %d is wanted", size, lay.size, o.MaxSize)
		}
	}
}

// Pictures of few voxels are magnified by whole numbers, to about 900 pixels, by two
// to at most 1200.
func TestMagnified(t *testing.T) {
	for side, k := range map[int]int{100: 9, 172: 5, 300: 3, 450: 2, 547: 2, 600: 2, 601: 1, 900: 1} {
		v := &volume{Level: spatial.Level{Shape: [3]int{1, side / 2, side}, Size: [3]float64{1, 1, 1}}}
		o := Defaults()
		if lay := arrange(v, &o); lay.panels[0].Dx() != k*side || lay.panels[0].Dy() != k*(side/2) {
			t.Errorf("%d voxels: panel of %v, want %d times", side, lay.panels[0].Size(), k)
		}
		o.MaxSize = 2*side - 1
		if lay := arrange(v, &o); lay.panels[0].Dx() > side {
			t.Errorf("%d voxels in %d pixels: panel of %v", side, o.MaxSize, lay.panels[0].Size())
		}
	}
}

// The finest level that fits is read; one that is asked for is averaged to fit.
func TestLevels(t *testing.T) {
	im, _ := create(t, spec{axes: "zyx", shape: []int{32, 256, 512}, chunks: []int{32, 128, 128}, levels: 4}, func(i int) uint16 { return uint16(i % 512) })
	for size, want := range map[int]int{1000: 0, 560: 0, 540: 1, 300: 1, 200: 2, 64: 4} {
		o := bare()
		o.MaxSize = size
		p := render(t, im, o)
		if p.Level != want {
			t.Errorf("at most %d px: level %d, want %d", size, p.Level, want)
		}
		if want < 4 && p.Pixel != math.Pow(2, float64(want)) {
			t.Errorf("at most %d px: pixels of %v µm", size, p.Pixel)
		}
	}
	o := bare()
	o.MaxSize, o.Level, o.Window = 136, 0, &[2]float64{0, 511}
	p := render(t, im, o) // 512 voxels in 121 pixels or so, each the mean of its 4.2 voxels
	if p.Level != 0 || p.Pixel <= 4 {
		t.Fatalf("level %d, pixels of %v µm", p.Level, p.Pixel)
	}
	r := p.Panels[0].Rect
	for x := range r.Dx() {
		k := 512 / float64(r.Dx())
		want := (float64(x)+0.5)*k - 0.5
		if got := float64(p.Image.RGBAAt(r.Min.X+x, r.Min.Y).R) * 511 / 255; math.Abs(got-want) > 1.6 {
			t.Errorf("pixel %d: %v, want %v", x, got, want)
		}
	}
	o.Level = 5
	if _, err := Render(ctx, im, o, resources()); !errors.Is(err, ErrOptions) || !strings.Contains(err.Error(), "levels 0 to 4") {
		t.Error(err)
	}
}

// The cut goes through the same place on every level.
func TestCutOfLevel(t *testing.T) {
	im, _ := create(t, spec{axes: "zyx", shape: []int{33, 64, 64}, chunks: []int{33, 64, 64}, levels: 3}, func(i int) uint8 { return uint8(i) })
	for level, want := range map[int][3]int{0: {31, 63, 0}, 1: {15, 31, 0}, 2: {7, 15, 0}, 3: {3, 7, 0}} {
		o := bare()
		o.Level, o.At = level, []int{31, 63, 0}
		for i, p := range render(t, im, o).Panels {
			if p.Index != want[i] {
				t.Errorf("level %d: %s at %d, want %d", level, p.Name, p.Index, want[i])
			}
		}
	}
}

// The picture does not depend on the workers, the memory or the chunks.
func TestSameEverywhere(t *testing.T) {
	f := func(i int) float32 { return float32(math.Sin(float64(i)*0.37)) * float32(i%1000) }
	for _, kind := range []string{None, AIP, MIP} {
		var first []byte
		for _, chunks := range [][]int{{12, 20, 32}, {5, 60, 30}} {
			for _, raw := range []string{"raw", "blosc-zstd:1"} {
				im, _ := create(t, spec{axes: "zyx", shape: []int{12, 60, 50}, chunks: chunks, codec: raw, scale: []float64{3, 1, 1}}, f)
				for _, res := range []oct.Resources{{Workers: 1, Mem: 48 << 20}, {Workers: 5, Mem: 1 << 30}} {
					o := Defaults()
					o.Projection, o.Colormap, o.MaxSize = kind, "turbo", 400
					p, err := Render(ctx, im, o, res)
					if err != nil {
						t.Fatal(err)
					}
					if first == nil {
						first = p.Image.Pix
					}
					if !bytes.Equal(first, p.Image.Pix) {
						t.Errorf("%s: chunks %v, %s, %d workers: another picture", kind, chunks, raw, res.Workers)
					}
				}
			}
		}
	}
}

// Chunks that no cut crosses are not read: here they cannot be.
func TestReadsWhatItCrosses(t *testing.T) {
	im, st := create(t, spec{axes: "zyx", shape: []int{30, 50, 70}, chunks: []int{10, 10, 10}}, func(i int) uint8 { return uint8(i) })
	a := im.Levels[0].Array
	spoilt := 0
	for z := range 3 {
		for y := range 5 {
			for x := range 7 {
				if z != 0 && y != 4 && x != 3 {
					if err := st.Put(ctx, a.ChunkKey([]int{z, y, x}), []byte("spoilt")); err != nil {
						t.Fatal(err)
					}
					spoilt++
				}
			}
		}
	}
	o := bare()
	o.At = []int{9, 49, 30}
	if _, err := Render(ctx, open(t, st), o, resources()); err != nil {
		t.Error(err)
	}
	o.At = []int{10, 49, 30}
	if _, err := Render(ctx, open(t, st), o, resources()); err == nil || spoilt != 48 || !strings.Contains(err.Error(), "0/c/1/") {
		t.Errorf("%d spoilt chunks: %v", spoilt, err)
	}
}

// Titles, captions and bars lie inside of the picture and leave the panels alone.
func TestLabels(t *testing.T) {
	im, _ := create(t, spec{axes: "zyx", shape: []int{20, 300, 400}, chunks: []int{20, 300, 400}}, func(i int) uint8 { return uint8(i) })
	o := Defaults()
	o.Title = strings.Repeat("a very long name ", 20)
	p := render(t, im, o)
	border := func(c color.RGBA) bool { return c == ground }
	size := p.Image.Rect.Size()
	for x := range size.X {
		if !border(p.Image.RGBAAt(x, 0)) || !border(p.Image.RGBAAt(x, size.Y-1)) {
			t.Fatalf("column %d: something at the edge", x)
		}
	}
	for y := range size.Y {
		for _, x := range []int{0, 5, size.X - 6, size.X - 1} {
			if !border(p.Image.RGBAAt(x, y)) {
				t.Fatalf("pixel (%d, %d): something at the edge", x, y)
			}
		}
	}
	title := 0
	for y := range p.Panels[0].Rect.Min.Y - 30 {
		for x := range size.X {
			if !border(p.Image.RGBAAt(x, y)) {
				title++
			}
		}
	}
	if title < 500 {
		t.Errorf("%d pixels of a title", title)
	}
	without := o
	without.Labels, without.ScaleBar = false, false
	q := render(t, im, without)
	if n := len(q.Panels); n != 3 || q.Panels[0].Rect.Min != (image.Point{}) {
		t.Errorf("%d panels, the first at %v", n, q.Panels[0].Rect.Min)
	}
}

func TestErrors(t *testing.T) {
	volume := spec{axes: "zyx", shape: []int{4, 5, 6}, chunks: []int{4, 5, 6}}
	im, _ := create(t, volume, func(i int) uint8 { return uint8(i) })
	for want, change := range map[string]func(*Options){
		"y = 5 is outside":   func(o *Options) { o.At = []int{0, 5, 0} },
		"z = -1 is outside":  func(o *Options) { o.At = []int{-1, 0, 0} },
		"--at has 2 numbers": func(o *Options) { o.At = []int{1, 2} },
		"no colormap":        func(o *Options) { o.Colormap = "jet" },
		"--projection":       func(o *Options) { o.Projection = "sum" },
		"--percentiles":      func(o *Options) { o.Percentiles = [2]float64{50, 50} },
		"--percentiles 0":    func(o *Options) { o.Percentiles = [2]float64{0, 101} },
		"--window":           func(o *Options) { o.Window = &[2]float64{math.NaN(), 1} },
		"--max_size 63":      func(o *Options) { o.MaxSize = 63 },
	} {
		o := Defaults()
		change(&o)
		if _, err := Render(ctx, im, o, resources()); !errors.Is(err, ErrOptions) || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q: %v", want, err)
		}
	}
	locked := octtest.Open(t, octtest.Locked{Store: im.Group.Store()})
	if _, err := Render(ctx, locked, Defaults(), resources()); !errors.Is(err, oct.ErrInput) || !errors.Is(err, fs.ErrPermission) {
		t.Errorf("chunks that may not be read: %v, want ErrInput and ErrPermission", err)
	}
	flat, _ := create(t, spec{axes: "yx", shape: []int{5, 6}, chunks: []int{5, 6}}, func(i int) uint8 { return uint8(i) })
	o := Defaults()
	o.At = []int{0, 1, 1}
	if _, err := Render(ctx, flat, o, resources()); !errors.Is(err, ErrOptions) {
		t.Error(err)
	}
	odd, _ := create(t, spec{axes: "zx", shape: []int{5, 6}, chunks: []int{5, 6}}, func(i int) uint8 { return uint8(i) })
	if _, err := Render(ctx, odd, Defaults(), resources()); !errors.Is(err, oct.ErrInput) || !strings.Contains(err.Error(), "no axes y and x") {
		t.Error(err)
	}
	big, _ := create(t, spec{axes: "yx", shape: []int{2000, 1500}, chunks: []int{2000, 1500}}, func(i int) float32 { return float32(i) })
	for _, kind := range []string{None, MIP} {
		o := Defaults()
		o.Projection = kind
		if _, err := Render(ctx, big, o, oct.Resources{Workers: 1, Mem: 16 << 20}); err == nil || errors.Is(err, oct.ErrInput) || !strings.Contains(err.Error(), "--mem grants 16 MiB") {
			t.Error(err)
		}
	}
	stopped, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := Render(stopped, big, Defaults(), resources()); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	// channels beyond the first are not shown, and that is said
	many, _ := create(t, spec{axes: "cyx", shape: []int{3, 5, 6}, chunks: []int{1, 5, 6}}, func(i int) uint8 { return uint8(i / 30 * 100) })
	warned := ""
	res := resources()
	res.Warn = func(m string) { warned += m }
	b := bare()
	b.Window = &[2]float64{0, 100}
	p, err := Render(ctx, many, b, res)
	if err != nil || p.Image.RGBAAt(3, 3).R != 0 || !strings.Contains(warned, "axis c has 3 entries") {
		t.Errorf("%v %q", err, warned)
	}
}
