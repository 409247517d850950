// Package align implements the command align, which registers a volume to a template.
package align

import (
	"context"
	"io"
	"math"
	"os"
	"slices"

	"strata/pkg/atomic"
	"strata/pkg/cli"
	"strata/pkg/cli/datasets"
	"strata/pkg/cli/stage"
	"strata/pkg/cli/zarrout"
	"strata/pkg/ngff"
	"strata/pkg/oct/align"
	"strata/pkg/registration"
	"strata/pkg/volumes"
	"strata/pkg/zarr"
	"strata/pkg/zarr/store"
)

// Command returns the command align.
func Command() *cli.Command {
	o := align.DefaultOptions()
	return &cli.Command{
		Name:  "align",
		Usage: "register a volume to a template",
		Description: "Finds the rotation and translation that lay a volume on a template of another contrast, such as an atlas, by their\n" +
			"mutual information (Mattes et al. 2003), and resamples the volume at full resolution on the template's axes: z runs\n" +
			"to superior, y to anterior, x to right (RAS).\n\n" +
			"Letters say where the axes z, y and x of IN run to: --input_orientation IAR is a volume whose planes go down. The\n" +
			"registration holds a pyramid level of each image in memory. OUT is float32, with a pyramid as stack writes it. Writes\n" +
			"the transform beside OUT as NAME_transform.tfm (ITK, mm, from the template to the volume in its orientation), and\n" +
			"metrics as NAME_metrics.json.",
		Args: []cli.Arg{
			{Name: "IN", Usage: "OME-Zarr volume (z, y, x): folder, .zip file, TIFF file, or http(s):// or s3:// URL"},
			{Name: "OUT", Usage: "OME-Zarr image to write: folder or s3://bucket/path; none with --store_transform_only, and not written with --start_only", Optional: true},
		},
		Shared: cli.Stage &^ cli.GPU,
		Hints: cli.Hints{"chunks": {Value: "Z,Y,X", Note: "8,256,256"}, "shard": {Value: "Z,Y,X", Note: "no shards"},
			"n_levels": {Note: "all of --pyramid_resolutions"}},
		Flags: flags(&o),
		Aliases: []cli.Alias{{Name: "linum-align-to-ras", Defaults: cli.Defaults{"overwrite": "true"},
			Flags: map[string]string{"orientation_preview": "start_preview", "orientation_preview_only": "start_only"}, Ignored: []cli.Flag{
				{Name: "allen_resolution", Kind: cli.Int, Ignored: "the template is that of --template"},
				{Name: "metric", Ignored: "align maximises mutual information"},
			}}},
		Examples: []cli.Example{
			{Command: "align brain.ome.zarr brain_ras.ome.zarr --template atlas_25um.ome.zarr --input_orientation ILP", Usage: "lay a brain on an atlas"},
			{Command: "align brain.ome.zarr brain_ras.ome.zarr --template atlas.tif --initial_rotation 0,0,90 --grid whole", Usage: "start with a quarter turn about z; keep what lies outside the atlas"},
			{Command: "align brain.ome.zarr brain_ras.ome.zarr --template atlas.ome.zarr --preview brain_ras.png", Usage: "with a picture to check it by"},
			{Command: "align brain.ome.zarr --template atlas.ome.zarr --input_orientation ILP --initial_rotation 0,0,90 --start_preview start.png --start_only", Usage: "look whether the orientation is right before anything is registered; prints the mutual information, to compare starts by"},
			{Command: "align brain.ome.zarr brain_ras.ome.zarr --template atlas.nii.gz", Usage: "an atlas as NIfTI, which says where its axes run to"},
			{Command: "align brain.ome.zarr --template atlas.ome.zarr --store_transform_only --out_transform brain.tfm", Usage: "only find the transform, and note it in the volume's metadata"},
		},
		Run: cli.Do(func(ctx context.Context, r *cli.Run) error { return run(ctx, r, o) }),
	}
}

// statedOrientation returns where the axes z, y and x of an image run to if it says so, as one from NIfTI or NRRD does,
// or else the usual letters.
func statedOrientation(im *ngff.Image, usual string) string {
	w := volumes.WorldOf(im.Group.Attributes())
	if w == nil {
		return usual
	}
	xyz := w.Affine.Orientation()
	return string([]byte{xyz[2], xyz[1], xyz[0]})
}

// flags returns the flags of the options and of files.
func flags(o *align.Options) []cli.Flag {
	const letters = "three letters, one of R and L, one of A and P, one of S and I"
	return slices.Concat([]cli.Flag{
		{Name: "template", Value: "FILE", Usage: "image to lay the volume on: OME-Zarr, NIfTI, NRRD, TIFF or CZI"},
		cli.Bind(&o.Orientation, cli.Flag{Name: "input_orientation", Value: "CODE", Usage: "where the axes z, y and x of IN run to, if it does not say: " + letters}),
		cli.Bind(&o.TemplateOrientation, cli.Flag{Name: "template_orientation", Value: "CODE", Usage: "where the axes z, y and x of the template run to, if it does not say: " + letters}),
		cli.Bind(&o.Level, cli.Flag{Name: "level", Check: cli.Between(0, 30), Usage: "pyramid level of IN to register; a coarser one if --mem does not hold it"}),
		{Name: "initial_rotation", Kind: cli.Floats, Value: "DEG", Note: "0,0,0", Check: cli.Between(-360, 360), Usage: "rotation about x, y and z to start with, in degrees, about the centre of the template"},
		cli.Bind(&o.Iterations, cli.Flag{Name: "max_iterations", Check: cli.Between(1, 1e6), Usage: "maximum number of steps at each of four resolutions"}),
		cli.Bind(&o.Grid, cli.Flag{Name: "grid", Choices: align.Grids, Usage: "box of OUT: the template's, or the smallest one that holds the whole volume"}),
		{Name: "out_transform", Value: "FILE", Note: "beside OUT", Usage: "write the transform to FILE"},
		{Name: "preview", Value: "FILE", Usage: "write a PNG of three sections of the template, of the volume laid on it, and of both on a checkerboard"},
		{Name: "start_preview", Value: "FILE", Usage: "write such a PNG of the start, with --input_orientation and --initial_rotation applied, before anything is registered"},
		{Name: "start_only", Kind: cli.Bool, Usage: "write only --start_preview, register nothing"},
		{Name: "store_transform_only", Kind: cli.Bool, Usage: "write no image, but note the transform in the metadata of IN"},
	}, stage.Pyramid(&o.Analysis, "the volume"))
}

func run(ctx context.Context, r *cli.Run, o align.Options) error {
	o.Rotation = r.Floats("initial_rotation")
	only, startOnly := r.Bool("store_transform_only"), r.Bool("start_only")
	switch {
	case r.String("template") == "":
		return cli.Usage("no template: give --template FILE")
	case startOnly && r.String("start_preview") == "":
		return cli.Usage("--start_only writes only a picture: give --start_preview FILE")
	case startOnly:
	case only && r.Arg("OUT") != "":
		return cli.Usage("--store_transform_only writes no image: leave out OUT")
	case !only && r.Arg("OUT") == "":
		return cli.Usage("missing OUT: give it, or --store_transform_only")
	}
	in, err := stage.Open(ctx, r, r.Arg("IN"))
	if err != nil {
		return err
	}
	template, err := stage.Open(ctx, r, r.String("template"))
	if err != nil {
		return err
	}
	if !r.IsSet("input_orientation") {
		o.Orientation = statedOrientation(in, o.Orientation)
	}
	if !r.IsSet("template_orientation") {
		o.TemplateOrientation = statedOrientation(template, o.TemplateOrientation)
	}
	first, err := r.OptionalFile("start_preview")
	if err != nil {
		return err
	}
	o.StartPreview = first != nil
	if startOnly {
		return drawStart(ctx, r, in, template, o, first)
	}
	to, err := start(ctx, r, only)
	if err != nil {
		return err
	}
	picture, err := r.OptionalFile("preview")
	if err != nil {
		return err
	}
	o.Preview = picture != nil
	task := r.Progress("align", datasets.Bytes(in.Levels[0].Array))
	result, err := align.Run(ctx, in, template, to.image, o, stage.PyramidLayout(r, o.Analysis), stage.Resources(r, task))
	if err != nil {
		return stage.Failed(err)
	}
	if err := to.transform.Write(func(w io.Writer) error { return registration.WriteEuler3D(w, &result.Transform.Euler) }); err != nil {
		return err
	}
	if err := picture.Write(result.WritePreview); err != nil {
		return err
	}
	if err := first.Write(result.WriteStartPreview); err != nil {
		return err
	}
	step := result.Metrics(stage.Shown(r.Arg("IN")), stage.Shown(r.String("template")), stage.Shown(r.Arg("OUT")))
	if err := stage.WriteMetrics(r, to.metrics, step); err != nil {
		return err
	}
	if only {
		if err := note(ctx, r, result, o); err != nil {
			return err
		}
	}
	task.Done()
	t := result.Transform
	r.Conclude("turned by %.2f, %.2f and %.2f° about x, y and z; mutual information %.3f, %.3f at the start", t.Angles[0]*degrees, t.Angles[1]*degrees, t.Angles[2]*degrees, t.Information, t.Before)
	r.Read(datasets.DescribeImage(in, r.Arg("IN")))
	r.Read(datasets.DescribeImage(template, r.String("template")))
	if result.Image != nil {
		r.Wrote(datasets.DescribeImage(result.Image, r.Arg("OUT")))
	}
	return nil
}

const degrees = 180 / math.Pi

// drawStart draws how the volume lies on the template when the registration starts.
func drawStart(ctx context.Context, r *cli.Run, in, template *ngff.Image, o align.Options, picture *atomic.Output) error {
	task := r.Progress("align", datasets.Bytes(in.Levels[0].Array))
	result, err := align.Start(ctx, in, template, o, stage.Resources(r, task))
	if err != nil {
		return stage.Failed(err)
	}
	if err := picture.Write(result.WriteStartPreview); err != nil {
		return err
	}
	task.Done()
	t := result.Transform
	r.Conclude("starts turned by %.4g, %.4g and %.4g° about x, y and z, with %.3g %% of the template's box in the volume; mutual information %.3f", t.Angles[0]*degrees, t.Angles[1]*degrees, t.Angles[2]*degrees, 100*t.Share, t.Information)
	r.Read(datasets.DescribeImage(in, r.Arg("IN")))
	r.Read(datasets.DescribeImage(template, r.String("template")))
	return nil
}

// outputs holds the files that a run writes; those that are nil are not written.
type outputs struct {
	image              store.Writer
	transform, metrics *atomic.Output
}

// start starts the outputs.
func start(ctx context.Context, r *cli.Run, only bool) (o outputs, err error) {
	if only {
		if info, err := os.Stat(r.Arg("IN")); err != nil || !info.IsDir() {
			return o, cli.Usage("--store_transform_only: %s is no folder: only the metadata of a local OME-Zarr folder can be changed", r.Arg("IN"))
		}
		if err := r.Change(r.Arg("IN")); err != nil {
			return o, err
		}
		o.transform, err = r.OptionalFile("out_transform")
		return o, err
	}
	out, err := zarrout.Create(ctx, r, r.Arg("OUT"))
	if err != nil {
		return o, err
	}
	o.image = out.Store
	if o.metrics, err = stage.Metrics(r, r.Arg("OUT")); err != nil {
		return o, err
	}
	switch name := r.String("out_transform"); {
	case name != "":
		o.transform, err = r.OutputFile(name)
	case cli.InBucket(r.Arg("OUT")):
		r.Warn("no transform is written beside an output in a bucket: give --out_transform FILE")
	default:
		o.transform, err = r.OutputFile(stage.Stem(r.Arg("OUT")) + "_transform.tfm")
	}
	return o, err
}

// Attribute is the name of the attribute of a volume's group that holds its transform.
const Attribute = "strata_align"

// note stores the transform in the metadata of the input.
func note(ctx context.Context, r *cli.Run, result *align.Result, o align.Options) error {
	n, err := zarr.Open(ctx, store.Folder(r.Arg("IN"), store.Sync(r.Options.Sync)), "", zarr.Workers(1))
	if err != nil {
		return cli.BadInput(err)
	}
	g, ok := n.(*zarr.Group)
	if _, err := ngff.ReadMetadata(g); !ok || err != nil {
		return cli.Usage("--store_transform_only: %s is no OME-Zarr folder: only the metadata of one can be changed", r.Arg("IN"))
	}
	matrix, offset := result.Transform.Affine()
	var rows [][]float64
	for d, row := range matrix {
		rows = append(rows, append(row[:], offset[d]))
	}
	all := map[string]any{}
	for k, v := range g.Attributes() {
		all[k] = v
	}
	all[Attribute] = map[string]any{
		"template": stage.Shown(r.String("template")), "template_orientation": o.TemplateOrientation, "orientation": o.Orientation,
		"unit": "millimeter", "axes": "xyz", "template_to_volume": rows,
	}
	return g.SetAttributes(ctx, all)
}
