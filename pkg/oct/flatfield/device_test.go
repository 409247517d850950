//go:build !nocuda

package flatfield

import (
	"testing"

	"strata/pkg/dtype"
	"strata/pkg/ngff"
	"strata/pkg/oct"
	"strata/pkg/zarr/store"
	"strata/tests/octtest"
	"strata/tests/race"
)

// The voxels and the findings of the CPU, with one field or one a plane, with and without a dark-field, for tiles that
// are chunks and others. The device gets each voxel once, and the fields; the output and 24 bytes a division come back.
func TestOnDevice(t *testing.T) { onDevice[uint16](t) }

func TestTypesOnDevice(t *testing.T) {
	race.Leave(t)
	t.Run("uint8", onDevice[uint8])
	t.Run("int32", onDevice[int32])
	t.Run("float32", onDevice[float32])
	t.Run("float64", onDevice[float64])
}

func onDevice[T dtype.Element](t *testing.T) {
	d := octtest.Device(t, 64<<20)
	in, _ := octtest.Made(t, []int{5, 70, 70}, []int{5, 20, 32}, nil, nil, octtest.Uneven[T])
	for name, c := range map[string]struct {
		how       Options
		tile      int64 // pixels of a field
		divisions int64
	}{
		"linum-basic": {Options{Solver: LinumBasic, MaxIterations: 2, MaxSamples: 12}, 20 * 32, 12},
		"basicpy":     {Options{Solver: BasicPy, MaxIterations: 5, MaxSamples: 12, DarkField: true, DarkPercentile: 5}, 2 * 20 * 32, 12},
		"planes":      {Options{Solver: LinumBasic, MaxIterations: 2, MaxSamples: 36, PerZ: true}, 5 * 20 * 32, 5 * 12},
		"tiles":       {Options{Solver: LinumBasic, MaxIterations: 2, MaxSamples: 12, TileUM: 24}, 12 * 12, 12},
	} {
		run := func(layout oct.Layout) func(res oct.Resources) (*ngff.Image, any, error) {
			return func(res oct.Resources) (*ngff.Image, any, error) {
				r, err := Run(octtest.Ctx, in, store.Memory(), c.how, layout, res)
				if err != nil {
					return nil, nil, err
				}
				im := r.Image
				r.Image = nil
				return im, r, nil
			}
		}
		got := octtest.OnBoth(t, d, "host", run(oct.Layout{Levels: 2}))
		up, down := octtest.Stored(in.Levels[0].Array)+4*c.tile, octtest.Stored(got.Image.Levels[0].Array)+24*c.divisions
		if got.Up != up || got.Down != down {
			t.Errorf("%s: %d bytes went to the device and %d came back, want %d and %d", name, got.Up, got.Down, up, down)
		}
		octtest.OnBoth(t, d, "", run(oct.Layout{Levels: 1, Chunks: []int{5, 16, 70}}))
	}
}
