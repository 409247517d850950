// Command phantom makes mosaic grids whose truth is known.
package main

import (
	"strata/cmd/internal/phantom"
	"strata/pkg/cli"
)

func main() { cli.Main(phantom.Command()) }
