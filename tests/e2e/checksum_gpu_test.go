//go:build !nocuda

package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// On a GPU, images with checksums are read and written as on the CPU, and a flipped bit is noticed.
func TestChecksumOnGPU(t *testing.T) {
	if testing.Short() {
		t.Skip("on the double, which is slow")
	}
	dir := t.TempDir()
	specimen(t, dir, "--tiles", "2,2", "--tile", "24,32,32")
	for _, codec := range checkable {
		t.Run(codec, func(t *testing.T) {
			in := "in/" + strings.ReplaceAll(codec, ":", "-") + ".ome.zarr"
			run(t, dir, "zarr-tool", "reencode", mosaic, in, "--codec", codec, "--checksum", "-q")
			line := []string{in, "out.ome.zarr", "--depth", "40", "--codec", codec, "--checksum", "-f", "-q", "--n_levels", "1"}
			output(t, onGPU(t, dir, "crop", append(line, "--require_gpu")))
			line[1] = "host.ome.zarr"
			run(t, dir, "crop", append(line, "--no-use_gpu")...)
			run(t, dir, "zarr-tool", "validate", "out.ome.zarr", "host.ome.zarr", "-q")

			file := filepath.Join(dir, in, "0/c/0/1/1")
			b, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			b[len(b)/3] ^= 4
			if err := os.WriteFile(file, b, 0o666); err != nil {
				t.Fatal(err)
			}
			line[1] = "out.ome.zarr"
			c := onGPU(t, dir, "crop", append(line, "--require_gpu"))
			text, _ := c.CombinedOutput()
			if c.ProcessState.ExitCode() != 3 || !strings.Contains(string(text), "0/c/0/1/1") {
				t.Errorf("%v: %s", c.ProcessState, text)
			}
		})
	}
}
