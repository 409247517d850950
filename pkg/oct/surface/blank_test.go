package surface

import (
	"math"
	"math/rand/v2"
	"testing"

	"strata/pkg/dtype"
	"strata/pkg/ngff"
	"strata/pkg/oct"
	"strata/pkg/oct/blocks"
	"strata/pkg/zarr/store"
	"strata/tests/octtest"
)

// What shows nothing is told from surfaces and from structure, also where the surface was cut off and tiles were
// blended and normalised.
func TestBlank(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 5))
	speckle := func() float64 { return rng.ExpFloat64() }
	// seams blends two tiles in a quarter of the area, and cuts off what is darker than the median, as normalize does.
	seams := func(x int) float32 {
		v := math.Hypot(rng.NormFloat64(), rng.NormFloat64())
		if x%64 < 16 {
			v = (v + math.Hypot(rng.NormFloat64(), rng.NormFloat64())) / 2
		}
		return float32(max(v-1.18, 0))
	}
	vignette := func(y, x int) float64 {
		return 1 - 0.3*(math.Pow(float64(y%64)/32-1, 2)+math.Pow(float64(x%64)/32-1, 2))/2
	}
	decay := func(z float64) float64 { return math.Exp(-z / 60) }
	for _, c := range []struct {
		name string
		in   *ngff.Image
		want bool
	}{
		{"Gaussian", made(t, func(_, _, _ int) float32 { return float32(100 + 10*rng.NormFloat64()) }), true},
		{"speckle, integers", made(t, func(_, _, _ int) uint16 { return uint16(50 * speckle()) }), true},
		{"decibels", made(t, func(_, _, _ int) float32 { return float32(10 * math.Log10(speckle()+1e-9)) }), true},
		{"noise in blended tiles, normalised", made(t, func(_, _, x int) float32 { return seams(x) }), true},
		{"agarose cut below its surface", made(t, func(z, y, x int) float32 { return float32(vignette(y, x) * decay(float64(z)) * speckle()) }), true},
		{"agarose", made(t, func(z, y, x int) float32 {
			return float32(vignette(y, x) * (0.15 + 0.85*decay(float64(max(z-10, 0)))*float64(min(max(z-9, 0), 1))) * speckle())
		}), false},
		{"tissue cut below its surface", made(t, func(z, y, x int) float32 {
			return float32((1 + 0.25*math.Sin(float64(y)/9+float64(z)/8)*math.Cos(float64(x)/11)) * speckle())
		}), false},
		{"tissue so faint that depths do not show it", made(t, func(z, y, x int) float32 {
			return float32((1 + 0.12*math.Sin(float64(y)/9+float64(z)/8)*math.Cos(float64(x)/11)) * speckle())
		}), false},
		{"empty", made(t, func(_, _, _ int) uint16 { return 0 }), false},
	} {
		got, err := Blank(octtest.Ctx, c.in, octtest.Small())
		if err != nil || got != c.want {
			t.Errorf("%s: %v, %v", c.name, got, err)
		}
		v, err := blocks.Open(c.in)
		if err != nil {
			t.Fatal(err)
		}
		s := newSample(v.Shape)
		voxels := make([]float32, s.voxels())
		if err := v.Read(octtest.Ctx, voxels, make([]byte, 4*len(voxels)), [3]int{}, v.Shape); err != nil {
			t.Fatal(err)
		}
		s.add(voxels)
		spread, alike, _ := s.depths.measure()
		t.Logf("%s: spread %.2f, correlation of depths %.2f, of ratios %.2f", c.name, spread, alike, s.ratios.NCC())
	}
}

// Images that are no slices, and those for which there is little memory, are not judged.
func TestBlankOfOthers(t *testing.T) {
	rng := rand.New(rand.NewPCG(6, 6))
	noise := func(int) float32 { return float32(rng.ExpFloat64()) }
	in, _ := octtest.Made(t, []int{40, 128, 128}, []int{40, 64, 64}, nil, nil, noise)
	if got, err := Blank(octtest.Ctx, in, oct.Resources{Workers: 2, Mem: 8 << 20}); got || err != nil {
		t.Errorf("in 8 MiB: %v, %v", got, err)
	}
	flat, _ := octtest.Made(t, []int{1, 128, 128}, []int{1, 64, 64}, nil, nil, noise)
	if got, err := Blank(octtest.Ctx, flat, octtest.Small()); got || err != nil {
		t.Errorf("a plane: %v, %v", got, err)
	}
	st, shape := store.Memory(), []int{2, 20, 64, 64}
	w, err := ngff.Create(octtest.Ctx, st, "", ngff.ImageSpec{Format: 3, Shape: shape, Chunks: shape, DType: dtype.Uint8, Axes: ngff.SpaceAxes("czyx", "micrometer"), Scale: []float64{1, 2, 2, 2}})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.WriteTile(octtest.Ctx, make([]int, 4), shape, make([]byte, 2*20*64*64)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(octtest.Ctx); err != nil {
		t.Fatal(err)
	}
	if got, err := Blank(octtest.Ctx, octtest.Open(t, st), octtest.Small()); got || err != nil {
		t.Errorf("channels: %v, %v", got, err)
	}
}

// Boxes are spread over an image, lie within it, and cover small ones.
func TestSample(t *testing.T) {
	for _, c := range []struct {
		length, n, side int
	}{{1, 1, 1}, {100, 1, 100}, {128, 1, 128}, {200, 1, 128}, {300, 2, 128}, {511, 3, 128}, {5000, 4, 128}} {
		s := newSample([3]int{9, c.length, 64})
		if s.n[0] != c.n || s.side[0] != c.side {
			t.Errorf("%d px: %d boxes of %d, want %d of %d", c.length, s.n[0], s.side[0], c.n, c.side)
		}
		end := 0
		for i := range s.n[0] {
			at := s.start(0, i)
			if at < end || at+s.side[0] > c.length {
				t.Errorf("%d px: box %d begins at %d", c.length, i, at)
			}
			end = at + s.side[0]
		}
	}
}
