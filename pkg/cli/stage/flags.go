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

// SearchFlags returns the flags of the search for the tissue interface, bound to its parameters, and sets these to
// the defaults.
func SearchFlags(sigmaXY, sigmaZ *float64, log *bool) []cli.Flag {
	*sigmaXY, *sigmaZ = 3, 2
	return []cli.Flag{
		cli.Bind(sigmaXY, cli.Flag{Name: "sigma_xy", Check: cli.Between(0, 1<<10), Usage: "width in pixels of the mean filter along y and x before the search for the tissue interface, 0 to 1024"}),
		cli.Bind(sigmaZ, cli.Flag{Name: "sigma_z", Check: cli.Between(1e-3, 1<<10), Usage: "sigma in voxels of the Gaussian derivative along z that detects the tissue interface, 0.001 to 1024"}),
		cli.Bind(log, cli.Flag{Name: "use_log", Usage: "search for the tissue interface in the logarithm of the values"}),
	}
}
