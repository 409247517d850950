package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// fixtures holds the inputs of all campaigns: a small phantom and the outputs of the stages for it.
type fixtures struct {
	bin, dir string
	steps    []*step
	old      string // an image at the place of an output
}

// step is a program with one output.
type step struct {
	args    []string // command line without the output and common flags
	out     string   // name of the output
	made    tree     // its output
	seconds float64  // its duration
}

// command returns the step's command line for an output.
func (s *step) command(out string, flags ...string) []string {
	args := append([]string{}, s.args...)
	return append(append(args, out, "-q"), flags...)
}

// makeFixtures generates a phantom of two slices, runs all stages on it, and records the output and duration of
// each.
func makeFixtures(ctx context.Context, bin, dir string) (*fixtures, error) {
	f := &fixtures{bin: bin, dir: dir, old: filepath.Join(dir, "old.ome.zarr")}
	at := func(name string) string { return filepath.Join(dir, name) }
	if err := os.Mkdir(at("slices"), 0o777); err != nil {
		return nil, err
	}
	lines := [][]string{
		{"phantom", at("ph"), "--slices", "2", "--tiles", "3,3", "--tile", "48,96,96", "--chunks", "24,48,48", "--seed", "5"},
		{"zarr-tool", "ome", at("ph/mosaic_grid_3d_z01.ome.zarr"), f.old, "--n_levels", "1", "--codec", "raw"},
	}
	for _, z := range []string{"z00", "z01"} {
		in := func(stage string) string { return at(stage + "_" + z + ".ome.zarr") }
		lines = append(lines,
			[]string{"resample", at("ph/mosaic_grid_3d_" + z + ".ome.zarr"), in("r"), "--resolution", "10"},
			[]string{"focal", in("r"), in("f")},
			[]string{"stitch", in("f"), in("s")},
			[]string{"crop", in("s"), at("slices/slice_" + z + ".ome.zarr"), "--depth", "100"})
	}
	for _, line := range lines {
		if err := mustRun(ctx, bin, dir, append(line, "-q")...); err != nil {
			return nil, err
		}
	}
	mosaic := at("ph/mosaic_grid_3d_z00.ome.zarr")
	f.steps = []*step{
		{args: []string{"aip", mosaic}, out: "aip.ome.zarr"},
		{args: []string{"resample", mosaic, "--resolution", "8"}, out: "resampled.ome.zarr"},
		{args: []string{"zarr-tool", "ome", mosaic, "--chunks", "12,24,24", "--shard", "24,48,48"}, out: "shards.ome.zarr"},
		{args: []string{"focal", mosaic}, out: "focal.ome.zarr"},
		{args: []string{"stitch", mosaic}, out: "stitched.ome.zarr"},
		{args: []string{"crop", at("s_z00.ome.zarr"), "--depth", "100"}, out: "cropped.ome.zarr"},
		{args: []string{"smooth", mosaic, "--median", "3", "--sigma_px", "2"}, out: "smooth.ome.zarr"},
		{args: []string{"stack", at("slices"), at("ph/shifts_xy.csv"), "--use_expected_overlap"}, out: "volume.ome.zarr"},
		{args: []string{"zarr-tool", "reencode", mosaic, "--codec", "zstd:3", "--zarr_format", "2"}, out: "copy.ome.zarr"},
		{args: []string{"zarr-tool", "ome", filepath.Join(mosaic, "0"), "--n_levels", "3"}, out: "image.ome.zarr"},
		{args: []string{"preview", mosaic}, out: "cuts.png"},
	}
	for _, s := range f.steps {
		place := at("reference-" + s.out)
		started := time.Now()
		if err := mustRun(ctx, bin, dir, s.command(place)...); err != nil {
			return nil, err
		}
		s.seconds = time.Since(started).Seconds()
		var err error
		if s.made, err = treeOf(place); err != nil {
			return nil, err
		}
		if len(s.made) == 0 {
			return nil, fmt.Errorf("%s made nothing", s.args[0])
		}
	}
	return f, nil
}
