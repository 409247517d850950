package zarrtool

import (
	"bufio"
	"context"
	"errors"
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
	"strata/pkg/runrecord"
	"strata/pkg/volumes"
	"strata/pkg/volumes/nifti"
	"strata/pkg/volumes/nrrd"
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
func exportVolume(ctx context.Context, r *cli.Run, in *node, im *ngff.Image, f levelFile, format *volumeOut) error {
	v, order, err := volumeOf(r, in, im, f.level)
	if err != nil {
		return err
	}
	header, err := format.header(v)
	if err != nil {
		return cli.BadInputf("%s: %w: convert it first, such as with zarr-tool reencode --dtype float32", in.path, err)
	}
	out, err := r.OutputFile(f.path)
	if err != nil {
		return err
	}
	a := im.Levels[f.level].Array
	task := r.Progress("export", datasets.Bytes(a))
	n, err := format.write(ctx, r, out, header, func(w io.Writer) error {
		return cli.BadInput(stream(ctx, a, a.Bounds(), order, r.Options.Mem/4, func(b []byte) error {
			_, err := w.Write(b)
			task.Add(int64(len(b)))
			return err
		}))
	})
	if err != nil {
		return err
	}
	task.Done()
	r.Meter.AddWritten(n)
	r.Read(datasets.Describe(a, in.path))
	axes, size := r.String("axes"), v.Space.Sizes()
	um := func(name string) float64 { return 1e3 * size[max(strings.Index(axes, name), 0)] }
	voxel := []float64{um("z"), um("y"), um("x")}
	r.Wrote(runrecord.Dataset{Path: address.Address(out.Path()), Shape: a.Shape(), DType: a.DType().String(), VoxelSize: voxel})
	r.Conclude("level %d, %.4g × %.4g × %.4g µm (z, y, x), %s run to %s", f.level, voxel[0], voxel[1], voxel[2], strings.Join(strings.Split(axes, ""), " "), v.Space.Orientation())
	return nil
}

// volumeOf describes a level as a volume, and returns the axes of the image in the order of the file, the slowest
// first: channels, times, and those of --axes backwards.
func volumeOf(r *cli.Run, in *node, im *ngff.Image, level int) (*volumes.Volume, []int, error) {
	l := &im.Levels[level]
	at := map[string]int{}
	for d, a := range im.Axes {
		if !strings.Contains("tczyx", a.Name) || len(a.Name) != 1 {
			return nil, nil, cli.BadInputf("%s: axis %q: a volume has axes of t, c, z, y, x", in.path, a.Name)
		}
		at[a.Name] = d
	}
	axes, err := volumeAxes(r, at)
	if err != nil {
		return nil, nil, err
	}
	var order []int
	size := func(axis string) int {
		d, ok := at[axis]
		if !ok {
			return 1
		}
		order = append(order, d)
		return l.Array.Shape()[d]
	}
	v := &volumes.Volume{Channels: size("c"), Times: size("t"), Type: l.Array.DType(), Name: im.Name}
	v.Depth, v.Height, v.Width = size(axes[2]), size(axes[1]), size(axes[0])
	_, deep := at["z"]
	v.Flat = !deep
	if d, ok := at["t"]; ok && im.Axes[d].Unit == "second" {
		v.Interval = im.VoxelSize[d]
	}
	natural, codes, err := placeOf(r, im, level, at)
	if err != nil {
		return nil, nil, err
	}
	v.Space, v.Codes = natural, codes
	for i, name := range axes {
		c := strings.Index("xyz", name)
		for row := range v.Space {
			v.Space[row][i] = natural[row][c]
		}
	}
	return v, order, nil
}

// volumeAxes returns the axes of an image that become the first, second and third of a volume, by --axes.
func volumeAxes(r *cli.Run, at map[string]int) (axes [3]string, err error) {
	names := r.String("axes")
	if _, deep := at["z"]; !deep && len(names) == 2 {
		names += "z"
	}
	for _, name := range "xyz" {
		if strings.Count(names, string(name)) != 1 || len(names) != 3 {
			return axes, cli.Usage("--axes %s: must name x, y and z, each once, such as zyx", r.String("axes"))
		}
	}
	if _, deep := at["z"]; !deep && names[2] != 'z' {
		return axes, cli.Usage("--axes %s: %s has no axis z: want xy or yx", r.String("axes"), r.Arg("IN"))
	}
	return [3]string(strings.Split(names, "")), nil
}

// placeOf returns where the voxels of a level lie: by the place that the image was imported with, if its voxels still
// have the size of that, or else by voxel size, translation and --orientation.
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
