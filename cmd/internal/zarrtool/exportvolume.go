package zarrtool

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strings"

	"github.com/klauspost/compress/gzip"

	"strata/pkg/address"
	"strata/pkg/atomic"
	"strata/pkg/cli"
	"strata/pkg/cli/datasets"
	"strata/pkg/ngff"
	"strata/pkg/record"
	"strata/pkg/volumes"
	"strata/pkg/volumes/nifti"
	"strata/pkg/volumes/nrrd"
	"strata/pkg/zarr"
)

// volumeOut is a format of volumes: its header, and whether what follows, or all of it, is compressed by gzip.
type volumeOut struct {
	header    func(v *volumes.Volume) ([]byte, error)
	packed    bool
	allPacked bool
}

// volumeFormat returns the format that a file's name says, nil for none of volumes.
func volumeFormat(name string) *volumeOut {
	switch name = strings.ToLower(name); {
	case strings.HasSuffix(name, ".nii"):
		return &volumeOut{header: nifti.Header}
	case strings.HasSuffix(name, ".nii.gz"):
		return &volumeOut{header: nifti.Header, packed: true, allPacked: true}
	case strings.HasSuffix(name, ".nrrd"):
		return &volumeOut{header: func(v *volumes.Volume) ([]byte, error) { return nrrd.Header(v, true) }, packed: true}
	}
	return nil
}

// exportVolume writes one level of an image.
func exportVolume(ctx context.Context, r *cli.Run, in *node, im *ngff.Image, format *volumeOut) error {
	for _, flag := range []string{"tile_size", "compression", "predictor", "n_levels", "rgb"} {
		if r.IsSet(flag) {
			return cli.Usage("--%s is for TIFF: %s is a volume", flag, r.Arg("OUT"))
		}
	}
	level, err := chooseLevel(r, in, im)
	if err != nil {
		return err
	}
	v, at, err := volumeOf(r, in, im, level)
	if err != nil {
		return err
	}
	header, err := format.header(v)
	if err != nil {
		return cli.BadInputf("%s: %w: convert it first, such as with zarr-tool reencode --dtype float32", in.path, err)
	}
	out, err := r.OutputFile(r.Arg("OUT"))
	if err != nil {
		return err
	}
	a := im.Levels[level].Array
	task := r.Progress("export", datasets.Bytes(a))
	n, err := format.write(ctx, r, out, header, func(w io.Writer) error {
		return voxels(ctx, a, at, r.Options.Mem/4, func(b []byte) error {
			_, err := w.Write(b)
			task.Add(int64(len(b)))
			return err
		})
	})
	if err != nil {
		return err
	}
	task.Done()
	r.Meter.AddWritten(n)
	r.Read(datasets.Describe(a, in.path))
	size := v.Space.Sizes()
	r.Wrote(record.Dataset{Path: address.Address(out.Path()), Shape: a.Shape(), DType: a.DType().String(), VoxelSize: []float64{1e3 * size[2], 1e3 * size[1], 1e3 * size[0]}})
	r.Conclude("level %d, %.4g × %.4g × %.4g µm (z, y, x), x y z run to %s", level, 1e3*size[2], 1e3*size[1], 1e3*size[0], v.Space.Orientation())
	return nil
}

// chooseLevel returns the level that --level or --resolution asks for.
func chooseLevel(r *cli.Run, in *node, im *ngff.Image) (int, error) {
	if !r.IsSet("resolution") {
		if n := r.Int("level"); n >= len(im.Levels) {
			return 0, cli.Usage("--level %d: %s has levels 0 to %d", n, in.path, len(im.Levels)-1)
		}
		return r.Int("level"), nil
	}
	if r.IsSet("level") {
		return 0, cli.Usage("--resolution contradicts --level: give one of them")
	}
	best, closest := 0, math.Inf(1)
	for k := range im.Levels {
		logs, n := 0.0, 0.0
		for d, a := range im.Axes {
			if a.Type == ngff.TypeSpace {
				logs, n = logs+math.Log(im.VoxelSize[d]*im.Levels[k].Scale[d]/im.Levels[0].Scale[d]), n+1
			}
		}
		if off := math.Abs(logs/max(n, 1) - math.Log(r.Float("resolution"))); off < closest {
			best, closest = k, off
		}
	}
	return best, nil
}

// volumeOf describes a level as a volume, and returns its axes by their names.
func volumeOf(r *cli.Run, in *node, im *ngff.Image, level int) (*volumes.Volume, map[string]int, error) {
	l := &im.Levels[level]
	at, size := map[string]int{}, map[string]int{"t": 1, "c": 1, "z": 1}
	for d, a := range im.Axes {
		if !strings.Contains("tczyx", a.Name) || len(a.Name) != 1 {
			return nil, nil, cli.BadInputf("%s: axis %q: a volume has axes of t, c, z, y, x", in.path, a.Name)
		}
		at[a.Name], size[a.Name] = d, l.Array.Shape()[d]
	}
	_, deep := at["z"]
	v := &volumes.Volume{Times: size["t"], Channels: size["c"], Depth: size["z"], Height: size["y"], Width: size["x"], Flat: !deep,
		Type: l.Array.DType(), Name: im.Name}
	if name := r.String("name"); name != "" {
		v.Name = name
	}
	if d, ok := at["t"]; ok && im.Axes[d].Unit == "second" {
		v.Interval = im.VoxelSize[d]
	}
	var err error
	v.Space, v.Codes, err = placeOf(r, im, level, at)
	return v, at, err
}

// placeOf returns where the voxels of a level lie: by the place that the image was imported with, if its voxels still have the size of that,
// or else by voxel size, translation and --orientation.
func placeOf(r *cli.Run, im *ngff.Image, level int, at map[string]int) (volumes.Affine, map[string]any, error) {
	var um, scale, shift, origin [3]float64 // of level 0; of this one, in voxels of level 0; in mm
	for i, name := range []string{"x", "y", "z"} {
		d, ok := at[name]
		if !ok {
			um[i], scale[i] = um[0], 1
			continue
		}
		first, this := &im.Levels[0], &im.Levels[level]
		um[i], scale[i] = im.VoxelSize[d], this.Scale[d]/first.Scale[d]
		perUnit := im.VoxelSize[d] / first.Scale[d] // µm
		var begin, here float64
		if first.Translation != nil {
			begin = first.Translation[d]
		}
		if this.Translation != nil {
			here = this.Translation[d]
		}
		shift[i], origin[i] = (here-begin)/first.Scale[d], 1e-3*here*perUnit
	}
	if w := volumes.WorldOf(im.Group.Attributes()); w != nil && !r.IsSet("orientation") {
		size := w.Affine.Sizes()
		same := true
		for i, mm := range size {
			same = same && math.Abs(1e3*mm-um[i]) <= 1e-4*um[i]
		}
		if same {
			return w.Affine.Of(scale, shift), w.Codes, nil
		}
		r.Warn("the image's voxels have another size than those of its place in space (attribute %q), which is left out", volumes.WorldKey)
	}
	mm := [3]float64{}
	for i := range mm {
		mm[i] = 1e-3 * um[i] * scale[i]
	}
	a, err := volumes.Oriented(r.String("orientation"), mm, origin)
	if err != nil {
		return a, nil, cli.Usage("--orientation: %w", err)
	}
	return a, nil, nil
}

// write writes a header and what follows it to a file, which appears when it is complete, and returns its length.
func (f *volumeOut) write(ctx context.Context, r *cli.Run, out *atomic.Output, header []byte, body func(w io.Writer) error) (n int64, err error) {
	file, err := out.Create()
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	b := bufio.NewWriterSize(file, 1<<20)
	var w io.Writer = b
	pack := func() *gzip.Writer {
		z, _ := gzip.NewWriterLevel(b, gzip.DefaultCompression) // a level that there is
		w = z
		return z
	}
	var z *gzip.Writer
	if f.allPacked {
		z = pack()
	}
	if _, err := w.Write(header); err != nil {
		return 0, err
	}
	if f.packed && z == nil {
		z = pack()
	}
	if err := body(w); err != nil {
		return 0, err
	}
	if z != nil {
		if err := z.Close(); err != nil {
			return 0, err
		}
	}
	if err := b.Flush(); err != nil {
		return 0, err
	}
	if info, err := os.Stat(out.Work()); err == nil {
		n = info.Size()
	}
	return n, ctx.Err()
}

// voxels calls emit with all voxels in little-endian order, x fastest, then y, z, t and channels.
func voxels(ctx context.Context, a *zarr.Array, at map[string]int, budget int64, emit func([]byte) error) error {
	count := func(axis string) int {
		if d, ok := at[axis]; ok {
			return a.Shape()[d]
		}
		return 1
	}
	for d, order := 0, "tczyx"; d < len(order); d++ {
		for _, later := range order[d+1:] {
			one, ok := at[order[d:d+1]]
			other, also := at[string(later)]
			if ok && also && one > other {
				return cli.BadInput(fmt.Errorf("%s: axes in the order of %q: must be t, c, z, y, x", a.Location(), later))
			}
		}
	}
	for c := range count("c") {
		for t := range count("t") {
			region := a.Bounds()
			for axis, i := range map[string]int{"c": c, "t": t} {
				if d, ok := at[axis]; ok {
					region.Start[d], region.Shape[d] = i, 1
				}
			}
			if err := stream(ctx, a, region, budget, emit); err != nil {
				return cli.BadInput(err)
			}
		}
	}
	return nil
}
