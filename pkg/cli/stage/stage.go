// Package stage is the wiring between the command line and the stages of
// pkg/oct that every stage's main shares: opening images, handing over what
// the flags say, and turning a stage's errors into exit codes.
package stage

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"strata/pkg/cli"
	"strata/pkg/cli/datasets"
	"strata/pkg/cli/progress"
	"strata/pkg/gpu"
	"strata/pkg/gpu/nvcomp"
	"strata/pkg/gpu/trial"
	"strata/pkg/images"
	"strata/pkg/ngff"
	"strata/pkg/oct"
	"strata/pkg/zarr"
	"strata/pkg/zarr/codec"
	"strata/pkg/zarr/store"
	"strata/pkg/zarr/zarrgpu"
)

// Open declares an OME-Zarr image as input, opens it and passes on what the
// reader noticed. Levels below level 0 may be missing.
func Open(ctx context.Context, r *cli.Run, path string) (*ngff.Image, error) {
	in, err := openImage(ctx, r, path, func() zarr.Option { return zarr.NoteMissing(datasets.Missing(r)) })
	if err == nil {
		r.AtClose(func() {
			for _, l := range in.Levels {
				l.Array.Close()
			}
			_ = in.Levels[0].Array.Store().Close() // it was only read from
		})
	}
	return in, err
}

// Browse opens an image as [Open] does, for a program that shows parts of it for as long as somebody looks: it keeps
// no list of the chunks that are not stored, of which a sparse image has any number.
func Browse(ctx context.Context, r *cli.Run, path string) (*ngff.Image, error) {
	return openImage(ctx, r, path, nil)
}

// openImage opens an image; missing, unless it is nil, makes the option that notes chunks which are not stored.
func openImage(ctx context.Context, r *cli.Run, path string, missing func() zarr.Option) (*ngff.Image, error) {
	path, err := r.Image(path)
	if err != nil {
		return nil, err
	}
	if !r.MayChoose() {
		r.Prepare(func() { _, _ = gpu.Devices() }) // who asks for the device has the error
	}
	st, key, err := images.Open(ctx, path, store.Settings(r.Options.HTTP))
	if err != nil {
		return nil, cli.BadInput(err)
	}
	if st, err = readBy(ctx, r, st, path); err != nil {
		return nil, err
	}
	for _, w := range images.Warnings(st) {
		r.Warn("%s", w)
	}
	opts := []zarr.Option{zarr.Workers(1), zarr.Meter(r.Meter)}
	if missing != nil && !images.Sparse(st) {
		opts = append(opts, missing())
	}
	in, err := ngff.OpenPresent(ctx, st, key, opts...)
	if err != nil {
		_ = st.Close()
	}
	if errors.Is(err, store.ErrNoDirect) {
		return nil, cli.Usage("--backend direct cannot read %w; give auto or host", err)
	}
	if err != nil {
		return nil, cli.BadInput(err)
	}
	r.ReadsFrom(st)
	if zip, ok := st.(*store.ZipStore); ok {
		r.Options.Reserved = max(r.Options.Reserved, zip.Reserves())
	}
	for _, w := range in.Warnings {
		r.Warn("%s", w)
	}
	return in, nil
}

// readBy lets an input's files be read as --backend says.
func readBy(ctx context.Context, r *cli.Run, st store.Store, path string) (store.Store, error) {
	how := store.ReadCached
	switch r.Options.Backend {
	case "direct":
		how = store.ReadDirect
	case "mmap":
		how = store.ReadMapped
	default:
		return st, nil
	}
	st, ok, err := images.ReadBy(ctx, st, path, how)
	switch {
	case errors.Is(err, store.ErrNoDirect):
		return nil, cli.Usage("--backend direct cannot read %w; give auto or host", err)
	case err == nil && !ok:
		return nil, cli.Usage("--backend %s cannot read %s: it is not a folder of files; give auto or host", r.Options.Backend, st.Location(""))
	}
	return st, err
}

// InOut returns the arguments of a stage that makes one OME-Zarr image from another. in and out name them in the help:
// "slice (z, y, x)", "mosaic grid".
func InOut(in, out string) []cli.Arg {
	return []cli.Arg{
		{Name: "IN", Usage: "OME-Zarr " + in + ": folder, .zip file, TIFF file, or http(s):// or s3:// URL"},
		{Name: "OUT", Usage: "OME-Zarr " + out + " to write: folder or s3://bucket/path"},
	}
}

// Layout returns the layout of the output that the flags ask for.
func Layout(r *cli.Run) oct.Layout {
	o := r.Options
	return oct.Layout{Format: o.ZarrFormat, Codec: o.Codec, Chunks: o.Chunks, Shard: o.Shard, Levels: o.Levels}
}

// LayoutOf returns the layout of a further output, for which the flags of [cli.LayoutOf] with that prefix ask.
func LayoutOf(r *cli.Run, prefix string) oct.Layout {
	l := oct.Layout{Format: r.Options.ZarrFormat, Codec: r.Options.Codec, Chunks: r.Ints(prefix + "chunks"), Shard: r.Ints(prefix + "shard"), Levels: r.Int(prefix + "n_levels"), Prefix: prefix}
	if own := r.String(prefix + "codec"); own != "" {
		if l.Codec = own; r.Options.Checksum {
			l.Codec += codec.ChecksumSuffix
		}
	}
	return l
}

// farWorkers is the number of workers of a stage whose input is far away: each
// waits for its part of the input most of the time.
const farWorkers = 32

// Resources returns the workers and the memory that the flags grant a stage on the CPU.
// Its progress goes to task.
func Resources(r *cli.Run, task *progress.Task) oct.Resources {
	return oct.Resources{
		Shared: r.Options.SharedMem, Cores: r.Options.Threads, Besides: r.TakenMem(), Crewed: r.Crewed,
		Workers: max(r.Options.Threads, min(r.Options.Requests, farWorkers)),
		Mem:     r.Options.Mem - r.Options.Reserved, Meter: r.Meter, Progress: task.Add,
		Warn: func(m string) { r.Warn("%s", m) }, Debug: func(m string) { r.Decided("%s", m) },
	}
}

// ResourcesOnGPU returns the [Resources] of a stage that computes on a GPU if there is one and it is expected to be
// faster. The command must have [GPU] as its accelerator.
func ResourcesOnGPU(ctx context.Context, r *cli.Run, task *progress.Task, w Work) (oct.Resources, error) {
	res, err := ResourcesJoined(ctx, r, task, w)
	if err != nil {
		return res, err
	}
	return res.Settled(ctx)
}

// ResourcesJoined is [ResourcesOnGPU] of a stage that begins on the CPU: where the run is free to choose, a device is
// taken into use beside the stage's work, and the resources have it as Coming.
func ResourcesJoined(ctx context.Context, r *cli.Run, task *progress.Task, w Work) (oct.Resources, error) {
	res := Resources(r, task)
	if !r.Options.UseGPU {
		return res, nil
	}
	m, err := newModel()
	if err != nil {
		return res, err
	}
	if m.joins(r) {
		return res, m.later(ctx, r, w, &res)
	}
	r.Prepare(func() { _, _ = gpu.Devices() })
	if r.MayChoose() {
		c, err := m.choose(m.question(ctx, r, w))
		if err != nil {
			return res, err
		}
		if c != nil {
			r.Chose(*c)
			r.Options.UseGPU = c.On == onGPU
		}
	}
	d, err := r.Device(ctx)
	if err != nil {
		return res, err
	}
	if d != nil {
		m.add(r, d.(*device), &res)
	}
	return res, nil
}

// add lets a stage compute on a device.
func (m model) add(r *cli.Run, on *device, res *oct.Resources) {
	res.Workers = r.Options.Threads // each holds a part of the device's memory
	if on.tried == nil {
		on.tried = trial.New(m.tries(), res.Workers)
	}
	res.Device, res.Backend, res.Files, res.Ways, res.Trials = on.Device, r.Options.Backend, on.files, on.ways, on.tried
}

// mostTold limits the trials in the log; the record has all.
const mostTold = 4

// tellTrials logs the measured speeds on one line; they show how chunks were read and written.
func tellTrials(r *cli.Run, all []trial.Outcome) {
	var told []string
	for _, o := range all[:min(len(all), mostTold)] {
		told = append(told, r.OwnNames(o.String()))
	}
	if more := len(all) - len(told); more > 0 {
		told = append(told, fmt.Sprintf("%d more arrays", more))
	}
	if told != nil {
		r.Decided("measured: %s", strings.Join(told, "; "))
	}
}

// Failed gives an error of a stage its exit code: 2 for a layout that the
// output cannot have and for a backend that the input cannot be read by, 3 for an unsuitable
// input, 4 for a GPU that failed, also behind such a backend, 1 for the rest.
func Failed(err error) error {
	var format *zarr.FormatError
	var call *gpu.Error
	var library *nvcomp.Error
	var backend *zarrgpu.BackendError
	switch {
	case errors.As(err, &call), errors.As(err, &library), errors.Is(err, gpu.ErrMemory):
		return cli.GPUFailure(err)
	case errors.Is(err, oct.ErrLayout), errors.As(err, &backend):
		return cli.Usage("%w", err)
	case errors.Is(err, oct.ErrInput), errors.As(err, &format):
		return cli.BadInput(err)
	}
	return err
}

// Describe notes an input and an output image in the run record, each under the
// path that the user knows it by.
func Describe(r *cli.Run, in *ngff.Image, from string, out *ngff.Image, to string) {
	r.Read(datasets.DescribeImage(in, from))
	r.Wrote(datasets.DescribeImage(out, to))
}
