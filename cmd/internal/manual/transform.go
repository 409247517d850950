package manual

import (
	"context"
	"path/filepath"

	"strata/pkg/cli"
	"strata/pkg/cli/datasets"
	"strata/pkg/cli/stage"
	"strata/pkg/cli/zarrout"
	"strata/pkg/filter"
	"strata/pkg/oct/transform"
	"strata/pkg/registration"
)

func transformCommand() *cli.Command {
	return &cli.Command{
		Name:  "transform",
		Usage: "move slices in their plane by the transforms that were found for them",
		Description: "Writes each slice of SLICES into OUT under its name, moved by its transform in TRANSFORMS: a folder per slice with its\n" +
			"number in the name (slice_z04) and a .tfm file of ITK, as register, manual apply and linumpy write it, and the\n" +
			"displacements of register --elastic. A slice without a transform is not moved.\n\n" +
			"A transform lays a slice on the slice before it, as that was imaged. --accumulate also moves it by the transforms of\n" +
			"all slices before it, so that all lie on the first. Planes stay where they are along z: stack puts them together.",
		Args: []cli.Arg{
			{Name: "SLICES", Usage: "folder of slices slice_z<NN>*.ome.zarr, or its address in a bucket"},
			{Name: "TRANSFORMS", Usage: "folder of their transforms"},
			{Name: "OUT", Usage: "folder to write the moved slices into"},
		},
		Flags: []cli.Flag{
			{Name: "accumulate", Kind: cli.Bool, Usage: "also move a slice by the transforms of the slices before it"},
			{Name: "elastic", Kind: cli.Bool, Default: "true", Usage: "apply displacements where TRANSFORMS has them; not with --accumulate"},
			{Name: "fill", Kind: cli.Float, Default: "0", Value: "VALUE", Usage: "value of the pixels that lie outside of a slice"},
		},
		Shared: cli.Inputs | cli.Resources | cli.Outputs | cli.Layout | cli.Pyramid,
		Examples: []cli.Example{
			{Command: "manual transform slices registered moved", Usage: "each slice laid on the slice before it"},
			{Command: "manual transform slices by-hand/transforms moved --accumulate", Usage: "all slices on the first, by transforms made by hand"},
		},
		Run: cli.Do(runTransform),
	}
}

func runTransform(ctx context.Context, r *cli.Run) error {
	if _, err := r.LocalInput(r.Arg("TRANSFORMS")); err != nil {
		return err
	}
	if r.Bool("accumulate") && r.IsSet("elastic") && r.Bool("elastic") {
		return cli.Usage("--elastic: displacements are those of one pair, and are not accumulated: leave out --accumulate")
	}
	all, err := stage.OpenSlices(ctx, r, r.Arg("SLICES"), false)
	if err != nil {
		return err
	}
	folder, err := registration.OpenFolder(r.Arg("TRANSFORMS"))
	if err != nil {
		return cli.BadInput(err)
	}
	before, moved := filter.Rigid{}, 0
	for _, s := range all {
		m, found, err := motionOf(ctx, r, folder, s.ID)
		if err != nil {
			return err
		}
		if found {
			moved++
		}
		if r.Bool("accumulate") {
			m.Warp = nil
			before = before.Followed(m.Rigid)
			m.Rigid = before
		}
		if err := moveSlice(ctx, r, s, m); err != nil {
			return err
		}
	}
	if moved == 0 {
		return cli.BadInputf("%s: no transform for any slice of %s: want folders with the numbers of slices, such as slice_z04, that hold a .tfm file", r.Arg("TRANSFORMS"), r.Arg("SLICES"))
	}
	r.Conclude("%d slices, %d with a transform of their own", len(all), moved)
	return nil
}

// motionOf reads the transform of a slice; found is false if there is none.
func motionOf(ctx context.Context, r *cli.Run, folder *registration.Folder, id int) (m transform.Motion, found bool, err error) {
	pair, warnings, err := folder.Pair(ctx, id)
	if err != nil {
		return m, false, cli.BadInput(err)
	}
	for _, w := range warnings {
		r.Warn("%s", w)
	}
	if pair == nil || pair.Transform == nil {
		return m, false, nil
	}
	m.Rigid = *pair.Transform
	if r.Bool("elastic") {
		m.Warp = pair.Elastic
	}
	return m, true, nil
}

// moveSlice writes one slice.
func moveSlice(ctx context.Context, r *cli.Run, s stage.Slice, m transform.Motion) error {
	path := filepath.Join(r.Arg("OUT"), filepath.Base(s.Path))
	out, err := zarrout.Create(ctx, r, path)
	if err != nil {
		return err
	}
	task := r.Progress(filepath.Base(s.Path), datasets.Bytes(s.Image.Levels[0].Array))
	image, err := transform.Run(ctx, s.Image, out.Store, m, float32(r.Float("fill")), stage.Layout(r), stage.Resources(r, task))
	if err != nil {
		return stage.Failed(err)
	}
	task.Done()
	r.Wrote(datasets.DescribeImage(image, path))
	return nil
}
