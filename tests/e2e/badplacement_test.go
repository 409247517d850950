package e2e

import (
	"strings"
	"testing"
)

// Matrices that stitch cannot use, overlaps in which there is nothing to see, and
// corrections of other mosaics.
func TestBadPlacements(t *testing.T) {
	const line = "stitch in.ome.zarr out.ome.zarr --overlap 0.25"
	for _, c := range []struct {
		name   string
		image  volume
		file   string // content of "matrix"
		line   string
		result outcome
	}{
		{"bare rows", volume{}, "[[1, 0.01], [-0.01, 1]]", line + " --transform matrix", fine},
		{"with byte order mark and CRLF", volume{}, "\ufeff{\r\n\"matrix\": [[1, 0], [0, 1]]\r\n}\r\n", line + " --transform matrix", fine},
		{"singular", volume{}, "[[1, 1], [1, 1]]", line + " --transform matrix", outcome{3, `matrix: .*singular`}},
		{"zero", volume{}, "[[0, 0], [0, 0]]", line + " --transform matrix", outcome{3, `matrix: .*singular`}},
		{"3 × 3", volume{}, "[[1, 0, 0], [0, 1, 0], [0, 0, 1]]", line + " --transform matrix", outcome{3, `matrix: .*two rows of two`}},
		{"text", volume{}, `[["a", 0], [0, 1]]`, line + " --transform matrix", outcome{3, `matrix: line 1`}},
		{"cut off", volume{}, "{\"matrix\": [[1, 0],\n[0", line + " --transform matrix", outcome{3, `matrix: line 2`}},
		{"no matrix", volume{}, `{"rotation": 3}`, line + " --transform matrix", outcome{3, `matrix: no "matrix"`}},
		{"empty", volume{}, " \n", line + " --transform matrix", outcome{3, `matrix: .*empty`}},
		{"bytes", volume{}, "\x93NUMPY\x01\x00", line + " --transform matrix", outcome{3, `matrix: `}},
		{"a folder for a matrix", volume{}, "", line + " --transform in.ome.zarr/0", outcome{3, `in\.ome\.zarr/0: .*is a folder`}},
		{"a missing matrix with --estimate", volume{}, "", line + " --estimate --transform matrix", outcome{3, `matrix: no such file`}},
		{"NaN", volume{}, "[[NaN, 0], [0, 1]]", line + " --transform matrix", outcome{3, `matrix: `}},
		// linumpy's matrices act on the numbers of tiles: 12 px a tile here
		{"a matrix in pixels a tile", volume{shape: []int{12, 160, 160}}, "[[12, 0], [0, 12]]", line + " --transform matrix", outcome{3, `canvas of \d+ × \d+ voxels`}},
		{"a canvas of terabytes", volume{shape: []int{12, 160, 160}}, "[[100000, 0], [0, 100000]]", line + " --transform matrix", outcome{3, `canvas of 10800016 × 10800016 voxels`}},
		{"estimate of one tile", volume{shape: []int{12, 16, 16}}, "", line + " --estimate", outcome{0, `warning: .*no two neighbouring tiles have tissue in common`}},
		{"estimate of zeros", volume{value: constant(0)}, "", line + " --estimate", outcome{0, `warning: .*no two neighbouring tiles have tissue in common`}},
		{"estimate of a constant", volume{value: constant(5)}, "", line + " --estimate", outcome{0, `warning: .*no two neighbouring tiles have tissue in common`}},
		{"estimate without overlap", volume{}, "", line + " --estimate --overlap 0", outcome{0, `warning: .*no two neighbouring tiles have tissue in common`}},
		{"refinement of zeros", volume{value: constant(0)}, "", line + " --max_refinement_px 3", fine},
		{"refinement of one tile", volume{shape: []int{12, 16, 16}}, "", line + " --max_refinement_px 3", fine},
		{"correction that is the mosaic itself", volume{}, "", "focal in.ome.zarr out.ome.zarr --correction in.ome.zarr", outcome{3, `in\.ome\.zarr.*correction|correction.*in\.ome\.zarr`}},
		{"crop below the end", volume{}, "", "crop in.ome.zarr out.ome.zarr --depth 100000", outcome{0, `warning: .*ends .* planes before`}},
		{"pad to terabytes", volume{}, "", "crop in.ome.zarr out.ome.zarr --depth 1e12 --pad_after", outcome{2, `--depth .* TiB`}},
		{"resample to parts of a nanometre", volume{}, "", "resample in.ome.zarr out.ome.zarr --resolution 0.0001", outcome{2, `--resolution.*must be from 0\.001`}},
		{"resample to nanometres", volume{}, "", "resample in.ome.zarr out.ome.zarr --resolution 0.001", outcome{2, `--resolution .* TiB|--resolution .* voxels`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			c.image.write(t, dir+"/in.ome.zarr")
			if c.file != "" {
				text(t, dir, "matrix", c.file)
			}
			c.result.check(t, dir, strings.Fields(c.line))
		})
	}
}
