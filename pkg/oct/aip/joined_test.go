//go:build !nocuda

package aip

import (
	"bytes"
	"testing"

	"strata/pkg/ngff"
	"strata/pkg/oct"
	"strata/pkg/zarr/store"
	"strata/tests/octtest"
)

// A device joins the host in the middle of the work, or not: the projection is the same.
func TestDeviceJoins(t *testing.T) {
	octtest.Joined(t, func(in *ngff.Image, res oct.Resources) (*ngff.Image, any, error) {
		var png bytes.Buffer
		im, err := Run(octtest.Ctx, in, store.Memory(), oct.Layout{Codec: "zstd:1", Levels: 2}, &Picture{To: &png}, res)
		return im, png.Bytes(), err
	})
}
