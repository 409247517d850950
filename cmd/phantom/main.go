// Command phantom generates mosaic grids with a known ground truth.
package main

import (
	"strata/cmd/internal/phantom"
	"strata/pkg/cli"
)

func main() { cli.Main(phantom.Command()) }
