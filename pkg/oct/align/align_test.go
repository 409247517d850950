package align

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"strata/pkg/dtype"
	"strata/pkg/filter/mattes"
	"strata/pkg/mem"
	"strata/pkg/ngff"
	"strata/pkg/oct"
	"strata/pkg/oct/blocks"
	"strata/pkg/zarr/store"
	"strata/tests/octtest"
)

// anatomy is a smooth object without symmetry at a place in mm from its centre, 0 outside.
func anatomy(p mattes.Vec) float64 {
	x, y, z := p[0], (p[1]-0.12*p[0]*p[0])/0.8, p[2]/0.62
	r := x*x + y*y + z*z
	if r > 1 {
		return 0
	}
	v := 0.5 + 0.18*math.Sin(5*p[0]+1)*math.Cos(6*p[1]) + 0.15*math.Sin(7*p[2]+2*p[0])
	for _, b := range [][4]float64{{0.45, 0.2, 0.1, 0.2}, {-0.4, -0.3, 0.2, 0.17}, {0, 0.4, -0.25, 0.22}, {-0.5, 0.25, -0.1, 0.15}} {
		d := (p[0]-b[0])*(p[0]-b[0]) + (p[1]-b[1])*(p[1]-b[1]) + (p[2]-b[2])*(p[2]-b[2])
		v += 0.5 * math.Exp(-d/(b[3]*b[3]))
	}
	return v * min(1, (1-r)*8)
}

// imageOf writes an image of uint16 with a pyramid.
func imageOf(t *testing.T, shape [3]int, um [3]float64, levels int, value func(z, y, x int) float64) *ngff.Image {
	t.Helper()
	st := store.Memory()
	chunks := []int{min(16, shape[0]), min(24, shape[1]), min(20, shape[2])}
	w, err := ngff.Create(octtest.Ctx, st, "", ngff.ImageSpec{Shape: shape[:], Chunks: chunks, DType: dtype.Uint16, Axes: ngff.SpaceAxes("zyx", "millimeter"),
		Scale: []float64{um[0] / 1000, um[1] / 1000, um[2] / 1000}, Levels: levels})
	if err != nil {
		t.Fatal(err)
	}
	v := make([]uint16, shape[0]*shape[1]*shape[2])
	for i := range v {
		v[i] = uint16(value(i/shape[2]/shape[1], i/shape[2]%shape[1], i%shape[2]))
	}
	for z := 0; z < shape[0]; z += chunks[0] {
		for y := 0; y < shape[1]; y += chunks[1] {
			for x := 0; x < shape[2]; x += chunks[2] {
				n := []int{min(chunks[0], shape[0]-z), min(chunks[1], shape[1]-y), min(chunks[2], shape[2]-x)}
				var tile []uint16
				for a := range n[0] {
					for b := range n[1] {
						tile = append(tile, v[((z+a)*shape[1]+y+b)*shape[2]+x:][:n[2]]...)
					}
				}
				if err := w.WriteTile(octtest.Ctx, []int{z, y, x}, n, dtype.Bytes(tile)); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	if err := w.Close(octtest.Ctx); err != nil {
		t.Fatal(err)
	}
	return octtest.Open(t, st)
}

var (
	truth       = mattes.Euler{Angles: mattes.Vec{0.12, -0.09, 0.14}, Translation: mattes.Vec{0.3, 0.2, 0.25}, Centre: mattes.Vec{1.2, 1.05, 0.8}}
	volumeShape = [3]int{62, 70, 78}
)

const volumeUM = 40.0

// specimen is the anatomy in a volume, with another contrast: what the template shows at p it shows at truth(p).
func specimen(z, y, x int) float64 {
	m, offset := truth.Affine()
	back := m.Transpose()
	p := back.Apply(mattes.Vec{float64(x)*volumeUM/1000 - offset[0], float64(y)*volumeUM/1000 - offset[1], float64(z)*volumeUM/1000 - offset[2]})
	for d := range p {
		p[d] -= truth.Centre[d]
	}
	if v := anatomy(p); v > 0 {
		return max(1, 3000-2000*v+800*math.Sin(6*v))
	}
	return 0
}

func template(t *testing.T) *ngff.Image {
	return imageOf(t, [3]int{32, 42, 48}, [3]float64{50, 50, 50}, 0, func(z, y, x int) float64 {
		return 1000 * anatomy(mattes.Vec{float64(x)*0.05 - truth.Centre[0], float64(y)*0.05 - truth.Centre[1], float64(z)*0.05 - truth.Centre[2]})
	})
}

func options() Options {
	o := DefaultOptions()
	o.Level, o.PyramidResolutions = 0, []float64{volumeUM}
	return o
}

func run(t *testing.T, in, to *ngff.Image, o Options, layout oct.Layout, res oct.Resources) *Result {
	t.Helper()
	r, err := Run(octtest.Ctx, in, to, store.Memory(), o, layout, res)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// A specimen that is turned by 7, −5 and 8° and shifted comes back within 0.3° and half a voxel, with the same bits
// whatever the workers and the memory; it then lies on the template.
func TestRun(t *testing.T) {
	in, to := imageOf(t, volumeShape, [3]float64{volumeUM, volumeUM, volumeUM}, 1, specimen), template(t)
	var first *Result
	var voxels []float32
	for _, res := range []oct.Resources{{Workers: 3, Mem: 128 << 20}, {Workers: 1, Mem: 48 << 20}} {
		before := mem.InUse()
		r := run(t, in, to, options(), oct.Layout{}, res)
		got := octtest.Read(t, r.Image.Levels[0].Array)
		if mem.InUse()-before > 1<<20 { // codecs keep some
			t.Errorf("%d workers: %d bytes are not freed", res.Workers, mem.InUse()-before)
		}
		if first == nil {
			first, voxels = r, got
		}
		octtest.SameBits(t, got, voxels)
	}
	e, m := first.Transform.Euler, truth.Matrix()
	found := e.Matrix()
	trace := 0.0
	for i := range 3 {
		for j := range 3 {
			trace += m[i][j] * found[i][j]
		}
	}
	if angle := math.Acos(min(1, (trace-1)/2)) * 180 / math.Pi; angle > 0.3 {
		t.Errorf("rotation off by %.3f°: %+v", angle, e)
	}
	a, offset := e.Affine()
	b, want := truth.Affine()
	p, q := a.Apply(truth.Centre), b.Apply(truth.Centre)
	for d := range p {
		if off := (p[d] + offset[d] - q[d] - want[d]) * 1000 / volumeUM; math.Abs(off) > 0.5 {
			t.Errorf("%.2f voxels off along axis %d", off, d)
		}
	}
	// the output has the template's box, at the voxel size of the volume
	shape := first.Image.Levels[0].Array.Shape()
	if want := []int{40, 52, 60}; !slices.Equal(shape, want) {
		t.Fatalf("shape %v, want %v", shape, want)
	}
	sum, n := 0.0, 0.0
	for i, v := range voxels {
		z, y, x := i/shape[2]/shape[1], i/shape[2]%shape[1], i%shape[2]
		place := func(i int) float64 { return (float64(i)+0.5)*0.04 - 0.025 } // in mm from the template's first voxel
		a := anatomy(mattes.Vec{place(x) - truth.Centre[0], place(y) - truth.Centre[1], place(z) - truth.Centre[2]})
		if a > 0.4 {
			d := float64(v) - (3000 - 2000*a + 800*math.Sin(6*a))
			sum, n = sum+d*d, n+1
		}
	}
	if rms := math.Sqrt(sum / n); n < 5000 || rms > 150 {
		t.Errorf("%v voxels differ by %.1f of 3000 (RMS) from the specimen in the template's frame", n, rms)
	}
	if got := first.Image.Levels[0].Translation; math.Abs(got[0]+0.005) > 1e-12 || math.Abs(got[2]+0.005) > 1e-12 {
		t.Errorf("translation %v, want -0.005", got)
	}
}

// Whatever the order and the direction of its axes, a volume gives the same result once its orientation is known.
func TestOrientation(t *testing.T) {
	to := template(t)
	o := options()
	o.Iterations, o.Grid = 3, Whole
	// coarse voxels of different length along each axis, and images that show the same
	coarse := [3]float64{120, 80, 100}
	n := [3]int{20, 35, 31}
	at := func(z, y, x int) float64 { return specimen(3*z+1, 2*y, int(2.5*float64(x))) }
	want := run(t, imageOf(t, n, coarse, 0, at), to, o, oct.Layout{}, octtest.Small())
	voxels := octtest.Read(t, want.Image.Levels[0].Array)
	for code, index := range map[string]func(i [3]int) (z, y, x int){
		"IAR": func(i [3]int) (z, y, x int) { return n[0] - 1 - i[0], i[1], i[2] },
		"RSP": func(i [3]int) (z, y, x int) { return i[1], n[1] - 1 - i[2], i[0] },
		"alS": func(i [3]int) (z, y, x int) { return i[2], i[0], n[2] - 1 - i[1] },
	} {
		o.Orientation = code
		p, err := parseOrientation("input_orientation", code)
		if err != nil {
			t.Fatal(err)
		}
		var shape [3]int
		var um [3]float64
		for d, i := range p.axis {
			shape[i], um[i] = n[d], coarse[d]
		}
		in := imageOf(t, shape, um, 0, func(z, y, x int) float64 { return at(index([3]int{z, y, x})) })
		r := run(t, in, to, o, oct.Layout{}, octtest.Small())
		if r.Transform.Euler != want.Transform.Euler {
			t.Errorf("%s: %+v, want %+v", code, r.Transform.Euler, want.Transform.Euler)
		}
		got := octtest.Read(t, r.Image.Levels[0].Array)
		if len(got) != len(voxels) {
			t.Fatalf("%s: shape %v, want %v", code, r.Image.Levels[0].Array.Shape(), want.Image.Levels[0].Array.Shape())
		}
		off := 0
		for i, v := range voxels {
			if math.Abs(float64(got[i]-v)) > 0.01 {
				off++
			}
		}
		if off > 2 { // at the border, where rounding decides what is inside
			t.Errorf("%s: %d of %d voxels differ", code, off, len(voxels))
		}
		if !slices.Equal(r.Image.Levels[0].Scale, want.Image.Levels[0].Scale) {
			t.Errorf("%s: scale %v, want %v", code, r.Image.Levels[0].Scale, want.Image.Levels[0].Scale)
		}
	}
}

// A volume that is not turned stays as it is in its own box; turned by a quarter about z, x runs along y.
func TestWhole(t *testing.T) {
	n := [3]int{11, 24, 28}
	in := imageOf(t, n, [3]float64{50, 100, 100}, 0, func(z, y, x int) float64 { return float64(z + 13*y + 311*x) })
	v, err := blocks.Open(in)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		angle float64
		shape [3]int
		at    func(z, y, x int) (int, int, int)
	}{
		"still":   {0, n, func(z, y, x int) (int, int, int) { return z, y, x }},
		"quarter": {math.Pi / 2, [3]int{11, 28, 24}, func(z, y, x int) (int, int, int) { return z, x, 27 - y }},
	} {
		r := &Result{Transform: &mattes.Result{Euler: mattes.Euler{Angles: mattes.Vec{0, 0, c.angle}, Translation: mattes.Vec{0.3, -0.2, 0.7}}}}
		for i := range r.orientations {
			if r.orientations[i], err = parseOrientation("x", "SAR"); err != nil {
				t.Fatal(err)
			}
		}
		g, err := r.grid(v, v, Whole)
		if err != nil {
			t.Fatal(err)
		}
		out := store.Memory()
		if err := g.write(octtest.Ctx, out, oct.Analysis{PyramidResolutions: []float64{50}}, oct.Layout{}, octtest.Small()); err != nil {
			t.Fatal(err)
		}
		a := octtest.Open(t, out).Levels[0].Array
		if !slices.Equal(a.Shape(), c.shape[:]) {
			t.Fatalf("%s: shape %v, want %v", name, a.Shape(), c.shape)
		}
		for i, got := range octtest.Read(t, a) {
			z, y, x := c.at(i/c.shape[2]/c.shape[1], i/c.shape[2]%c.shape[1], i%c.shape[2])
			if want := float64(z + 13*y + 311*x); math.Abs(float64(got)-want) > 0.01 {
				t.Fatalf("%s: voxel %d is %v, want %v", name, i, got, want)
			}
		}
	}
}

func TestBad(t *testing.T) {
	in, to := imageOf(t, [3]int{20, 24, 28}, [3]float64{100, 100, 100}, 0, func(z, y, x int) float64 { return specimen(2*z, 2*y, 2*x) }), template(t)
	zero := imageOf(t, [3]int{8, 8, 8}, [3]float64{100, 100, 100}, 0, func(z, y, x int) float64 { return 0 })
	huge := imageOf(t, [3]int{8, 8, 8}, [3]float64{1e6, 1e6, 1e6}, 0, func(z, y, x int) float64 { return float64(z + 2*y + 3*x) })
	for name, c := range map[string]struct {
		in, to *ngff.Image
		with   func(o *Options)
		mem    int64
		want   string
		is     error
	}{
		"letters":        {in, to, func(o *Options) { o.Orientation = "RR" }, 64 << 20, "--input_orientation RR: want three letters", oct.ErrLayout},
		"twice":          {in, to, func(o *Options) { o.Orientation = "RLS" }, 64 << 20, "--input_orientation RLS: want three letters", oct.ErrLayout},
		"none":           {in, to, func(o *Options) { o.TemplateOrientation = "" }, 64 << 20, "--template_orientation", oct.ErrLayout},
		"rotation":       {in, to, func(o *Options) { o.Rotation = []float64{1, 2} }, 64 << 20, "--initial_rotation has 2 numbers", oct.ErrLayout},
		"empty":          {zero, to, func(*Options) {}, 64 << 20, "no voxel above 0", oct.ErrInput},
		"empty template": {in, zero, func(*Options) {}, 64 << 20, "no voxel above 0", oct.ErrInput},
		"memory":         {in, to, func(*Options) {}, 1 << 20, "--mem grants 1 MiB", nil},
		"sizes":          {in, huge, func(*Options) {}, 64 << 20, "", oct.ErrInput},
	} {
		o := options()
		o.Iterations = 3
		c.with(&o)
		_, err := Run(octtest.Ctx, c.in, c.to, store.Memory(), o, oct.Layout{}, oct.Resources{Workers: 2, Mem: c.mem})
		if err == nil || !strings.Contains(err.Error(), c.want) || c.is != nil && !errors.Is(err, c.is) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	ended, cancel := context.WithCancel(octtest.Ctx)
	cancel()
	if _, err := Run(ended, in, to, store.Memory(), options(), oct.Layout{}, octtest.Small()); !errors.Is(err, context.Canceled) {
		t.Errorf("a run that is ended: %v", err)
	}
}

// Where coarse resolutions of a volume of a few voxels lead astray, a warning says so.
func TestLedAstray(t *testing.T) {
	for seed := range uint64(120) {
		r := rand.New(rand.NewPCG(seed, 3))
		random := func() *ngff.Image {
			shape, phase := []int{4 + r.IntN(8), 6 + r.IntN(8), 6 + r.IntN(8)}, r.Float64()*6
			im, _ := octtest.Made(t, shape, shape, nil, nil, func(i int) float32 {
				z, y, x := float64(i/shape[2]/shape[1]), float64(i/shape[2]%shape[1]), float64(i%shape[2])
				f := math.Sin(x/2+phase)*math.Cos(y/3+phase) + math.Sin(z/2) + 0.1*r.Float64()
				return float32(max(0, f) * float64(r.IntN(2)))
			})
			return im
		}
		var warnings []string
		res := oct.Resources{Workers: 1, Mem: 64 << 20, Warn: func(m string) { warnings = append(warnings, m) }}
		o := options()
		o.Iterations = 50
		got, err := Run(octtest.Ctx, random(), random(), nil, o, oct.Layout{}, res)
		if err != nil || !got.Transform.Restarted {
			continue
		}
		if len(warnings) == 0 || !strings.Contains(warnings[0], "the coarse resolutions led astray") {
			t.Errorf("seed %d: warnings %q", seed, warnings)
		}
		return
	}
	t.Error("no registration was led astray: this test shows nothing")
}
