//go:build !nocuda

package surface

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"strata/pkg/gpu"
	"strata/pkg/oct"
	"strata/pkg/zarr/codec"
	"strata/tests/octtest"
)

// Seams that find no memory on the device are read again, across the borders of chunks; more window than
// memory is an error.
func TestDeviceSeamsWithoutMemory(t *testing.T) {
	res := oct.Resources{Workers: 3, Mem: 32 << 20}
	codecs := codec.Chain{codec.Zstd(1, false)}
	for _, sigma := range []float64{2, 3, 7} {
		res.Device = nil
		want, _, err := search(t, codecs, sigma, 6, res, -1)
		if err != nil {
			t.Fatal(err)
		}
		res.Device = octtest.Device(t, 16<<20)
		for _, res.Backend = range []string{"host", ""} {
			got, late, err := search(t, codecs, sigma, 6, res, 0)
			if err != nil || late == 0 || !slices.Equal(got, want) {
				t.Errorf("sigma %v, backend %q: %d seams had no room, other depths or %v", sigma, res.Backend, late, err)
			}
		}
	}
	if _, _, err := search(t, codecs, 23, 0, res, 0); !errors.Is(err, gpu.ErrMemory) || !strings.Contains(err.Error(), "a mean filter of 23 pixels") {
		t.Errorf("more window than memory: %v", err)
	}
}
