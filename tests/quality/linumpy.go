package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"strata/pkg/work"
)

// linumpySlice are the programs of linumpy that make a slice from raw tiles, each with the arguments of its workflow, but for the
// resolution, the depth and the number of samples, which suit the phantom, and for focal curvature, which the workflow leaves out and
// the phantom has. {raw}, {dir} and {k} are the raw tiles, the folder of results and the number of the slice. The workflow's own
// solver of illumination, linum-basic, is not among linumpy's programs: this is its other one.
var linumpySlice = []string{
	"create_mosaic_grid_3d --from_root_directory {raw} -z {k} -r -1 --no-use_gpu --n_processes 1 {dir}/mosaic_{k}.ome.zarr",
	"resample_mosaic_grid {dir}/mosaic_{k}.ome.zarr {dir}/resampled_{k}.ome.zarr -r 5 --no-use_gpu --n_levels 0",
	"detect_focal_curvature {dir}/resampled_{k}.ome.zarr {dir}/focal_{k}.ome.zarr --no-use_gpu --n_levels 0",
	"fix_illumination_3d --no-use_gpu --n_processes 1 --percentile_max 99.9 --fit_max_samples 320 --max_iterations 500 --smoothness_flatfield 0.05 --n_levels 0 {dir}/focal_{k}.ome.zarr {dir}/even_{k}.ome.zarr",
	"stitch_3d_refined {dir}/even_{k}.ome.zarr {dir}/stitched_{k}.ome.zarr --overlap_fraction 0.2 --blending_method diffusion --refinement_mode blend_shift --max_refinement_px 10 --n_levels 0",
	"compensate_psf_model_free {dir}/stitched_{k}.ome.zarr {dir}/beam_{k}.ome.zarr --percentile_max 99.9 --n_levels 0",
	"crop_3d_mosaic_below_interface {dir}/beam_{k}.ome.zarr {dir}/cropped_{k}.ome.zarr --depth 260 --crop_before_interface --percentile_max 99.9 --n_levels 0",
	"compensate_attenuation_inplace {dir}/cropped_{k}.ome.zarr {dir}/bright_{k}.ome.zarr --n_levels 0",
	"normalize_intensities_per_slice {dir}/bright_{k}.ome.zarr {dir}/slices/slice_z{kk}_normalize.ome.zarr --percentile_max 99.9 --no-use_gpu --n_levels 0",
}

// linumpyStack are the flags of its workflow for stacking.
const linumpyStack = " --no_xy_shift --transforms_dir {dir}/transforms --moving_z_first_index 2 --use_expected_overlap --max_rotation_deg 5 --skip_error_transforms --skip_warning_transforms" +
	" --accumulate_translations --confidence_weight_translations --max_cumulative_drift_px 50 --smooth_window 5 --translation_smooth_sigma 3 --pyramid_resolutions 5 --no-use_gpu -f"

// linumpyRow is the name of what linumpy's programs make.
const linumpyRow = "linumpy"

// linumpy runs its programs one after another on the raw tiles of a phantom, as processes of their own, and measures the volume. They find
// shifts of slices with x and y swapped on the phantom, so those are ours, before its own program repairs them.
func (o *options) tryLinumpy(ctx context.Context, t *truth, phantom, raw, dir string) (result, error) {
	r := result{Phantom: phantom, Way: linumpyRow, TilesRMS: math.NaN()}
	if err := os.RemoveAll(dir); err != nil {
		return r, err
	}
	if err := os.MkdirAll(filepath.Join(dir, "slices"), 0o777); err != nil {
		return r, err
	}
	n := t.Config.Slices
	run := func(k int, line string) error {
		line = strings.ReplaceAll(line, "{before}", fmt.Sprintf("%02d", k-1))
		var argv []string
		for _, word := range strings.Fields(line) {
			argv = append(argv, strings.NewReplacer("{raw}", raw, "{dir}", dir, "{kk}", fmt.Sprintf("%02d", k), "{k}", fmt.Sprint(k)).Replace(word))
		}
		return o.linumpyProgram(ctx, filepath.Join(dir, fmt.Sprintf("%02d.log", k)), argv)
	}
	err := work.Each(ctx, 2, n, func(_, k int) error {
		for _, line := range linumpySlice {
			if err := run(k, line); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return r, err
	}
	if err := command(ctx, nil, filepath.Join(o.bin, "shifts"), "estimate", raw, filepath.Join(dir, "shifts_xy.csv"), "--swap_xy", "--quiet"); err != nil {
		return r, err
	}
	all := []string{"detect_rehoming {dir}/shifts_xy.csv {dir}/shifts_xy_clean.csv", "align_mosaics_3d_from_shifts {dir}/slices {dir}/shifts_xy_clean.csv {dir}/common -f"}
	for _, line := range all {
		if err := run(0, line); err != nil {
			return r, err
		}
	}
	for k := 1; k < n; k++ {
		err := run(k, "register_pairwise {dir}/common/slice_z{before}_normalize.ome.zarr {dir}/common/slice_z{kk}_normalize.ome.zarr {dir}/transforms/slice_z{kk}_normalize --moving_z_index 2 --max_translation_px 200")
		if err != nil {
			return r, err
		}
	}
	for _, line := range []string{"plain.ome.zarr", "blended.ome.zarr --blend --blend_z_refine_vox 5"} {
		if err := run(0, "stack_slices_motor {dir}/common {dir}/shifts_xy_clean.csv {dir}/"+line+linumpyStack); err != nil {
			return r, err
		}
	}
	return r, errors.Join(r.geometry(ctx, t, filepath.Join(dir, "plain.ome.zarr")), r.evenness(ctx, t, filepath.Join(dir, "blended.ome.zarr")))
}

// linumpyProgram runs a program of linumpy with the Python of the environment in its folder. What it says goes to a log.
func (o *options) linumpyProgram(ctx context.Context, log string, argv []string) error {
	found, err := filepath.Glob(filepath.Join(o.linumpy, "scripts", "*", "linum_"+argv[0]+".py"))
	if err != nil {
		return err
	}
	if len(found) == 0 {
		return fmt.Errorf("%s has no program linum_%s.py", o.linumpy, argv[0])
	}
	fmt.Println("linumpy", strings.Join(argv, " "))
	f, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o666)
	if err != nil {
		return err
	}
	defer f.Close()
	c := exec.CommandContext(ctx, filepath.Join(o.linumpy, ".venv", "bin", "python"), append(found[:1:1], argv[1:]...)...)
	c.Env = append(os.Environ(), "PYTHONPATH="+o.linumpy, "OMP_NUM_THREADS=1")
	c.Stdout, c.Stderr = f, f
	if err := c.Run(); err != nil {
		return fmt.Errorf("linum_%s.py: %w; see %s", argv[0], err, log)
	}
	return nil
}
