//go:build !nocuda

package crop

import (
	"testing"

	"strata/pkg/ngff"
	"strata/pkg/oct"
	"strata/pkg/zarr/store"
	"strata/tests/octtest"
)

// A device joins the host in the middle of the count or of the search, or not: the image and the metrics are the same.
func TestDeviceJoins(t *testing.T) {
	c := Options{Depth: 10, BeforeInterface: true, PercentileMax: 99.9, MaxFraction: 0.5, SigmaXY: 3, SigmaZ: 1}
	run := func(in *ngff.Image, res oct.Resources) (*ngff.Image, any, error) {
		im, found, err := Run(octtest.Ctx, in, store.Memory(), c, oct.Layout{Codec: "zstd:1", Levels: 2}, res)
		return im, found, err
	}
	t.Run("uint16", func(t *testing.T) { octtest.Joined(t, run) })
	t.Run("float32", func(t *testing.T) { octtest.JoinedOf[float32](t, run) })
	c.PercentileMax = 100 // the search counts voxels that are no numbers
	t.Run("search only", func(t *testing.T) { octtest.JoinedOf[float32](t, run) })
}
