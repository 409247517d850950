package bias

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"strata/pkg/dtype"
	"strata/pkg/filter"
	"strata/pkg/mem"
	"strata/pkg/ngff"
	"strata/pkg/oct"
	"strata/pkg/zarr/store"
	"strata/tests/octtest"
)

// specimen returns a volume of 12 planes with tissue of about 0.4 in an ellipse, under a field that rises along x.
func specimen(t *testing.T, chunks []int, voxel func(z, y, x int, v float64) float32) *ngff.Image {
	t.Helper()
	r := rand.New(rand.NewPCG(1, 2))
	im, _ := octtest.Made(t, []int{12, 44, 50}, chunks, nil, nil, func(i int) float32 {
		z, y, x := i/2200, i/50%44, i%50
		u, w := float64(y)/21.5-1, float64(x)/24.5-1
		v := (0.4 + 0.02*r.NormFloat64()) * math.Exp(0.3*w)
		if u*u+w*w > 0.7 {
			v = 0
		}
		return voxel(z, y, x, v)
	})
	return im
}

func plain(_, _, _ int, v float64) float32 { return float32(v) }

func options() Options {
	o := DefaultOptions()
	o.Shrink, o.Iterations, o.PyramidResolutions, o.MakeIsotropic = 2, []int{20, 20}, []float64{2}, false
	return o
}

func run(t *testing.T, in *ngff.Image, o Options, layout oct.Layout, res oct.Resources) *Result {
	t.Helper()
	r, err := Run(octtest.Ctx, in, store.Memory(), o, layout, res)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// The voxels are the same bits whatever the workers, the memory and the chunks.
func TestSameNumbers(t *testing.T) {
	o := options()
	o.Sections, o.MatchPlanes, o.ProfileSigma = 3, true, 1
	var first []float32
	for _, chunks := range [][]int{{12, 44, 50}, {5, 16, 20}} {
		in := specimen(t, chunks, plain)
		for _, res := range []oct.Resources{{Workers: 1, Mem: 64 << 20}, {Workers: 3, Mem: 64 << 20}, {Workers: 3, Mem: 15 << 20}} {
			before := mem.InUse()
			r := run(t, in, o, oct.Layout{Chunks: []int{4, 22, 25}}, res)
			got := octtest.Read(t, r.Image.Levels[0].Array)
			if first == nil {
				first = got
				if r.CVAfter > 0.6*r.CVBefore || r.Coverage < 0.3 || r.Coverage > 0.6 || !(r.SmallestGain < 0.9 && r.MostGain > 1.1) {
					t.Errorf("%+v", r)
				}
			}
			octtest.SameBits(t, got, first)
			if mem.InUse() != before {
				t.Errorf("%d bytes are not freed", mem.InUse()-before)
			}
		}
	}
}

// Without strength a volume keeps its voxels, except for those outside the mask, and for numbers that are none.
func TestStrength(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	in := specimen(t, []int{4, 44, 50}, func(z, y, x int, v float64) float32 {
		switch {
		case z == 3 && y == 22 && x == 25:
			return nan
		case z == 5 && y == 20 && x == 25:
			return inf
		case z == 3 && y == 0:
			return 0.01 // not tissue
		}
		return float32(v)
	})
	want := octtest.Read(t, in.Levels[0].Array)
	o := options()
	o.Strength, o.Match, o.ZeroOutside = 0, false, false
	r := run(t, in, o, oct.Layout{}, octtest.Small())
	octtest.SameBits(t, octtest.Read(t, r.Image.Levels[0].Array), want)
	o.ZeroOutside = true
	r = run(t, in, o, oct.Layout{}, octtest.Small())
	got := octtest.Read(t, r.Image.Levels[0].Array)
	for i, v := range got {
		if y := i / 50 % 44; i/2200 == 3 && y == 0 && v != 0 {
			t.Fatalf("voxel %d outside the mask is %v", i, v)
		}
	}
	at := func(v []float32, z, y, x int) float32 { return v[(z*44+y)*50+x] }
	if v := at(got, 3, 22, 25); v == v {
		t.Errorf("NaN becomes %v", v)
	}
	if v := at(got, 5, 20, 25); v != inf {
		t.Errorf("infinity becomes %v", v)
	}
	if a, b := at(got, 6, 22, 25), at(want, 6, 22, 25); a != b {
		t.Errorf("tissue of %v becomes %v", b, a)
	}
}

// The field that is kept is what the matched volume was divided by.
func TestSavedField(t *testing.T) {
	in := specimen(t, []int{4, 44, 50}, plain)
	o := options()
	o.Match, o.SavedField, o.ZeroOutside = false, store.Memory(), false
	r := run(t, in, o, oct.Layout{}, octtest.Small())
	v, got, field := octtest.Read(t, in.Levels[0].Array), octtest.Read(t, r.Image.Levels[0].Array), octtest.Read(t, r.Field.Levels[0].Array)
	for i := range v {
		if want := float64(v[i]) / float64(field[i]); math.Abs(float64(got[i])-want) > 1e-6 {
			t.Fatalf("voxel %d: %v / %v is %v, got %v", i, v[i], field[i], want, got[i])
		}
	}
	if low, high := slices.Min(field), slices.Max(field); !(low < 0.9 && high > 1.1) {
		t.Errorf("field from %v to %v", low, high)
	}
	o.SavedField, o.ZeroOutside = store.Memory(), true
	r = run(t, in, o, oct.Layout{}, octtest.Small())
	octtest.SameBits(t, octtest.Read(t, r.Field.Levels[0].Array), field)
}

// Sections of different brightness become equal, and so do planes.
func TestMatching(t *testing.T) {
	gains := []float64{1, 0.6, 1.3}
	in := specimen(t, []int{4, 44, 50}, func(z, _, _ int, v float64) float32 { return float32(v * gains[z/4] * (1 + 0.1*float64(z%2))) })
	means := func(o Options) (out []float64) {
		o.Sections, o.Strength = 3, 0
		got := octtest.Read(t, run(t, in, o, oct.Layout{}, octtest.Small()).Image.Levels[0].Array)
		for z := range 12 {
			s := 0.0
			for y := 10; y < 34; y++ {
				for x := 12; x < 38; x++ {
					s += float64(got[(z*44+y)*50+x]) / 24 / 26
				}
			}
			out = append(out, s)
		}
		return out
	}
	ratio := func(v ...float64) float64 { return slices.Max(v) / slices.Min(v) }
	o := options()
	if m := means(o); ratio(m[0], m[4], m[8]) > 1.02 || ratio(m[0], m[1]) < 1.05 {
		t.Errorf("means of planes %v after matching sections", m)
	}
	o.MatchPlanes = true
	if m := means(o); ratio(m...) > 1.02 {
		t.Errorf("means of planes %v after matching planes", m)
	}
	o.Match, o.ProfileSigma = false, 100
	if m := means(o); ratio(m...) > 1.02 {
		t.Errorf("means of planes %v with a level profile", m)
	}
	o.ProfileSigma = 0
	if m := means(o); ratio(m...) < 1.8 {
		t.Errorf("means of planes %v without matching", m)
	}
}

func TestBad(t *testing.T) {
	in := specimen(t, []int{4, 44, 50}, plain)
	empty := specimen(t, []int{4, 44, 50}, func(_, _, _ int, _ float64) float32 { return -1 })
	thin := specimen(t, []int{4, 44, 50}, func(z, y, x int, _ float64) float32 {
		if y == 1 && x < 30 { // too near to the border
			return 1
		}
		return 0
	})
	for name, c := range map[string]struct {
		in   *ngff.Image
		with func(o *Options)
		mem  int64
		want string
		is   error
	}{
		"sections":  {in, func(o *Options) { o.Sections = 13 }, 64 << 20, "--n_serial_slices 13: ", oct.ErrLayout},
		"shrink":    {in, func(o *Options) { o.Shrink = -1 }, 64 << 20, "shrink factor -1", oct.ErrLayout},
		"strength":  {in, func(o *Options) { o.Strength = math.NaN() }, 64 << 20, "strength NaN", oct.ErrLayout},
		"sigma":     {in, func(o *Options) { o.MaskSigma = -1 }, 64 << 20, "Gaussians of -1", oct.ErrLayout},
		"nothing":   {empty, func(*Options) {}, 64 << 20, "no voxel is above 0", oct.ErrInput},
		"no tissue": {thin, func(o *Options) { o.MaskSigma = 0 }, 64 << 20, "no tissue found", oct.ErrInput},
		"memory":    {in, func(*Options) {}, 1 << 20, "--mem grants 1 MiB", nil},
	} {
		o := options()
		c.with(&o)
		_, err := Run(octtest.Ctx, c.in, store.Memory(), o, oct.Layout{}, oct.Resources{Workers: 2, Mem: c.mem})
		if err == nil || !strings.Contains(err.Error(), c.want) || c.is != nil && !errors.Is(err, c.is) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// runsOf returns the runs of a mask.
func runsOf(mask []uint8) runs {
	p := filter.NewBitPlane(1, len(mask))
	for x, v := range mask {
		if v != 0 {
			p.Words[x/64] |= 1 << (x % 64)
		}
	}
	return p.AppendRuns(nil)
}

// Masks by runs are those by pixels.
func TestRuns(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	random := func() []uint8 {
		m, share := make([]uint8, 60), r.Float64()
		for i := range m {
			if r.Float64() < share {
				m[i] = 1
			}
		}
		return m
	}
	for range 300 {
		a, b := random(), random()
		for _, both := range []bool{false, true} {
			got, want, n := make([]uint8, 60), make([]uint8, 60), int64(0)
			m := merge(runsOf(a), runsOf(b), both)
			m.expand(got)
			for i := range want {
				if want[i] = a[i] | b[i]; both {
					want[i] = a[i] & b[i]
				}
				n += int64(want[i])
				if m.has(uint32(i)) != (want[i] == 1) {
					t.Fatalf("pixel %d of %v", i, m)
				}
			}
			if !slices.Equal(got, want) || m.count() != n {
				t.Fatalf("%v and %v: %v, want %v", a, b, got, want)
			}
		}
	}
	m := tissueMask{planes: make([]runs, 9)}
	for _, z := range []int{0, 1, 5, 6, 8} {
		m.planes[z] = runsOf([]uint8{0, 1, 1, 0})
	}
	m.closeAlongZ()
	for z, p := range m.planes {
		if p.count() != 2 {
			t.Errorf("plane %d has %d pixels: gaps of up to 4 planes are closed, and no end is lost", z, p.count())
		}
	}
}

// Sections and types of any sort: one plane, integers, more levels than voxels.
func TestShapes(t *testing.T) {
	for _, shape := range [][]int{{1, 40, 40}, {7, 9, 40}, {3, 30, 30}} {
		im, _ := octtest.Made(t, shape, shape, nil, nil, func(i int) uint16 { return uint16(100 + 37*(i%40) + i%11) })
		o := options()
		o.Shrink, o.Iterations, o.Sections = 8, []int{3, 3, 3}, shape[0]
		r := run(t, im, o, oct.Layout{}, octtest.Small())
		if a := r.Image.Levels[0].Array; a.DType() != dtype.Float32 || !slices.Equal(a.Shape(), shape) && !slices.Equal(a.Shape()[1:], shape[1:]) {
			t.Errorf("%v: output %v %v", shape, a.Shape(), a.DType())
		}
	}
}
