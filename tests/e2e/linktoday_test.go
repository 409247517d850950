package e2e

import (
	"encoding/binary"
	"encoding/json"
	"math"
	"os"
	"slices"
	"testing"

	"strata/pkg/zarr"
	"strata/tests/golden"
)

// all reads an array.
func all(t *testing.T, a *zarr.Array) []float64 {
	t.Helper()
	return voxels(t, a, a.Bounds())
}

// Under linumpy's name normalize divides by the largest span, as linumpy does today: what it did before, which the
// golden data have, divided by its largest voxel. A pipeline that wants the numbers of before says so.
func TestReferenceCommandsNormalize(t *testing.T) {
	path := links(t)
	for _, c := range golden.Cases(t, "normalize") {
		if c.Name != "f32" {
			continue
		}
		var f struct {
			Planes []int `json:"plane_index"`
		}
		if err := json.Unmarshal(c.File, &f); err != nil {
			t.Fatal(err)
		}
		dir := t.TempDir()
		slice := staged(t, dir, "slice_z05_attn_corr.ome.zarr", golden.Image(t, c))
		line := `linum-normalize-intensities-per-slice ` + slice + ` "slice_z05_normalize.ome.zarr" \
        --percentile_max 99.9 --no-use_gpu --n_levels 0`
		want := numbers(t, c.Arrays["volume_planes"].Type, c.Arrays["volume_planes"].Data)
		largest := slices.Max(numbers(t, c.Arrays["max_per_plane"].Type, c.Arrays["max_per_plane"].Data))
		if !(largest > 1.01) {
			t.Fatalf("the golden slice has nothing above 1: %v", largest)
		}

		shell(t, dir, path, line+` --span_percentile 90`)
		near(t, "as before", planes(t, openImage(t, dir+"/slice_z05_normalize.ome.zarr").Levels[0].Array, f.Planes), want, tolerance{Rel: 2e-6, Abs: 2e-6})

		shell(t, dir, path, line)
		for i := range want {
			want[i] /= largest
		}
		level := openImage(t, dir+"/slice_z05_normalize.ome.zarr").Levels[0].Array
		near(t, "as today", planes(t, level, f.Planes), want, tolerance{Rel: 5e-6, Abs: 5e-6})
		if top := slices.Max(all(t, level)); top != 1 {
			t.Errorf("the largest voxel is %v, want 1", top)
		}
		return
	}
	t.Fatal("no case f32")
}

// Under linumpy's name crop writes 0 for NaN and infinite voxels; crop itself keeps them.
func TestReferenceCommandsCropNonFinite(t *testing.T) {
	const nz, ny, nx = 40, 24, 24
	dir, path := t.TempDir(), links(t)
	bad := map[int]float64{15*ny*nx + 7: math.NaN(), 16*ny*nx + 100: math.Inf(1), 39*ny*nx + 575: math.Inf(-1)}
	var raw []byte
	for i := range nz * ny * nx {
		v, is := bad[i]
		if !is {
			v = float64(10 + i%5 + 500*min(i/(12*ny*nx), 1))
		}
		raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(float32(v)))
	}
	if err := os.WriteFile(dir+"/raw.bin", raw, 0o600); err != nil {
		t.Fatal(err)
	}
	run(t, dir, "zarr-tool", "import", "raw.bin", "array.zarr", "--shape", "40,24,24", "--dtype", "float32", "--chunks", "40,12,12", "-q")
	run(t, dir, "zarr-tool", "ome", "array.zarr", "slice.ome.zarr", "--axes", "zyx", "--scale", "10,10,10", "-q")

	run(t, dir, "crop", "slice.ome.zarr", "kept.ome.zarr", "--n_levels", "0", "-q")
	shell(t, dir, path, `linum-crop-3d-mosaic-below-interface slice.ome.zarr zeroed.ome.zarr --depth 600 --n_levels 0`)
	kept, zeroed := all(t, openImage(t, dir+"/kept.ome.zarr").Levels[0].Array), all(t, openImage(t, dir+"/zeroed.ome.zarr").Levels[0].Array)
	if len(kept) != nz*ny*nx || len(zeroed) != len(kept) {
		t.Fatalf("%d and %d voxels", len(kept), len(zeroed))
	}
	for i, v := range kept {
		want := float64(math.Float32frombits(binary.LittleEndian.Uint32(raw[4*i:])))
		if v != want && !(math.IsNaN(v) && math.IsNaN(want)) {
			t.Fatalf("crop: voxel %d is %v, want %v", i, v, want)
		}
		if _, is := bad[i]; is {
			want = 0
		}
		if zeroed[i] != want {
			t.Fatalf("under linumpy's name: voxel %d is %v, want %v", i, zeroed[i], want)
		}
	}
}

// Under linumpy's name align draws the start of a registration, as linumpy's workflow asks for it.
func TestReferenceCommandsAlignStart(t *testing.T) {
	dir, path := t.TempDir(), links(t)
	run(t, dir, "phantom", "in", "--truth_slices", "--tiles", "2,2", "--tile", "40,32,32", "--voxel", "20,20,20", "-q")
	shell(t, dir, path, `linum-align-to-ras in/truth/slice_z00.ome.zarr sub-22_ras.ome.zarr --template in/truth/slice_z00.ome.zarr \
        --allen-resolution 25 --metric MI --max-iterations 1000 --level 0 --input-orientation SAR --initial-rotation 0.0 0.0 90.0 \
        --orientation-preview sub-22_ras_orientation_preview.png --orientation-preview-only`)
	run(t, dir, "align", "in/truth/slice_z00.ome.zarr", "--template", "in/truth/slice_z00.ome.zarr", "--level", "0", "--initial_rotation", "0,0,90",
		"--start_preview", "ours.png", "--start_only", "-q")
	run(t, dir, "align", "in/truth/slice_z00.ome.zarr", "--template", "in/truth/slice_z00.ome.zarr", "--level", "0",
		"--start_preview", "straight.png", "--start_only", "-q")
	var pictures []string
	for _, name := range []string{"sub-22_ras_orientation_preview.png", "ours.png", "straight.png"} {
		b, err := os.ReadFile(dir + "/" + name)
		if err != nil {
			t.Fatal(err)
		}
		pictures = append(pictures, string(b))
	}
	if pictures[0] != pictures[1] || pictures[0] == pictures[2] {
		t.Error("the picture of linumpy's name is not that of --start_preview, or shows no rotation")
	}
	if _, err := os.Stat(dir + "/sub-22_ras.ome.zarr"); err == nil {
		t.Error("a volume was written")
	}
}
