package zarrtool

import (
	"context"
	"fmt"

	"strata/pkg/cli"
	"strata/pkg/cli/datasets"
	"strata/pkg/dtype"
	"strata/pkg/filter"
	"strata/pkg/zarr"
)

func clipCommand() *cli.Command {
	return &cli.Command{
		Name:  "clip",
		Usage: "clip the intensities of an image at percentiles, or rescale what lies between",
		Description: "Voxels below the lower percentile of all voxels of IN become that percentile, voxels above the upper one that. With\n" +
			"--rescale they become 0 and 1 of floating-point numbers, or 0 and the largest integer of the type, and the others lie\n" +
			"between. Limits of integers are rounded half to even. NaN stays and does not count.\n\n" +
			"IN is read three times: twice to count, once to write. The counters take a few MiB however large IN is.",
		Args: []cli.Arg{
			{Name: "IN", Usage: "OME-Zarr image or Zarr array, TIFF, CZI, NIfTI or NRRD file: path or URL"},
			{Name: "OUT", Usage: "OME-Zarr image to write"},
		},
		Flags: append([]cli.Flag{
			{Name: "percentile_lower", Kind: cli.Float, Default: "0", Check: cli.Between(0, 100), Usage: "clip voxels below this percentile, 0 to 100"},
			{Name: "percentile_upper", Kind: cli.Float, Default: "99.9", Check: cli.Between(0, 100), Usage: "clip voxels above this percentile, 0 to 100"},
			{Name: "rescale", Kind: cli.Bool, Usage: "stretch what lies between the percentiles to 0 to 1, or to the range of the integers from 0 on"},
		}, storageFlags()...),
		Shared: cli.Inputs | cli.Resources | cli.Outputs | cli.Layout | cli.Pyramid,
		Hints:  cli.Hints{"chunks": {Value: "N,...", Note: "the input's"}, "shard": {Value: "N,...", Note: "the input's"}, "codec": {Note: "the input's"}, "checksum": {Note: "as the input"}},
		Examples: []cli.Example{
			{Command: "zarr-tool clip volume.ome.zarr clipped.ome.zarr", Usage: "without the brightest thousandth"},
			{Command: "zarr-tool clip volume.ome.zarr view.ome.zarr --percentile_lower 1 --percentile_upper 99.8 --rescale --dtype uint8", Usage: "a byte a voxel, for looking at"},
		},
		Run: cli.Do(runClip),
	}
}

func runClip(ctx context.Context, r *cli.Run) error {
	low, high := r.Float("percentile_lower"), r.Float("percentile_upper")
	if low >= high {
		return cli.Usage("--percentile_lower %g: must be below --percentile_upper %g", low, high)
	}
	missing := datasets.Missing(r)
	in, err := openNode(ctx, r, r.Arg("IN"), missing)
	if err != nil {
		return err
	}
	s, err := storageOf(r)
	if err != nil {
		return err
	}
	spec, a, err := describeOme(ctx, r, in, missing)
	if err != nil {
		return err
	}
	t := a.DType()
	if !t.IsNumber() || t.IsInteger() && t.Size() > 4 {
		return cli.BadInputf("%s: elements of type %s: clip takes integers of 8 to 32 bits and floating-point numbers: convert them first, such as with zarr-tool reencode --dtype float32", a.Location(), t)
	}
	q, err := percentiles(ctx, r, a, low, high)
	if err != nil {
		return err
	}
	c := clipping{from: t, to: t, low: q.Value(0), high: q.Value(1)}
	if s.dtype != dtype.Invalid {
		c.to = s.dtype
	}
	if c.low != c.low {
		return cli.BadInputf("%s: no voxel is a number", a.Location())
	}
	if r.Bool("rescale") {
		if !(c.high-c.low > 0) || c.high-c.low > maxFloat {
			return cli.BadInputf("%s: the percentiles %g and %g are %.6g and %.6g: nothing between them can be rescaled", a.Location(), low, high, c.low, c.high)
		}
		c.top = top(c.to)
		spec.Omero = spec.Omero.WithoutWindows()
	}
	r.Conclude("percentiles %g and %g are %.6g and %.6g", low, high, c.low, c.high)
	return writeImage(ctx, r, in, s, spec, source{Array: a, change: c.apply})
}

// maxFloat is the largest range that is rescaled: infinities have none.
const maxFloat = 3.5e38

// percentiles counts all values of an array, twice.
func percentiles(ctx context.Context, r *cli.Run, a *zarr.Array, percent ...float64) (*filter.Quantiles, error) {
	q := filter.NewQuantiles(percent...)
	task := r.Progress("percentiles", 2*datasets.Bytes(a))
	for pass := range 2 {
		if pass > 0 {
			q.Refine()
		}
		err := eachBlock(ctx, a, nil, a.Chunks(), r.Options.Threads, r.Options.Mem/2, func(_ context.Context, _ zarr.Region, data []byte) error {
			var part [clipPart]float32
			task.Add(int64(len(data)))
			return inParts(data, a.DType(), func(from []byte, n int) error {
				if err := dtype.Convert(dtype.Bytes(part[:n]), dtype.Float32, from, a.DType()); err != nil {
					return fmt.Errorf("%s: %w", a.Location(), err)
				}
				q.Add(part[:n])
				return nil
			})
		})
		if err != nil {
			return nil, cli.BadInput(err)
		}
	}
	task.Done()
	return q, nil
}

// clipPart is the number of elements that are changed at a time.
const clipPart = 1 << 12

// inParts passes elements a few at a time.
func inParts(data []byte, t dtype.Type, f func(part []byte, n int) error) error {
	size := t.Size()
	for len(data) > 0 {
		n := min(len(data)/size, clipPart)
		if err := f(data[:n*size], n); err != nil {
			return err
		}
		data = data[n*size:]
	}
	return nil
}

// clipping changes elements: to what lies between two limits or, if top is not 0, to where that lies from 0 to top.
type clipping struct {
	from, to  dtype.Type
	low, high float64
	top       float64
}

// apply returns elements in new memory.
func (c *clipping) apply(data []byte) ([]byte, error) {
	out := make([]byte, 0, len(data)/c.from.Size()*c.to.Size())
	var part [clipPart]float64
	err := inParts(data, c.from, func(from []byte, n int) error {
		if err := dtype.Convert(dtype.Bytes(part[:n]), dtype.Float64, from, c.from); err != nil {
			return err
		}
		for i, v := range part[:n] {
			switch { // NaN is in neither
			case v < c.low:
				v = c.low
			case v > c.high:
				v = c.high
			}
			if c.top > 0 {
				v = (v - c.low) / (c.high - c.low) * c.top
			}
			part[i] = v
		}
		at := len(out)
		out = out[:at+n*c.to.Size()]
		return dtype.Convert(out[at:], c.to, dtype.Bytes(part[:n]), dtype.Float64)
	})
	return out, err
}

// top returns what the upper limit becomes in a type.
func top(t dtype.Type) float64 {
	if !t.IsInteger() {
		return 1
	}
	bits := 8 * t.Size()
	if t <= dtype.Int64 {
		bits--
	}
	return float64(uint64(1)<<bits - 1)
}
