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

// linumpySlice are the programs of linumpy that make a slice from raw tiles, each with the arguments of its workflow,
// but for the resolution, the depth and the number of samples, which suit the phantom, and for focal curvature, which
// the workflow leaves out and the phantom has. {raw}, {dir} and {k} are the raw tiles, the folder of results and the
// number of the slice. The workflow's own solver of illumination, linum-basic, is not among linumpy's programs: this is
// its other one.
var linumpySlice = []string{
	"create_mosaic_grid_3d --from_root_directory {raw} -z {k} -r -1 --no-preprocess --no-use_gpu --n_processes 1 {dir}/mosaic_{k}.ome.zarr",
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

// What is measured of linumpy: its own programs, and the same with the shifts that ours repair.
const (
	linumpyRow  = "linumpy"
	repairedRow = linumpyRow + ", our shifts"
)

// linumpys runs its programs one after another on the raw tiles of a phantom, as processes of their own, and measures
// the volumes. They find shifts of slices with x and y swapped on the phantom, so those are ours, before a program
// repairs them.
func (o *options) linumpys(ctx context.Context, t *truth, phantom, raw, dir string) (out []result, err error) {
	if err := os.RemoveAll(dir); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Join(dir, "slices"), 0o777); err != nil {
		return nil, err
	}
	run := &linumpyRun{options: o, raw: raw, dir: dir}
	err = work.Each(ctx, 2, t.Config.Slices, func(_, k int) error { return run.all(ctx, k, linumpySlice...) })
	if err != nil {
		return nil, err
	}
	shifts := filepath.Join(o.bin, "shifts")
	if err := command(ctx, nil, shifts, "estimate", raw, filepath.Join(dir, "shifts_xy.csv"), "--swap_xy", "--quiet"); err != nil {
		return nil, err
	}
	for _, way := range []string{linumpyRow, repairedRow} {
		clean := filepath.Join(dir, "shifts_xy_clean.csv")
		if way == linumpyRow {
			err = run.all(ctx, 0, "detect_rehoming {dir}/shifts_xy.csv {dir}/shifts_xy_clean.csv")
		} else {
			err = command(ctx, nil, shifts, "clean", filepath.Join(dir, "shifts_xy.csv"), clean, "--quiet", "--overwrite")
		}
		if err != nil {
			return nil, err
		}
		r := result{Phantom: phantom, Way: way, TilesRMS: math.NaN()}
		if err := run.volume(ctx, &r, t); err != nil {
			return nil, err
		}
		out = append(out, r)
	}
	return out, nil
}

// linumpyRun is a run of linumpy's programs on raw tiles.
type linumpyRun struct {
	*options
	raw, dir string
}

// volume aligns and stacks the slices by the repaired shifts, and measures the volume.
func (run *linumpyRun) volume(ctx context.Context, r *result, t *truth) error {
	err := run.all(ctx, 0, "align_mosaics_3d_from_shifts {dir}/slices {dir}/shifts_xy_clean.csv {dir}/common -f")
	if err != nil {
		return err
	}
	if err := os.RemoveAll(filepath.Join(run.dir, "transforms")); err != nil {
		return err
	}
	for k := 1; k < t.Config.Slices; k++ {
		err := run.all(ctx, k, "register_pairwise {dir}/common/slice_z{before}_normalize.ome.zarr {dir}/common/slice_z{kk}_normalize.ome.zarr {dir}/transforms/slice_z{kk}_normalize --moving_z_index 2 --max_translation_px 200")
		if err != nil {
			return err
		}
	}
	for _, line := range []string{"plain.ome.zarr", "blended.ome.zarr --blend --blend_z_refine_vox 5"} {
		if err := run.all(ctx, 0, "stack_slices_motor {dir}/common {dir}/shifts_xy_clean.csv {dir}/"+line+linumpyStack); err != nil {
			return err
		}
	}
	return errors.Join(r.geometry(ctx, t, filepath.Join(run.dir, "plain.ome.zarr")), r.evenness(ctx, t, filepath.Join(run.dir, "blended.ome.zarr")))
}

// all runs programs for slice k one after another.
func (run *linumpyRun) all(ctx context.Context, k int, lines ...string) error {
	names := strings.NewReplacer("{raw}", run.raw, "{dir}", run.dir, "{before}", fmt.Sprintf("%02d", k-1), "{kk}", fmt.Sprintf("%02d", k), "{k}", fmt.Sprint(k))
	for _, line := range lines {
		argv := strings.Fields(line)
		for i := range argv {
			argv[i] = names.Replace(argv[i])
		}
		if err := run.linumpyProgram(ctx, filepath.Join(run.dir, fmt.Sprintf("%02d.log", k)), argv); err != nil {
			return err
		}
	}
	return nil
}

// linumpyProgram runs a program of linumpy with the Python of the environment in its folder. What it says goes to a
// log.
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
