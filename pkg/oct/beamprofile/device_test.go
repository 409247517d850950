//go:build !nocuda

package beamprofile

import (
	"errors"
	"testing"

	"strata/pkg/dtype"
	"strata/pkg/gpu"
	"strata/pkg/ngff"
	"strata/pkg/oct"
	"strata/pkg/zarr/codec"
	"strata/pkg/zarr/store"
	"strata/tests/octtest"
)

// Every type: the voxels of the CPU. The device gets each voxel once, and 8 bytes a plane; the output comes back.
func TestOnDevice(t *testing.T) {
	t.Run("uint8", onDevice[uint8])
	t.Run("int16", onDevice[int16])
	t.Run("uint16", onDevice[uint16])
	t.Run("int32", onDevice[int32])
	t.Run("uint64", onDevice[uint64])
	t.Run("float32", onDevice[float32])
	t.Run("float64", onDevice[float64])
}

func onDevice[T dtype.Element](t *testing.T) {
	d := octtest.Device(t, 64<<20)
	for _, chunks := range [][]int{{4, 20, 32}, {23, 20, 32}} {
		for _, codecs := range []codec.Chain{nil, {codec.Zstd(1, false)}} {
			in, _ := octtest.Made(t, []int{23, 45, 70}, chunks, nil, codecs, octtest.Uneven[T])
			c := octtest.OnBoth(t, d, "host", func(res oct.Resources) (*ngff.Image, any, error) {
				im, r, err := Run(octtest.Ctx, in, store.Memory(), Options{PercentileMax: 99.9}, oct.Layout{Levels: 2}, res)
				return im, r, err
			})
			down := octtest.Stored(c.Image.Levels[0].Array)
			if up := octtest.Stored(in.Levels[0].Array) + 8*23; c.Up != up || c.Down != down {
				t.Errorf("%v, %v: %d bytes went to the device and %d came back, want %d and %d", chunks, codecs, c.Up, c.Down, up, down)
			}
			octtest.OnBoth(t, d, "", func(res oct.Resources) (*ngff.Image, any, error) { // chunks as they are stored, and others for the output
				im, r, err := Run(octtest.Ctx, in, store.Memory(), Options{PercentileMax: 100}, oct.Layout{Levels: 1, Chunks: []int{6, 16, 70}}, res)
				return im, r, err
			})
		}
	}
}

// A device that cannot hold a block is an error.
func TestTooLittleDeviceMemory(t *testing.T) {
	in, _ := octtest.Made(t, []int{23, 45, 70}, []int{23, 20, 32}, nil, nil, octtest.Uneven[uint16])
	res := octtest.Small()
	res.Device = octtest.Device(t, 20<<10)
	_, _, err := Run(octtest.Ctx, in, store.Memory(), Options{PercentileMax: 100}, oct.Layout{}, res)
	if !errors.Is(err, gpu.ErrMemory) {
		t.Errorf("in 20 KiB: %v", err)
	}
}
