package zarrtool

import (
	"context"
	"path/filepath"
	"slices"
	"strings"

	"strata/pkg/cli"
	"strata/pkg/cli/datasets"
	"strata/pkg/cli/zarrout"
	"strata/pkg/ngff"
	"strata/pkg/zarr"
	"strata/pkg/zarr/store"
)

func omeCommand() *cli.Command {
	return &cli.Command{
		Name:  "ome",
		Usage: "turn an array into an OME-Zarr image, or give an image a new pyramid",
		Description: "Level 0 of OUT is the array IN, or level 0 of the image IN. The levels below it are computed anew, each half the\n" +
			"size of the one above, by linear interpolation. Axes, voxel size, name and display settings are those of IN\n" +
			"unless flags change them.\n\n" +
			"Without OUT, changes IN in place: an image gets new levels; an array GROUP/0 becomes level 0 of an image in\n" +
			"GROUP. IN stays as it was until the new levels are complete. The next run removes what a killed run left behind.",
		Args: []cli.Arg{
			{Name: "IN", Usage: "Zarr array or OME-Zarr image: folder, .zip file, or http(s):// or s3:// URL"},
			{Name: "OUT", Usage: "OME-Zarr image to write; without it, IN is changed in place", Optional: true},
		},
		Flags: append([]cli.Flag{
			{Name: "axes", Value: "NAMES", Note: "the image's, else the last of tczyx", Usage: "names of the axes, one letter each, such as zyx"},
			{Name: "order", Value: "NAMES", Note: "as stored", Usage: "order of the axes of OUT, such as zyx: the array is transposed, with the axes' names and voxel sizes"},
			{Name: "scale", Kind: cli.Floats, Value: "X,...", Note: "the image's, else 1", Check: cli.Above(0), Usage: "voxel size of level 0 along each axis, in the unit of --unit"},
			{Name: "unit", Note: "the image's, else micrometer", Usage: "unit of the voxel size along space axes"},
			{Name: "name", Usage: "name of the image"},
			labelsFlag,
		}, storageFlags()...),
		Shared: cli.Inputs | cli.Resources | cli.Outputs | cli.Layout | cli.Pyramid,
		Hints:  cli.Hints{"chunks": {Value: "N,...", Note: "the input's"}, "shard": {Value: "N,...", Note: "the input's"}, "codec": {Note: "the input's"}, "checksum": {Note: "as the input"}},
		Examples: []cli.Example{
			{Command: "zarr-tool ome volume.zarr volume.ome.zarr --axes zyx --scale 3.5,2,2 --unit micrometer", Usage: "give a plain array metadata and a pyramid"},
			{Command: "zarr-tool ome xyz.ome.zarr zyx.ome.zarr --order zyx", Usage: "transpose an image that is stored as x, y, z"},
			{Command: "zarr-tool ome volume.zarr volume.ome.zarr --axes xyz --order zyx --scale 2,2,3.5", Usage: "the same of an array without names; --scale goes with --axes"},
			{Command: "zarr-tool ome flat.ome.zarr pyramid.ome.zarr --n_levels 6", Usage: "copy an image with a new pyramid"},
			{Command: "zarr-tool ome mask.zarr mask.ome.zarr --labels --n_levels 3", Usage: "an array of labels: no means of them"},
			{Command: "zarr-tool ome flat.ome.zarr --n_levels 6", Usage: "give an image a new pyramid in place"},
		},
		Run: cli.Do(runOme),
	}
}

func runOme(ctx context.Context, r *cli.Run) error {
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
	if err := omeFlags(r, &spec, len(a.Shape())); err != nil {
		return err
	}
	if r.Arg("OUT") == "" {
		return omeInPlace(ctx, r, in, spec, missing)
	}
	order, err := reorder(r, &spec)
	if err != nil {
		return err
	}
	return writeImage(ctx, r, in, s, spec, source{Array: a, order: order})
}

// source is the array of which level 0 of an image is made.
type source struct {
	*zarr.Array
	order  []int                             // its axes in the order of the image; nil: as they are
	change func(data []byte) ([]byte, error) // returns elements of the image's type; nil: converts them
}

// ordered returns numbers along the array's axes in the order of the image.
func (a *source) ordered(v []int) []int {
	if a.order == nil || v == nil {
		return v
	}
	out := make([]int, len(v))
	for i, d := range a.order {
		out[i] = v[d]
	}
	return out
}

// unordered undoes [source.ordered]. A wrong number of numbers stays.
func (a *source) unordered(v []int) []int {
	if a.order == nil || len(v) != len(a.order) {
		return v
	}
	out := make([]int, len(v))
	for i, d := range a.order {
		out[d] = v[i]
	}
	return out
}

// writeImage writes the image OUT from an array, described by spec and stored according to s.
func writeImage(ctx context.Context, r *cli.Run, in *node, s storage, spec ngff.ImageSpec, a source) error {
	out, err := zarrout.Create(ctx, r, r.Arg("OUT"))
	if err != nil {
		return err
	}
	return writeImageTo(ctx, r, out, "", in, s, spec, a)
}

// writeImageTo writes an image at a key of an output.
func writeImageTo(ctx context.Context, r *cli.Run, out *zarrout.Output, key string, in *node, s storage, spec ngff.ImageSpec, a source) error {
	s.chunks, s.shard = a.unordered(s.chunks), a.unordered(s.shard)
	stored, err := s.spec(a.Array, nil)
	if err != nil {
		return err
	}
	spec.Format, spec.Shape, spec.Chunks, spec.Shard = stored.Format, a.ordered(stored.Shape), a.ordered(stored.Chunks), a.ordered(stored.Shard)
	spec.DType, spec.Codecs, spec.Fill, spec.OmitFill = stored.DType, stored.Codecs, stored.Fill, s.omitFill
	spec.Levels, spec.Workers, spec.Budget, spec.Meter = r.Options.Levels, 1, r.Options.Mem/2, r.Meter
	w, err := ngff.Create(ctx, out.Store, key, spec)
	if err != nil {
		return cli.BadInput(err)
	}
	defer w.Abort()
	for _, m := range w.Warnings() {
		r.Warn("%s", m)
	}
	task := r.Progress("level 0 and pyramid", datasets.Bytes(a.Array))
	unit := stored.Chunks
	if stored.Shard != nil {
		unit = stored.Shard
	}
	if a.change == nil {
		a.change = func(data []byte) ([]byte, error) { return converted(data, a.Array, spec.DType) }
	}
	err = eachBlock(ctx, a.Array, a.order, unit, r.Options.Threads, r.Options.Mem/4, func(ctx context.Context, region zarr.Region, data []byte) error {
		n := int64(len(data))
		data, err := a.change(data)
		if err != nil {
			return err
		}
		task.Add(n)
		return w.WriteTile(ctx, a.ordered(region.Start), a.ordered(region.Shape), data)
	})
	if err != nil {
		return cli.BadInput(err)
	}
	if err := w.Close(ctx); err != nil {
		return err
	}
	task.Done()
	r.Read(datasets.Describe(a.Array, in.path))
	image, err := ngff.Open(ctx, out.Store, key)
	if err != nil {
		return err
	}
	r.Wrote(datasets.DescribeImage(image, join(out.Path(), key)))
	return nil
}

// describeOme takes the description from the input: all of it from an image, or the dimension names from an array.
func describeOme(ctx context.Context, r *cli.Run, in *node, missing *zarr.Missing) (spec ngff.ImageSpec, a *zarr.Array, err error) {
	if array, ok := in.Node.(*zarr.Array); ok {
		if spec.Axes = ngff.AxesOf(array, "micrometer"); spec.Axes == nil {
			return spec, nil, cli.BadInputf("%s: has %d axes, an image has 2 to 5", in.path, len(array.Shape()))
		}
		spec.Scale = slices.Repeat([]float64{1}, len(spec.Axes))
		return spec, array, nil
	}
	im, err := ngff.OpenPresent(ctx, in.store, in.key, zarr.Workers(1), zarr.Meter(r.Meter), zarr.NoteMissing(missing))
	if err != nil {
		return spec, nil, cli.BadInput(err)
	}
	for _, m := range im.Warnings {
		r.Warn("%s", m)
	}
	level := im.Levels[0]
	spec = ngff.ImageSpec{Name: im.Name, Axes: im.Axes, Scale: level.Scale, Translation: level.Translation, Omero: im.Omero, Label: im.ImageLabel,
		Attributes: rawMap(im.Group.Attributes())}
	statedUnits(&spec, im)
	return spec, level.Array, nil
}

// statedUnits gives the axes of a spec the units of an image, as stated or guessed.
func statedUnits(spec *ngff.ImageSpec, im *ngff.Image) {
	spec.Axes = slices.Clone(im.Axes)
	for d, unit := range im.Unit {
		if unit != "" { // of space; a time keeps what it states
			spec.Axes[d].Unit = unit
		}
	}
}

// checkAxes returns an error for names that NGFF images cannot have: allowed are t, c, and two or three of z, y, x
// (in any order, for files of other programs), each once.
func checkAxes(flag, names string) error {
	space := strings.TrimPrefix(strings.TrimPrefix(names, "t"), "c")
	bad := len(space) < 2
	for i, a := range space {
		bad = bad || !strings.ContainsRune("zyx", a) || strings.ContainsRune(space[:i], a)
	}
	if bad {
		return cli.Usage("--%s %s: want letters of tczyx, each once: t first, then c, then at least two of z, y, x", flag, names)
	}
	return nil
}

// labelsFlag is that of commands that write an image with a pyramid.
var labelsFlag = cli.Flag{Name: "labels", Kind: cli.Bool, Usage: "the voxels are labels or a mask: pyramid levels take single voxels instead of means, and the metadata say so"}

// omeFlags applies --axes, --scale, --unit, --name and --labels.
func omeFlags(r *cli.Run, spec *ngff.ImageSpec, n int) error {
	if names := r.String("axes"); names != "" {
		if len(names) != n {
			return cli.Usage("--axes %s names %d axes, the array has %d", names, len(names), n)
		}
		if err := checkAxes("axes", names); err != nil {
			return err
		}
		named := ngff.SpaceAxes(names, "micrometer")
		for d, a := range spec.Axes { // the numbers of --scale, or the image's, stay in the unit that they have
			if a.Type == named[d].Type && a.Unit != "" {
				named[d].Unit = a.Unit
			}
		}
		spec.Axes = named
	}
	if scale := r.Floats("scale"); scale != nil {
		if len(scale) != n {
			return cli.Usage("--scale has %d numbers, the array has %d axes", len(scale), n)
		}
		spec.Scale, spec.Translation = scale, nil
	}
	if unit := r.String("unit"); unit != "" {
		if _, _, ok := ngff.Micrometres(unit); !ok {
			return cli.Usage("--unit %q is not a unit of length that NGFF knows (micrometer, millimeter, nanometer…)", unit)
		}
		for d := range spec.Axes {
			if spec.Axes[d].Type == ngff.TypeSpace {
				spec.Axes[d].Unit = unit
			}
		}
	}
	if name := r.String("name"); name != "" {
		spec.Name = name
	}
	if r.Bool("labels") {
		asLabels(spec)
	}
	return nil
}

// reorder puts the axes of a spec into the order of --order, and returns these axes as they were counted before; nil if
// nothing moves.
func reorder(r *cli.Run, spec *ngff.ImageSpec) (order []int, err error) {
	names, had := r.String("order"), ""
	if names == "" {
		return nil, nil
	}
	was := *spec
	spec.Axes, spec.Scale = nil, nil
	if was.Translation != nil {
		spec.Translation = nil
	}
	for _, a := range was.Axes {
		had += a.Name
	}
	for _, name := range names {
		d := slices.IndexFunc(was.Axes, func(a ngff.Axis) bool { return a.Name == string(name) })
		if d < 0 || slices.Contains(order, d) || len(names) != len(was.Axes) {
			return nil, cli.Usage("--order %s: must name the axes %s, each once", names, had)
		}
		order = append(order, d)
		spec.Axes, spec.Scale = append(spec.Axes, was.Axes[d]), append(spec.Scale, was.Scale[d])
		if was.Translation != nil {
			spec.Translation = append(spec.Translation, was.Translation[d])
		}
	}
	if err := checkAxes("order", names); err != nil {
		return nil, err
	}
	if slices.IsSorted(order) {
		return nil, nil
	}
	return order, nil
}

// asLabels makes a label image of a spec, unless it is one.
func asLabels(spec *ngff.ImageSpec) {
	if spec.Label == nil {
		spec.Label, spec.Omero = &ngff.ImageLabel{}, nil // the contrast of intensities says nothing of labels
	}
}

// omeInPlace writes the pyramid into an existing image or, given an array, makes an image of the folder above it.
func omeInPlace(ctx context.Context, r *cli.Run, in *node, spec ngff.ImageSpec, missing *zarr.Missing) error {
	for _, name := range []string{"codec", "checksum", "chunks", "shard", "zarr_format", "dtype", "separator", "omit_fill", "overwrite", "order"} {
		if r.IsSet(name) {
			return cli.Usage("--%s: level 0 of %s is not rewritten in place: give OUT as well", name, in.path)
		}
	}
	st, ok := in.store.(store.Writer)
	if !ok || in.key != "" {
		return cli.Usage("OUT is missing: %s is not a folder, and cannot be changed in place", in.path)
	}
	o := ngff.PyramidOptions{Levels: r.Options.Levels, Workers: r.Options.Threads, Budget: r.Options.Mem / 2, Meter: r.Meter, Missing: missing}
	_, local := in.store.(*store.FolderStore)
	folder, name := in.path, ""
	if a, isArray := in.Node.(*zarr.Array); isArray {
		if !local {
			return cli.Usage("OUT is missing: the group around the array %s cannot be changed in place", in.path)
		}
		path, err := filepath.Abs(in.path)
		if err != nil {
			return err
		}
		a.Close()
		folder, name = filepath.Dir(path), filepath.Base(path)
	} else {
		for _, flag := range []string{"axes", "scale", "unit", "name", "labels"} {
			if r.IsSet(flag) {
				return cli.Usage("--%s: the metadata of %s is not changed in place: give OUT as well", flag, in.path)
			}
		}
	}
	if local {
		if err := r.Change(folder); err != nil {
			return err
		}
		st = store.Folder(folder, store.Sync(r.Options.Sync))
	}
	var warnings []string
	var err error
	if name != "" {
		warnings, err = ngff.Adopt(ctx, st, "", name, ngff.Adoption{Name: spec.Name, Axes: spec.Axes, Scale: spec.Scale, Translation: spec.Translation, Label: spec.Label}, o)
	} else {
		warnings, err = ngff.RebuildPyramid(ctx, st, "", o)
	}
	for _, w := range warnings {
		r.Warn("%s", w)
	}
	if err != nil {
		return cli.BadInput(err)
	}
	r.Conclude("made the levels below level 0 of %s anew", folder)
	return nil
}
