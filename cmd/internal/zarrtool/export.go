package zarrtool

import (
	"context"
	"strings"

	"strata/pkg/cli"
	"strata/pkg/cli/datasets"
	"strata/pkg/cli/tiffout"
	"strata/pkg/dtype"
	"strata/pkg/ngff"
	"strata/pkg/tiff"
	"strata/pkg/tiff/tiffwriter"
	"strata/pkg/zarr"
)

func exportCommand() *cli.Command {
	return &cli.Command{
		Name:  "export",
		Usage: "write an image as a pyramidal OME-TIFF file, or a volume as NIfTI or NRRD",
		Description: "OUT's name says the format: .nii, .nii.gz and .nrrd are volumes, others TIFF. --levels writes a file for each of\n" +
			"several pyramid levels: brain.nii.gz becomes brain_level2_40um.nii.gz for level 2 with voxels of 40 µm, or\n" +
			"brain_level2_40x20x20um.nii.gz where they are longer along z. --list shows what there is.\n\n" +
			"As TIFF, writes a level of IN in tiles, and below it levels of half the size, each pixel the mean of 2 × 2. Pixel size,\n" +
			"channels, magnification and name become OME-XML; pictures beside the image (label, macro, thumbnail) follow it.\n" +
			"Channels that are red, green and blue become the samples of RGB pixels. Files that may exceed 4 GiB are written as\n" +
			"BigTIFF.\n\n" +
			"As NIfTI or NRRD, writes one level with its place in space, in mm along right, anterior and superior: the place that\n" +
			"IN was imported with, or else that of its voxel size and translation, with x, y and z running as --orientation says.\n" +
			"An axis of more than 32,767 voxels makes it NIfTI-2.",
		Args: []cli.Arg{
			{Name: "IN", Usage: "OME-Zarr image or TIFF file: folder, .zip file, file or URL"},
			{Name: "OUT", Usage: "file to write, such as image.ome.tif, volume.nii.gz or volume.nrrd; none with --list", Optional: true},
		},
		Flags: []cli.Flag{
			{Name: "tile_size", Kind: cli.Int, Default: "512", Value: "PX", Check: cli.Between(16, 1<<14), Usage: "width and height of the tiles in pixels, a multiple of 16, 16 to 16384"},
			{Name: "compression", Default: "zstd", Value: "NAME[:LEVEL]", Usage: "compression of the tiles: none, zstd (not read by all programs), deflate, lzw, or jpeg:QUALITY for 8-bit pixels"},
			{Name: "predictor", Kind: cli.Bool, Default: "true", Usage: "store differences of neighbouring pixels where that helps the compression"},
			{Name: "n_levels", Kind: cli.Int, Note: "until a level fits into one tile", Check: cli.Between(0, 30), Usage: "number of pyramid levels below level 0, 0 to 30"},
			{Name: "rgb", Default: "auto", Choices: []string{"auto", "yes", "no"}, Usage: "store three or four channels as the samples of RGB pixels; auto does so if they are red, green and blue"},
			{Name: "name", Note: "the image's", Usage: "name of the image in the OME-XML, or in the header of NIfTI"},
			associatedFlag,
			{Name: "level", Kind: cli.Int, Default: "0", Check: cli.AtLeast(0), Usage: "pyramid level to write"},
			{Name: "levels", Kind: cli.Ints, Value: "N,...", Check: cli.AtLeast(0), Usage: "pyramid levels to write, each into a file of its own"},
			{Name: "resolution", Kind: cli.Float, Value: "UM", Check: cli.VoxelSize, Usage: "write the pyramid level whose voxels are closest to this size in µm"},
			{Name: "list", Kind: cli.Bool, Usage: "write no file; print the pyramid levels with their shapes and voxel sizes"},
			axesFlag, orientationFlag,
		},
		Shared: cli.Inputs | cli.Resources | cli.Outputs,
		Examples: []cli.Example{
			{Command: "zarr-tool export scan.ome.zarr scan.ome.tif --compression jpeg:90", Usage: "a slide for QuPath"},
			{Command: "zarr-tool export volume.ome.zarr volume.ome.tif --compression deflate", Usage: "a volume that any program reads"},
			{Command: "zarr-tool export volume.ome.zarr brain.nii.gz --resolution 25", Usage: "the level of about 25 µm for FSL, ANTs, 3D Slicer"},
			{Command: "zarr-tool export volume.ome.zarr --list", Usage: "which levels there are"},
			{Command: "zarr-tool export volume.ome.zarr brain.nii.gz --levels 0,2", Usage: "two levels, as brain_level0_10um.nii.gz and brain_level2_40um.nii.gz"},
			{Command: "zarr-tool export volume.ome.zarr brain_zyx.nii.gz --axes zyx", Usage: "array axes z, y, x for who indexes nibabel's array so"},
			{Command: "zarr-tool export volume.ome.zarr brain.nrrd --orientation LPS", Usage: "x runs to the left, y to posterior, z to superior"},
		},
		Run: cli.Do(runExport),
	}
}

// Flags of commands that write a volume.
var (
	axesFlag        = cli.Flag{Name: "axes", Value: "NAMES", Default: "xyz", Usage: "axes of IN that become the first, second and third of NIfTI or NRRD, the first varying fastest; zyx is the order of numpy"}
	orientationFlag = cli.Flag{Name: "orientation", Default: "RAS", Value: "CODE", Usage: "where x, y and z of IN run to, if it does not say: right or left, anterior or posterior, superior or inferior"}
)

func runExport(ctx context.Context, r *cli.Run) error {
	in, err := openNode(ctx, r, r.Arg("IN"), datasets.Missing(r))
	if err != nil {
		return err
	}
	im, err := ngff.OpenPresent(ctx, in.store, in.key, zarr.Workers(r.Options.Threads), zarr.Budget(r.Options.Mem/4), zarr.Meter(r.Meter))
	if err != nil {
		return cli.BadInput(err)
	}
	if name := r.String("name"); name != "" {
		im.Name = name
	}
	files, err := exported(r, in, im)
	if err != nil {
		return err
	}
	if r.Bool("list") {
		return listLevels(r, im)
	}
	for _, f := range files {
		format := volumeFormat(f.path)
		switch err = otherFlags(r, f.path, format != nil); {
		case err != nil:
		case format != nil:
			err = exportVolume(ctx, r, in, im, f, format)
		default:
			err = exportTIFF(ctx, r, in, im, f)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// otherFlags returns an error for a flag of formats other than the output's.
func otherFlags(r *cli.Run, path string, volume bool) error {
	for _, flag := range []string{"tile_size", "compression", "predictor", "n_levels", "rgb"} {
		if volume && r.IsSet(flag) {
			return cli.Usage("--%s is for TIFF: %s is a volume", flag, path)
		}
	}
	for _, flag := range []string{orientationFlag.Name, axesFlag.Name} {
		if !volume && r.IsSet(flag) {
			return cli.Usage("--%s is for NIfTI and NRRD: %s is written as TIFF", flag, path)
		}
	}
	return nil
}

// exportTIFF writes one level of an image, and the pictures beside the image.
func exportTIFF(ctx context.Context, r *cli.Run, in *node, im *ngff.Image, f levelFile) error {
	x, err := newExport(r, in, im, f.level)
	if err != nil {
		return err
	}
	if err := x.addPictures(ctx, r, in); err != nil {
		return err
	}
	out, err := r.OutputFile(f.path)
	if err != nil {
		return err
	}
	task := r.Progress("export", datasets.Bytes(x.array))
	if err := tiffout.Write(ctx, r, out, x.spec, task, x.read); err != nil {
		return err
	}
	task.Done()
	r.Read(datasets.Describe(x.array, in.path))
	return nil
}

// export is an image being written to a TIFF file.
type export struct {
	array *zarr.Array
	at    map[string]int // axes by name
	spec  tiffwriter.Spec
}

// newExport plans the output of a level.
func newExport(r *cli.Run, in *node, im *ngff.Image, level int) (*export, error) {
	x := &export{array: im.Levels[level].Array, at: map[string]int{}}
	shape := x.array.Shape()
	for d, a := range im.Axes {
		if !strings.Contains("tczyx", a.Name) || len(a.Name) != 1 {
			return nil, cli.BadInputf("%s: axis %q: a TIFF image has axes of t, c, z, y, x", in.path, a.Name)
		}
		x.at[a.Name] = d
	}
	size := func(axis string) int {
		if d, ok := x.at[axis]; ok {
			return shape[d]
		}
		return 1
	}
	s := &x.spec
	s.Image = tiff.Image{Name: im.Name, Times: size("t"), Channels: size("c"), Depths: size("z"), Magnification: slideOf(im.Group.Attributes()).Magnification}
	voxel := im.LevelSize(level)
	for i, axis := range []string{"z", "y", "x"} {
		if d, ok := x.at[axis]; ok {
			s.Image.VoxelUM[i] = voxel[d]
		}
	}
	if d, ok := x.at["t"]; ok && im.Axes[d].Unit == "second" {
		s.Image.Interval = im.VoxelSize[d]
	}
	s.Width, s.Height, s.Type = size("x"), size("y"), x.array.DType()
	s.Image.ChannelInfo = channelInfo(im, s.Image.Channels)
	rgb := r.String("rgb")
	if c := s.Image.Channels; rgb == "yes" && c != 3 && c != 4 {
		return nil, cli.Usage("--rgb yes: %s has %d channels, RGB pixels have 3 or 4", in.path, c)
	} else if rgb == "yes" || rgb == "auto" && isRGB(s) {
		s.Samples, s.Image.Channels = c, 1
	}
	s.Tile, s.Software = r.Int("tile_size"), "strata"
	if err := compression(r, s); err != nil {
		return nil, err
	}
	s.Levels = tiffwriter.Levels(s.Width, s.Height, s.Tile)
	if r.IsSet("n_levels") {
		s.Levels = min(r.Int("n_levels"), tiffwriter.MaxLevels(s.Width, s.Height))
	}
	s.Workers, s.Budget, s.Planes = r.Options.Threads, r.Options.Mem/2, 1
	if d, ok := x.at["z"]; ok {
		s.Planes = x.array.Chunks()[d]
	}
	return x, nil
}

// channelInfo returns the image's description of its channels, or nil if it does not describe all of them.
func channelInfo(im *ngff.Image, channels int) []tiff.Channel {
	if im.Omero == nil || len(im.Omero.Channels) != channels {
		return nil
	}
	var info []tiff.Channel
	for _, c := range im.Omero.Channels {
		info = append(info, tiff.Channel{Name: c.Label, Color: c.Color})
	}
	return info
}

// isRGB reports whether the channels are red, green and blue (and opacity) of 8 bits.
func isRGB(s *tiffwriter.Spec) bool {
	if s.Type != dtype.Uint8 || len(s.Image.ChannelInfo) < 3 || len(s.Image.ChannelInfo) > 4 {
		return false
	}
	for i, color := range []string{"FF0000", "00FF00", "0000FF"} {
		if !strings.EqualFold(s.Image.ChannelInfo[i].Color, color) {
			return false
		}
	}
	return true
}

// compression parses --compression and --predictor.
func compression(r *cli.Run, s *tiffwriter.Spec) error {
	c, err := tiffwriter.ParseCompression(r.String("compression"))
	if err != nil {
		return cli.Usage("--compression: %w", err)
	}
	c.Apply(s, r.Bool("predictor"))
	return nil
}

// read fills a band from the array.
func (x *export) read(ctx context.Context, b *tiffwriter.Band) error {
	s := &x.spec
	region := x.array.Bounds()
	strides := make([]int, len(region.Start))
	elem := s.Type.Size()
	pixel := elem * max(s.Samples, 1)
	set := func(axis string, start, n, stride int) {
		if d, ok := x.at[axis]; ok {
			region.Start[d], region.Shape[d], strides[d] = start, n, stride
		}
	}
	set("t", b.Time, 1, 0)
	set("c", b.Channel, max(s.Samples, 1), elem)
	set("z", b.Depth, b.Depths, b.Rows*s.Width*pixel)
	set("y", b.Row, b.Rows, s.Width*pixel)
	set("x", 0, s.Width, pixel)
	return cli.BadInput(x.array.ReadStrided(ctx, region, b.Data, strides))
}
