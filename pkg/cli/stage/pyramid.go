package stage

import (
	"strata/pkg/cli"
	"strata/pkg/oct"
)

// Pyramid returns the flags of a stage that writes a pyramid for analysis; of names what the volume is made from.
func Pyramid(a *oct.Analysis, of string) []cli.Flag {
	return []cli.Flag{
		cli.Bind(&a.PyramidResolutions, cli.Flag{Name: "pyramid_resolutions", Check: cli.VoxelSize, Value: "UM", Usage: "voxel sizes of the pyramid levels, in µm; sizes finer than " + of + " are left out"}),
		cli.Bind(&a.MakeIsotropic, cli.Flag{Name: "make_isotropic", Aliases: []string{"isotropic"}, Usage: "give each pyramid level the same voxel size along all axes; otherwise voxels keep their proportions"}),
	}
}

// PyramidLayout returns the layout of the output of such a stage: without --n_levels it has all levels, or the usual
// number if each halves the one before it.
func PyramidLayout(r *cli.Run, a oct.Analysis) oct.Layout {
	layout := Layout(r)
	if !r.IsSet("n_levels") && !a.Native {
		layout.Levels = len(a.PyramidResolutions)
	}
	return layout
}
