// Command resample changes the voxel size of a mosaic grid.
package main

import (
	"strata/cmd/internal/resample"
	"strata/pkg/cli"
)

func main() { cli.Main(resample.Command()) }
