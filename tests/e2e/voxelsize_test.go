package e2e

import (
	"strings"
	"testing"
)

// sizeLines are the programs that open an image, with small parameters.
var sizeLines = []string{
	"aip in.ome.zarr out.ome.zarr", "resample in.ome.zarr out.ome.zarr -r 25", "focal in.ome.zarr out.ome.zarr", "crop in.ome.zarr out.ome.zarr --depth 50",
	"smooth in.ome.zarr out.ome.zarr --sigma 10", "stitch in.ome.zarr out.ome.zarr", "flatfield in.ome.zarr out.ome.zarr", "normalize in.ome.zarr out.ome.zarr",
	"beam-profile in.ome.zarr out.ome.zarr", "attenuation in.ome.zarr out.ome.zarr", "bias-field in.ome.zarr out.ome.zarr",
	"register in.ome.zarr in.ome.zarr out", "interpolate in.ome.zarr in.ome.zarr out.ome.zarr", "align in.ome.zarr out.ome.zarr --template in.ome.zarr",
	"preview in.ome.zarr out.png", "zarr-tool ome in.ome.zarr out.ome.zarr", "zarr-tool export in.ome.zarr out.tif",
}

// Every program that opens an image refuses a voxel size that no microscope has, and names file and axis. What only
// describes shows it.
func TestVoxelSizesOfNoMicroscope(t *testing.T) {
	for scale, want := range map[string]string{"10, 10, 1e-300": `axis "x": voxel size 1e-300 µm`, "10, 1e9, 10": `axis "y": voxel size 1e+09 µm`, "0.0009, 10, 10": `axis "z": voxel size 0.0009 µm`} {
		t.Run(want, func(t *testing.T) {
			dir := t.TempDir()
			volume{scale: scale}.write(t, dir+"/in.ome.zarr")
			for _, line := range sizeLines {
				outcome{3, `in\.ome\.zarr: multiscales\[0\]\.datasets\[0\]\.coordinateTransformations: ` + strings.ReplaceAll(want, "+", `\+`) + `: must be from 0\.001 to 1000000 µm`}.check(t, dir, strings.Fields(line))
			}
			out, err := command(dir, "zarr-tool", "info", "in.ome.zarr").CombinedOutput()
			if err != nil || !strings.Contains(string(out), want) || !strings.Contains(string(out), "array [12 32 32] float32") {
				t.Errorf("info: %v: %s", err, out)
			}
			c := command(dir, "zarr-tool", "validate", "in.ome.zarr", "--ngff", "-q")
			out, _ = c.CombinedOutput()
			if c.ProcessState.ExitCode() != 3 || !strings.Contains(string(out), want) {
				t.Errorf("validate: %s", out)
			}
			// Level 0 can be taken into a new image with another size.
			run(t, dir, "zarr-tool", "ome", "in.ome.zarr/0", "mended.ome.zarr", "--scale", "10,10,10", "-q")
			run(t, dir, "zarr-tool", "validate", "mended.ome.zarr", "--ngff", "-q")
		})
	}
}

// Where a user types a voxel size, the flag is named.
func TestVoxelSizesTyped(t *testing.T) {
	dir := t.TempDir()
	volume{}.write(t, dir+"/in.ome.zarr")
	for line, flag := range map[string]string{
		"resample in.ome.zarr out.ome.zarr --resolution 1e-9":            "--resolution",
		"mosaic in.ome.zarr out.ome.zarr --resolution 1e9":               "--resolution",
		"bias-field in.ome.zarr out.ome.zarr --pyramid_resolutions 1e-9": "--pyramid_resolutions",
		"align in.ome.zarr out.ome.zarr --pyramid_resolutions 10,1e9":    "--pyramid_resolutions",
		"stack in.ome.zarr x.csv out.ome.zarr --pyramid_resolutions 0":   "--pyramid_resolutions",
		"phantom out --voxel 10,10,1e-9":                                 "--voxel",
		"bench-tiff make out.tif --pixel_size 1e-9":                      "--pixel_size",
	} {
		outcome{2, "flag " + flag + `: "[0-9e-]+" must be from 0\.001 to 1000000 µm`}.check(t, dir, strings.Fields(line))
	}
}
