// Command stitch assembles the tiles of a mosaic grid into a slice.
package main

import (
	"strata/cmd/internal/stitch"
	"strata/pkg/cli"
)

func main() { cli.Main(stitch.Command()) }
