package stage

import "strata/pkg/cli"

// SearchFlags returns the flags of the search for the tissue interface, bound to its parameters, and sets these to
// the defaults.
func SearchFlags(sigmaXY, sigmaZ *float64, log *bool) []cli.Flag {
	*sigmaXY, *sigmaZ = 3, 2
	return []cli.Flag{
		cli.Bind(sigmaXY, cli.Flag{Name: "sigma_xy", Check: cli.Between(0, 1<<10), Usage: "size of the mean filter before the search, along y and x, in px"}),
		cli.Bind(sigmaZ, cli.Flag{Name: "sigma_z", Check: cli.Between(1e-3, 1<<10), Usage: "sigma of the derivative of Gaussian along z, in voxels"}),
		cli.Bind(log, cli.Flag{Name: "use_log", Usage: "search in the logarithm of the image"}),
	}
}
