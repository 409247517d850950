// Command bench-czi measures how fast the tiles of CZI files are read in each of several ways, and where the time
// goes.
package main

import (
	"strata/cmd/internal/benchczi"
	"strata/pkg/cli"
)

func main() { cli.Main(benchczi.Command()) }
