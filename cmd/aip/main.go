// Command aip makes the average intensity projection of a mosaic grid.
package main

import (
	"context"
	"errors"
	"io"

	"strata/pkg/cli"
	"strata/pkg/cli/datasets"
	"strata/pkg/ngff"
	"strata/pkg/oct"
	"strata/pkg/zarr"
	"strata/pkg/zarr/store"
)

func main() { cli.Main(command()) }

func command() *cli.Command {
	return &cli.Command{
		Name:  "aip",
		Usage: "average intensity projection of a mosaic grid",
		Description: "Averages an OME-Zarr mosaic grid (z, y, x) over z: a float64 sum in increasing z, one division, one\n" +
			"rounding to float32. OUT is a 2-D OME-Zarr image with the mosaic's tile as chunk and a resolution pyramid.\n" +
			"Reads one chunk column per worker at a time, never the volume. NaN stays NaN.",
		Args: []cli.Arg{
			{Name: "IN", Usage: "OME-Zarr mosaic grid: a folder, a .zip or an http(s) URL"},
			{Name: "OUT", Usage: "OME-Zarr image to write"},
		},
		Shared: cli.Stage,
		Hints:  cli.Hints{"chunks": {Value: "Y,X", Note: "the mosaic's tile"}, "shard": {Value: "Y,X", Note: "none"}},
		Flags: []cli.Flag{
			{Name: "png", Value: "FILE", Usage: "also write a 16-bit greyscale PNG between the percentiles 0.1 and 99.9"},
		},
		Examples: []cli.Example{
			{Command: "aip mosaic_grid_3d_z03.ome.zarr aip_z03.ome.zarr --png aip_z03.png", Usage: "projection, pyramid and picture"},
			{Command: "aip in.ome.zarr out.ome.zarr -f -j 8 --mem 2GiB", Usage: "replace out.ome.zarr, with 8 workers and 2 GiB of buffers"},
			{Command: "aip in.ome.zarr out.ome.zarr --n_levels 0 --codec raw --report run.json", Usage: "no pyramid, uncompressed, with a record of the run"},
		},
		Run: run,
	}
}

func run(ctx context.Context, r *cli.Run) error {
	path, err := r.Input(r.Arg("IN"))
	if err != nil {
		return err
	}
	in, err := open(ctx, r, path)
	if err != nil {
		return cli.BadInput(err)
	}
	out, err := r.Output(r.Arg("OUT"))
	if err != nil {
		return err
	}
	var png io.Writer
	if name := r.String("png"); name != "" {
		file, err := r.OutputFile(name)
		if err != nil {
			return err
		}
		f, err := file.Create()
		if err != nil {
			return err
		}
		defer f.Close()
		png = f
	}
	o := r.Options
	level0 := in.Levels[0].Array
	task := r.Progress("project", datasets.Bytes(level0))
	result, err := oct.AIP(ctx, in, store.Folder(out.Work()), oct.Layout{
		Format: o.ZarrFormat, Codec: o.Codec, Chunks: o.Chunks, Shard: o.Shard, Levels: o.Levels,
	}, png, oct.Resources{
		Workers: o.Threads, Mem: o.Mem, Meter: r.Meter, Progress: task.Add,
		Warn: func(m string) { r.Warn("%s", m) },
	})
	var format *zarr.FormatError
	if errors.Is(err, oct.ErrLayout) {
		return cli.Usage("%w", err)
	}
	if errors.Is(err, oct.ErrInput) || errors.As(err, &format) {
		return cli.BadInput(err)
	}
	if err != nil {
		return err
	}
	task.Done()
	r.Read(datasets.Describe(level0, path))
	r.Wrote(datasets.Describe(result.Levels[0].Array, out.Path()))
	return nil
}

// open opens the mosaic grid and passes on what the reader noticed.
func open(ctx context.Context, r *cli.Run, path string) (*ngff.Image, error) {
	st, key, err := store.OpenURL(ctx, path)
	if err != nil {
		return nil, err
	}
	in, err := ngff.OpenPresent(ctx, st, key, zarr.Workers(1), zarr.Meter(r.Meter))
	if err != nil {
		return nil, err
	}
	for _, w := range in.Warnings {
		r.Warn("%s", w)
	}
	return in, nil
}
