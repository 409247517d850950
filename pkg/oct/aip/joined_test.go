//go:build !nocuda

package aip

import (
	"bytes"
	"testing"

	"strata/pkg/ngff"
	"strata/pkg/oct"
	"strata/pkg/oct/octtest"
	"strata/pkg/zarr/codec"
	"strata/pkg/zarr/store"
)

// A device joins the host in the middle of the work, or not: the projection is the same.
func TestDeviceJoins(t *testing.T) {
	in, _ := octtest.Made(t, []int{11, 150, 210}, []int{11, 20, 32}, nil, codec.Chain{codec.Zstd(1, false)}, octtest.Uneven[uint16])
	d, little := octtest.Device(t, 64<<20), octtest.Device(t, 4<<10)
	octtest.Joined(t, d, little, func(res oct.Resources) (*ngff.Image, any, error) {
		var png bytes.Buffer
		im, err := Run(octtest.Ctx, in, store.Memory(), oct.Layout{Codec: "zstd:1", Levels: 2}, &Picture{To: &png}, res)
		return im, png.Bytes(), err
	})
}
