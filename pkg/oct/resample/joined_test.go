//go:build !nocuda

package resample

import (
	"testing"

	"strata/pkg/ngff"
	"strata/pkg/oct"
	"strata/pkg/zarr/store"
	"strata/tests/octtest"
)

// A device joins the host in the middle of the work, or not: the image is the same.
func TestDeviceJoins(t *testing.T) {
	octtest.Joined(t, func(in *ngff.Image, res oct.Resources) (*ngff.Image, any, error) {
		im, err := Run(octtest.Ctx, in, store.Memory(), Options{Resolution: [3]float64{15, 15, 15}, Prefetch: 4}, oct.Layout{Codec: "zstd:1", Levels: 2}, res)
		return im, nil, err
	})
}
