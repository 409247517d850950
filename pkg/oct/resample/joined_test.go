//go:build !nocuda

package resample

import (
	"testing"

	"strata/pkg/ngff"
	"strata/pkg/oct"
	"strata/pkg/oct/octtest"
	"strata/pkg/zarr/codec"
	"strata/pkg/zarr/store"
)

// A device joins the host in the middle of the work, or not: the image is the same.
func TestDeviceJoins(t *testing.T) {
	in, _ := octtest.Made(t, []int{11, 150, 210}, []int{11, 20, 32}, nil, codec.Chain{codec.Zstd(1, false)}, octtest.Uneven[uint16])
	d, little := octtest.Device(t, 64<<20), octtest.Device(t, 4<<10)
	octtest.Joined(t, d, little, func(res oct.Resources) (*ngff.Image, any, error) {
		im, err := Run(octtest.Ctx, in, store.Memory(), Options{Resolution: [3]float64{15, 15, 15}, Prefetch: 4}, oct.Layout{Codec: "zstd:1", Levels: 2}, res)
		return im, nil, err
	})
}
