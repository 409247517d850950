package golden

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// The set is whole: a case that is lost would not fail the tests that walk
// through the cases, nor would an array that lost its index entry.
func TestSetIsWhole(t *testing.T) {
	for stage, want := range map[string][]string{
		"aip":      {"m_f32_raw_edge", "m_f32_v2lz4", "m_i16_v3lz4", "m_u16_v3shard", "m_u8_v3raw"},
		"resample": {"f32_10um", "f32_edge_10um", "f32_edge_3um", "i16_30um_tiny", "u16_7.3um", "u8_9um"},
		"focal":    {"f32", "f32_edge", "f32_log_s4", "u16"},
		"crop":     {"f32_below", "f32_pad", "f32_short", "u16_log"},
		"stitch":   {"average", "average_between", "diffusion", "diffusion_matrix", "estimate", "feather_matrix", "none_matrix", "refine"},
		"stack": {"accumulate", "blend_refine", "consistency_euler2d", "corr_blend", "corr_skip2_blend", "expected_plain",
			"fallback_noshift", "transforms_gates"},
		"register":       {"far_noisy", "identity", "interpolated", "rotate", "shift", "small", "translation_only"},
		"rehoming":       {"clean", "spike_and_rehome", "tile_multiples"},
		"auto_exclude":   {"gap_and_missing", "none", "two_runs"},
		"assess_quality": {"roi_existing", "workflow"},
		"mosaic_grid":    {"galvo", "legacy_orient", "native", "resized_5um"},
		"smooth": {"gauss_channels", "gauss_f32_3d", "gauss_f64", "gauss_i16_nearest", "gauss_i64", "gauss_smaller_than_radius",
			"gauss_smaller_than_radius_nearest", "gauss_tczyx", "gauss_u16_3d", "gauss_u32_constant", "gauss_u8_2d", "gauss_u8_as_f32",
			"median25_u16_2d", "median3_f32_3d", "median3_u8_2d", "median5_constant", "median5_i16_2d", "median5_nearest", "median5_u16_3d",
			"median9_f64_3d", "median9_smaller_than_radius", "median9_u16_2d", "median9_u8_3d", "median_gauss_constant", "median_gauss_nearest",
			"median_gauss_reflect", "median_gauss_small", "median_slope_constant", "median_sobel_nearest", "slope_f32_3d", "slope_u16_nearest",
			"sobel_f32_constant", "sobel_u16_3d", "sobel_u8_2d", "sobel_u8_as_u8"},
	} {
		var got []string
		for _, c := range Cases(t, stage) {
			got = append(got, c.Name)
			voxels := len(c.VoxelSize) > 0 || stage == "mosaic_grid" || c.tables()
			if len(c.Arrays) == 0 && !c.tables() || c.Stage != stage || !voxels {
				t.Errorf("%s/%s: stage %q, %d arrays, %d voxel sizes", stage, c.Name, c.Stage, len(c.Arrays), len(c.VoxelSize))
			}
		}
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Errorf("%s: cases %v, want %v", stage, got, want)
		}
	}
	want := map[string]int{"gaussian1d": 2, "uniform2d": 1, "zoom3d": 1, "resize3d": 2, "euler2d": 1,
		"percentile": 1, "phase_correlation": 1, "hann": 1, "basic": 3}
	got := map[string]int{}
	for op := range want {
		got[op] = len(Primitives(t, op))
	}
	if !maps.Equal(got, want) {
		t.Errorf("primitives %v, want %v", got, want)
	}
	files, err := filepath.Glob(filepath.Join(folder(), "prim", "*.npz"))
	if err != nil || len(files) != 13 {
		t.Errorf("%d files of primitives, %v, want 13", len(files), err)
	}
	b, err := os.ReadFile(filepath.Join(folder(), "prim", "index.json"))
	var index []json.RawMessage
	if err != nil || json.Unmarshal(b, &index) != nil || len(index) != 13 {
		t.Errorf("prim/index.json has %d entries, %v, want 13", len(index), err)
	}
}
