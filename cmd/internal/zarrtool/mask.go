package zarrtool

import (
	"context"
	"fmt"
	"math"
	"strings"

	"strata/pkg/cli"
	"strata/pkg/cli/datasets"
	"strata/pkg/cli/stage"
	"strata/pkg/dtype"
	"strata/pkg/ngff"
	"strata/pkg/oct/blocks"
	"strata/pkg/oct/mask"
	"strata/pkg/volumes"
	"strata/pkg/zarr"
	"strata/pkg/zarr/store"
)

func maskCommand() *cli.Command {
	return &cli.Command{
		Name:  "mask",
		Usage: "make a mask of the specimen in a volume",
		Description: "Writes 1 where the specimen is and 0 around it. The mask is made of one pyramid level of IN and has its voxels: the\n" +
			"level closest to --resolution unless --level names one. The level is smoothed, and what reaches Otsu's threshold of the\n" +
			"voxels above 0 is specimen; only the largest connected part stays, and its holes are filled.\n\n" +
			"OUT is an OME-Zarr label image, which viewers lay over IN by its voxel size, or by its name a volume: .nii, .nii.gz\n" +
			"or .nrrd.",
		Args: []cli.Arg{
			{Name: "IN", Usage: "OME-Zarr image with axes z, y, x, TIFF stack, NIfTI or NRRD: folder, .zip file, file or URL"},
			{Name: "OUT", Usage: "OME-Zarr label image to write, or a file such as mask.nii.gz"},
		},
		Flags: []cli.Flag{
			{Name: "level", Kind: cli.Int, Default: "-1", Note: "that of --resolution", Check: cli.AtLeast(0), Usage: "pyramid level of IN to make the mask of"},
			{Name: "resolution", Kind: cli.Float, Default: "25", Value: "UM", Check: cli.VoxelSize, Usage: "make the mask of the pyramid level whose voxels are closest to this size in µm"},
			{Name: "smoothing", Kind: cli.Float, Default: "30", Value: "UM", Check: cli.Between(0, 1e6), Usage: "standard deviation in µm of the Gaussian before the threshold; 0 smooths nothing"},
			{Name: "threshold", Kind: cli.Float, Value: "VALUE", Note: "Otsu's", Usage: "smoothed voxels of this value and above are specimen"},
			{Name: "largest", Kind: cli.Bool, Default: "true", Usage: "keep only the largest connected part"},
			{Name: "fill", Choices: []string{string(mask.NoHoles), string(mask.Volume), string(mask.Planes)}, Default: string(mask.Volume),
				Usage: "holes to fill: none, what the specimen encloses in the volume, or also what it encloses in a plane along any two axes"},
			{Name: "median", Kind: cli.Int, Default: "1", Value: "N", Check: odd, Usage: "smooth the mask by a median over N × N × N voxels, an odd number; 1 leaves it as it is"},
			axesFlag, orientationFlag,
		},
		Shared: cli.Inputs | cli.Resources | cli.Outputs | cli.Layout | cli.Pyramid,
		Hints:  cli.Hints{"chunks": {Value: "N,...", Note: "the input's"}, "shard": {Value: "N,...", Note: "no shards"}},
		Examples: []cli.Example{
			{Command: "zarr-tool mask brain.ome.zarr brain_mask.ome.zarr", Usage: "at about 25 µm"},
			{Command: "zarr-tool mask brain.ome.zarr brain_mask.nii.gz --resolution 50", Usage: "for ANTs, FSL, 3D Slicer"},
			{Command: "zarr-tool mask brain.ome.zarr mask.ome.zarr --threshold 120 --no-largest", Usage: "a threshold of one's own; several pieces of tissue"},
			{Command: "view brain.ome.zarr --overlay brain_mask.ome.zarr", Usage: "look at it"},
		},
		Run: cli.Do(runMask),
	}
}

// odd checks a window.
func odd(v any) error {
	if n := v.(int); n < 1 || n > 99 || n%2 == 0 {
		return fmt.Errorf("must be an odd number from 1 to 99")
	}
	return nil
}

// maskFlags returns an error for a flag of formats other than the output's.
func maskFlags(r *cli.Run) error {
	others, format := []string{"chunks", "shard", "codec", "checksum", "zarr_format", "n_levels"}, "OME-Zarr"
	if volumeFormat(r.Arg("OUT")) == nil {
		others, format = []string{axesFlag.Name, orientationFlag.Name}, "NIfTI and NRRD"
	}
	for _, flag := range others {
		if r.IsSet(flag) {
			return cli.Usage("--%s is for %s, and %s is none", flag, format, r.Arg("OUT"))
		}
	}
	if r.IsSet("level") && r.IsSet("resolution") {
		return cli.Usage("--resolution contradicts --level: give one of them")
	}
	return nil
}

func runMask(ctx context.Context, r *cli.Run) error {
	if err := maskFlags(r); err != nil {
		return err
	}
	in, err := openNode(ctx, r, r.Arg("IN"), datasets.Missing(r))
	if err != nil {
		return err
	}
	im, err := ngff.OpenPresent(ctx, in.store, in.key, zarr.Workers(1), zarr.Meter(r.Meter))
	if err != nil {
		return cli.BadInput(err)
	}
	for _, m := range im.Warnings {
		r.Warn("%s", m)
	}
	level := r.Int("level")
	if level < 0 || r.IsSet("resolution") {
		level = closestLevel(im, r.Float("resolution"))
	}
	if err := checkLevel(in, im, "level", level); err != nil {
		return err
	}
	whole, err := blocks.Open(im)
	if err != nil {
		return stage.Failed(err)
	}
	o := mask.Options{Smoothing: r.Float("smoothing"), Threshold: math.NaN(), Largest: r.Bool("largest"), Fill: mask.Fill(r.String("fill")), Median: r.Int("median")}
	passes := int64(2)
	if r.IsSet("threshold") {
		o.Threshold, passes = r.Float("threshold"), 1
	}
	v := whole.Level(level)
	task := r.Progress("mask", passes*v.Bytes())
	res := stage.Resources(r, task)
	res = res.Less(res.Mem / 2) // which writing uses
	found, err := mask.Find(ctx, v, o, res)
	if err != nil {
		return stage.Failed(err)
	}
	task.Done()
	r.Conclude("level %d, %s", level, found)
	return writeMask(ctx, r, in, im, level, found)
}

// writeMask writes the mask of a level as OME-Zarr or as a volume.
func writeMask(ctx context.Context, r *cli.Run, in *node, im *ngff.Image, level int, found *mask.Result) error {
	l := im.Levels[level]
	spec := ngff.ImageSpec{Format: l.Array.Format(), Name: strings.TrimSpace(im.Name + " mask"), Shape: l.Array.Shape(), Chunks: l.Array.Chunks(), DType: dtype.Uint8,
		Axes: im.Axes, Scale: l.Scale, Translation: l.Translation, Workers: 1,
		Label: &ngff.ImageLabel{Colors: []ngff.LabelColor{{Value: 1, RGBA: [4]uint8{0, 200, 120, 255}}}}}
	statedUnits(&spec, im)
	if volumes.WorldOf(im.Group.Attributes()) != nil {
		affine, codes, err := placeOf(r, im, level, map[string]int{"z": 0, "y": 1, "x": 2})
		if err != nil {
			return err
		}
		spec.Attributes = map[string]any{volumes.WorldKey: volumes.World{Affine: affine, Unit: "millimeter", Space: "RAS", Codes: codes}}
	}
	st := store.Memory()
	w, err := ngff.Create(ctx, st, "", spec)
	if err != nil {
		return cli.BadInput(err)
	}
	defer w.Abort()
	if err := w.WriteTile(ctx, make([]int, len(spec.Shape)), spec.Shape, found.Voxels); err != nil {
		return err
	}
	if err := w.Close(ctx); err != nil {
		return err
	}
	made, err := ngff.Open(ctx, st, "", zarr.Workers(r.Options.Threads))
	if err != nil {
		return err
	}
	if format := volumeFormat(r.Arg("OUT")); format != nil {
		return exportVolume(ctx, r, in, made, levelFile{0, r.Arg("OUT")}, format)
	}
	s := storage{format: r.Options.ZarrFormat, codec: r.Options.Codec, chunks: r.Options.Chunks, shard: r.Options.Shard}
	return writeImage(ctx, r, in, s, spec, source{Array: made.Levels[0].Array})
}
