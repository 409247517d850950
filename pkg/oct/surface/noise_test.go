package surface

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"strata/pkg/filter"
	"strata/pkg/ngff"
	"strata/pkg/oct"
	"strata/pkg/phantom"
	"strata/pkg/zarr/store"
	"strata/tests/octtest"
)

// noise reports whether the depths of an image are taken for noise's.
func noise(t *testing.T, in *ngff.Image) bool {
	t.Helper()
	m, err := oct.OpenMosaic(in)
	if err != nil {
		t.Fatal(err)
	}
	d := NewDepths(m.Shape[0], 3)
	search := filter.InterfaceSearch{SigmaXY: 3, SigmaZ: 2}
	if err := FindInterfaces(octtest.Ctx, m, search, octtest.Small(), 0, true, func(_ context.Context, r oct.Rectangle, depth []int32, gradient []float32) error {
		d.Add(r, depth, gradient)
		return nil
	}, nil); err != nil {
		t.Fatal(err)
	}
	spread, alike, ok := d.measure()
	t.Logf("spread %.2f, correlation %.2f, %v", spread, alike, ok)
	return d.Noise()
}

// made returns a mosaic of 2 × 2 tiles of 40 × 64 × 64 voxels.
func made[T float32 | uint16](t *testing.T, value func(z, y, x int) T) *ngff.Image {
	const planes, side = 40, 128
	in, _ := octtest.Made(t, []int{planes, side, side}, []int{planes, 64, 64}, nil, nil, func(i int) T { return value(i/side/side, i/side%side, i%side) })
	return in
}

// Noise of every kind is told from surfaces, however faint, small, flat or rough these are.
func TestNoise(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 3))
	speckle := func() float64 { return rng.ExpFloat64() }
	tissue := func(z int, surface float64) float64 {
		if d := float64(z) - surface; d >= 0 {
			return 0.2 + math.Exp(-d/15)
		}
		return 0.2
	}
	for _, c := range []struct {
		name string
		in   *ngff.Image
		want bool
	}{
		{"Gaussian", made(t, func(_, _, _ int) float32 { return float32(100 + 10*rng.NormFloat64()) }), true},
		{"speckle, integers", made(t, func(_, _, _ int) uint16 { return uint16(50 * speckle()) }), true},
		{"decibels", made(t, func(_, _, _ int) float32 { return float32(10 * math.Log10(speckle()+1e-9)) }), true},
		{"a bright detector's floor that falls with depth", made(t, func(z, _, _ int) float32 { return float32(100 - 0.05*float64(z) + 10*rng.NormFloat64()) }), true},
		{"tissue, tilted", made(t, func(z, y, x int) float32 { return float32(tissue(z, 5+float64(y)/8+float64(x)/16) * speckle()) }), false},
		{"tissue, flat", made(t, func(z, _, _ int) float32 { return float32(tissue(z, 12) * speckle()) }), false},
		{"a small piece of tissue in water", made(t, func(z, y, x int) float32 {
			if y < 50 && x < 50 {
				return float32(tissue(z, 12+float64(y)/16) * speckle())
			}
			return float32(0.02 * speckle())
		}), false},
		{"empty", made(t, func(_, _, _ int) uint16 { return 0 }), false},
	} {
		if got := noise(t, c.in); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
	s, err := phantom.New(phantom.Default())
	if err != nil {
		t.Fatal(err)
	}
	out := store.Memory()
	if err := s.WriteMosaic(octtest.Ctx, out, 0, phantom.Storage{Format: 3, Unit: "micrometer", Workers: 2, Mem: 64 << 20}); err != nil {
		t.Fatal(err)
	}
	in, err := ngff.Open(octtest.Ctx, out, "")
	if err != nil {
		t.Fatal(err)
	}
	if noise(t, in) {
		t.Error("the phantom is taken for noise")
	}
}
