// Package tiffout writes the TIFF files that programs make.
package tiffout

import (
	"context"
	"errors"
	"os"
	"slices"

	"strata/pkg/address"
	"strata/pkg/atomic"
	"strata/pkg/cli"
	"strata/pkg/cli/progress"
	"strata/pkg/mem"
	"strata/pkg/runrecord"
	"strata/pkg/tiff"
	"strata/pkg/tiff/tiffwriter"
)

// Write writes an image as the file out, band by band, each of which fill has to fill, and notes it in the run's
// record.
func Write(ctx context.Context, r *cli.Run, out *atomic.Output, spec tiffwriter.Spec, task *progress.Task, fill func(context.Context, *tiffwriter.Band) error) error {
	f, err := out.Create()
	if err != nil {
		return err
	}
	defer f.Close()
	w, err := tiffwriter.New(f, spec)
	if errors.Is(err, mem.ErrBudget) {
		return cli.MemoryError("--mem %d MiB: %v: give smaller --tile_size or more --mem", r.Options.Mem>>20, err)
	}
	if err != nil {
		return cli.Usage("%s cannot be written: %w", out.Path(), err)
	}
	defer w.Abort()
	for w.Next() {
		b := w.Band()
		if err := fill(ctx, b); err != nil {
			return err
		}
		if err := w.Write(ctx); err != nil {
			return err
		}
		task.Add(int64(len(b.Data)))
	}
	if err := w.Close(); err != nil {
		return err
	}
	if info, err := os.Stat(out.Work()); err == nil {
		r.Meter.AddWritten(info.Size())
	}
	im := spec.Image
	shape := []int{max(im.Times, 1), max(im.Channels, 1), max(im.Depths, 1), spec.Height, spec.Width, max(spec.Samples, 1)}
	shape = slices.DeleteFunc(shape, func(n int) bool { return n == 1 })
	r.Wrote(runrecord.Dataset{Path: address.Address(out.Path()), Shape: shape, DType: spec.Type.String(), VoxelSize: voxelSize(im), Levels: spec.Levels})
	return nil
}

// voxelSize returns the size of an image's voxels, of a plane without that along z; nil where it is not known.
func voxelSize(im tiff.Image) []float64 {
	size := im.VoxelUM[:]
	if im.Depths <= 1 {
		size = size[1:]
	}
	if slices.Contains(size, 0) {
		return nil
	}
	return size
}
