// Command bench-zarr measures how fast Zarr arrays are read and written.
package main

import (
	"strata/cmd/internal/benchzarr"
	"strata/pkg/cli"
)

func main() { cli.Main(benchzarr.Command()) }
