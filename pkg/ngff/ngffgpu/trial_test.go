//go:build !nocuda

package ngffgpu

import (
	"testing"

	"strata/pkg/gpu/trial"
	"strata/pkg/zarr/store"
	"strata/tests/gputest"
)

// TestTrial: tiles leave in turn encoded by the device and for the host to encode, and then by the faster way; the
// voxels of all levels are the host's. What the host encodes because it was asked to is not tried.
func TestTrial(t *testing.T) {
	d := gputest.Device(t, much)
	images(t, "blosc-zstd", func(t *testing.T, im *image, leaves bool) {
		want := im.onHost(t)
		for _, byHost := range []bool{true, false} {
			b := trial.New(1)
			got, err := im.onDevice(d, store.Memory(), Options{Trials: b, ByHost: byHost})
			if err != nil {
				t.Fatal(err)
			}
			same(t, got, want)
			tiles, o := 0, b.Outcomes()
			_ = im.tiles(func([]int, []int, []byte) error { tiles++; return nil })
			if tried := leaves && !byHost && tiles > 1; tried != (len(o) == 1) || tried && (o[0].What != "write" || o[0].Array != got.Array(0).Location()) {
				t.Errorf("%d tiles, by the host: %v, outcomes %v", tiles, byHost, o)
			}
		}
	})
}
