package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// memoryLines are command lines of programs that pass over their input several times, or prepare for a single pass by
// another.
var memoryLines = map[string]string{
	"aip":                 "aip in/mosaic_grid_3d_z00.ome.zarr o/out.ome.zarr",
	"resample":            "resample in/mosaic_grid_3d_z00.ome.zarr o/out.ome.zarr -r 6",
	"focal":               "focal in/mosaic_grid_3d_z00.ome.zarr o/out.ome.zarr",
	"crop":                "crop in/mosaic_grid_3d_z00.ome.zarr o/out.ome.zarr --depth 100",
	"smooth":              "smooth in/mosaic_grid_3d_z00.ome.zarr o/out.ome.zarr --median 3",
	"stitch":              "stitch in/mosaic_grid_3d_z00.ome.zarr o/out.ome.zarr --estimate --max_refinement_px 3",
	"flatfield":           "flatfield in/mosaic_grid_3d_z00.ome.zarr o/out.ome.zarr",
	"normalize":           "normalize in/mosaic_grid_3d_z00.ome.zarr o/out.ome.zarr",
	"beam-profile":        "beam-profile in/mosaic_grid_3d_z00.ome.zarr o/out.ome.zarr",
	"attenuation":         "attenuation in/mosaic_grid_3d_z00.ome.zarr o/out.ome.zarr",
	"bias-field":          "bias-field in/mosaic_grid_3d_z00.ome.zarr o/out.ome.zarr",
	"register":            "register in/slices/slice_z00.ome.zarr in/slices/slice_z01.ome.zarr o/pair",
	"common-space":        "common-space in/slices in/shifts_xy.csv o/common",
	"interpolate":         "interpolate in/slices/slice_z00.ome.zarr in/slices/slice_z02.ome.zarr o/out.ome.zarr",
	"align":               "align in/slices/slice_z00.ome.zarr o/out.ome.zarr --template in/slices/slice_z01.ome.zarr --max_iterations 2",
	"assess":              "slices assess in/slices o/config.csv",
	"mosaic":              "mosaic raw o/out.ome.zarr --slice 0",
	"mosaic of all tiles": "mosaic raw o/all --all --resolution 4",
}

// A program that has too little memory for one of its passes says so before the first: it has read no voxel.
func TestRefusalsComeFirst(t *testing.T) {
	if testing.Short() {
		t.Skip("runs every stage a dozen times")
	}
	dir := t.TempDir()
	specimen(t, dir, "--slices", "3", "--tiles", "2,2", "--tile", "48,128,128", "--chunks", "48,128,128", "--codec", "zstd:1")
	run(t, dir, "phantom", "raw", "--raw", "--slices", "1", "--tiles", "2,2", "--tile", "64,96,96", "-q")
	for name, line := range memoryLines {
		t.Run(name, func(t *testing.T) {
			words, refused := strings.Fields(line), 0
			for _, mib := range []int{1, 2, 3, 4, 6, 8, 11, 14, 17, 20, 24, 28, 32, 40, 48, 64, 80, 112, 160, 256} {
				if err := os.RemoveAll(dir + "/r.json"); err != nil {
					t.Fatal(err)
				}
				c := command(dir, words[0], append(words[1:], "-q", "-j", "2", "--mem", fmt.Sprintf("%dMiB", mib), "--report", "r.json", "-f")...)
				out, err := c.CombinedOutput()
				text := strings.TrimSpace(string(out))
				if err == nil {
					break // and with more
				}
				r := readRecord(t, dir+"/r.json")
				if r.ExitCode != 1 || !strings.Contains(text, "MiB of buffers") && !strings.Contains(text, "memory budget") {
					t.Fatalf("%d MiB: exit code %d: %s", mib, r.ExitCode, text)
				}
				refused++
				if r.BytesRead > 64<<10 { // of metadata
					t.Errorf("%d MiB: refused when %d bytes were read: %s", mib, r.BytesRead, text)
				}
				if left, _ := filepath.Glob(dir + "/o/*"); len(left) > 0 {
					t.Fatalf("%d MiB: left behind: %q", mib, left)
				}
			}
			if refused == 0 {
				t.Error("1 MiB was enough")
			}
			if err := os.RemoveAll(dir + "/o"); err != nil {
				t.Fatal(err)
			}
			if err := os.Mkdir(dir+"/o", 0o777); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// A run that fails leaves no folder that it made: neither that of its results nor those above.
func TestFailuresLeaveNoFolders(t *testing.T) {
	dir := t.TempDir()
	specimen(t, dir, "--slices", "2", "--tiles", "1,1", "--tile", "16,32,32", "--chunks", "16,32,32")
	if err := os.WriteFile(dir+"/broken.csv", []byte("fixed_id,moving_id\nx,y\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	run(t, dir, "zarr-tool", "reencode", "in/mosaic_grid_3d_z00.ome.zarr", "bad.ome.zarr", "--zarr_format", "3", "--codec", "raw", "-q")
	chunks, err := filepath.Glob(dir + "/bad.ome.zarr/0/c/*/*/*")
	if err != nil || len(chunks) == 0 {
		t.Fatal(chunks, err)
	}
	if err := os.Truncate(chunks[0], 7); err != nil { // a chunk that is too short
		t.Fatal(err)
	}
	for _, line := range []string{
		"mosaic in new/deep --all",
		"focal bad.ome.zarr new/out.ome.zarr --save_map new/deep/maps",
		"flatfield bad.ome.zarr new/out.ome.zarr --diagnostics_dir new/deep/er",
		"crop bad.ome.zarr new/deep/out.ome.zarr --depth 20",
		"normalize bad.ome.zarr new/deep/out.ome.zarr",
		"aip bad.ome.zarr new/out.ome.zarr --png new/deep/a.png",
		"stitch bad.ome.zarr new/out.ome.zarr --save_positions new/deep/p.json",
		"common-space in/slices broken.csv new/deep",
		"stack in/slices broken.csv new/deep/out.ome.zarr",
		"register bad.ome.zarr bad.ome.zarr new/deep",
		"register --all in/slices new/deep --mem 1MiB",
		"manual export in/slices new/deep --level 40",
		"phantom new/deep --tile 32,64,64 --crop 64,0",
		"slices assess bad.ome.zarr new/deep/c.csv",
		"shifts analyze broken.csv new/deep",
		"zarr-tool reencode bad.ome.zarr new/deep/out.ome.zarr",
		"zarr-tool export bad.ome.zarr new/deep/out.tif",
		"zarr-tool ome bad.ome.zarr new/deep/out.ome.zarr",
		"preview bad.ome.zarr new/deep/p.png",
		"qc-report in/slices/none new/deep/page.html --multiqc new/deep/mq",
	} {
		words := strings.Fields(line)
		out, err := command(dir, words[0], append(words[1:], "-q")...).CombinedOutput()
		if err == nil {
			t.Errorf("%s: does not fail: %s", line, out)
		}
		if _, err := os.Stat(dir + "/new"); err == nil {
			t.Errorf("%s: leaves %q\n%s", line, tree(t, dir+"/new"), out)
			if err := os.RemoveAll(dir + "/new"); err != nil {
				t.Fatal(err)
			}
		}
	}
}
