package stage

import "strata/pkg/cli"

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
