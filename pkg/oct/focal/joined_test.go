//go:build !nocuda

package focal

import (
	"testing"

	"strata/pkg/ngff"
	"strata/pkg/oct"
	"strata/pkg/zarr/store"
	"strata/tests/octtest"
)

// A device joins the host in the middle of the work, or not: the image is the same.
func TestDeviceJoins(t *testing.T) {
	corr := make([]float32, 20*32)
	for i := range corr {
		corr[i] = float32(i%100)*0.07 - 3
	}
	octtest.Joined(t, func(in *ngff.Image, res oct.Resources) (*ngff.Image, any, error) {
		im, err := Run(octtest.Ctx, in, store.Memory(), Options{SigmaXY: 3, SigmaZ: 2, Correction: octtest.Plane(t, corr, 20, 32)}, oct.Layout{Codec: "zstd:1", Levels: 2}, res)
		return im, nil, err
	})
}

// A device joins the host in the search as well: image and maps are the same.
func TestDeviceJoinsTheSearch(t *testing.T) {
	octtest.Joined(t, func(in *ngff.Image, res oct.Resources) (*ngff.Image, any, error) {
		maps := &savedMaps{}
		im, err := Run(octtest.Ctx, in, store.Memory(), Options{SigmaXY: 3, SigmaZ: 2, Maps: maps.targets()}, oct.Layout{Codec: "zstd:1", Levels: 2}, res)
		if err != nil {
			return nil, nil, err
		}
		return im, [][]float32{maps.read(t, 0), maps.read(t, 1), maps.read(t, 2)}, nil
	})
}
