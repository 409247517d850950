// Command resample brings a mosaic grid to another voxel size.
package main

import (
	"strata/cmd/internal/resample"
	"strata/pkg/cli"
)

func main() { cli.Main(resample.Command()) }
