//go:build !nocuda

package e2e

import (
	"slices"
	"testing"
)

// The same on a GPU, where chunks come down encoded.
func TestShardsDoNotDependOnWorkersOnGPU(t *testing.T) {
	if testing.Short() {
		t.Skip("on the double, which is slow")
	}
	dir := t.TempDir()
	specimen(t, dir, "--slices", "2", "--tiles", "4,4", "--tile", "32,48,48")
	for name, args := range sharded {
		if name == "zarr-tool" || name == "smooth" {
			continue // on the CPU only
		}
		t.Run(name, func(t *testing.T) {
			for _, codec := range []string{"zstd:1", "raw"} {
				var first map[string]string
				for i, c := range [][]string{{"1", "256MiB"}, {"6", "64MiB"}} {
					line := slices.Concat(args, []string{"--codec", codec, "-f", "-q", "-j", c[0], "--mem", c[1], "--require_gpu", "--n_levels", "2"})
					output(t, onGPU(t, dir, name, line))
					sameOutputs(t, dir, &first, i, c)
				}
			}
		})
	}
}
