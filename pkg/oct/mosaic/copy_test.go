package mosaic

import (
	"math"
	"testing"

	"strata/pkg/meter"
	"strata/pkg/ngff"
	"strata/pkg/oct"
	"strata/pkg/zarr/store"
	"strata/tests/octtest"
)

// Voxels that are not finite are counted, whatever the floats are.
func TestCopyCountsNonFiniteVoxels(t *testing.T) {
	shape := []int{4, 16, 16}
	one := octtest.MosaicOf(t, ngff.ImageSpec{Format: 3, Shape: shape, Chunks: []int{4, 8, 8}}, octtest.Made3(shape, spoiled[float32]))
	two := octtest.MosaicOf(t, ngff.ImageSpec{Format: 3, Shape: shape, Chunks: []int{4, 8, 8}}, octtest.Made3(shape, spoiled[float64]))
	for _, in := range []*ngff.Image{one, two} {
		m := &meter.Meter{}
		if _, err := Copy(octtest.Ctx, in, store.Memory(), 0, oct.Layout{}, oct.Resources{Workers: 2, Mem: 64 << 20, Meter: m}); err != nil {
			t.Fatal(err)
		}
		if m.NonFinite() != 3 {
			t.Errorf("%v: %d voxels counted, want 3", in.Levels[0].Array.DType(), m.NonFinite())
		}
	}
}

func spoiled[T float32 | float64](i int) T {
	switch i {
	case 7, 300:
		return T(math.NaN())
	case 1000:
		return T(math.Inf(-1))
	}
	return T(i)
}
