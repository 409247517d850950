// Command stitch puts the tiles of a mosaic grid together to a slice.
package main

import (
	"strata/cmd/internal/stitch"
	"strata/pkg/cli"
)

func main() { cli.Main(stitch.Command()) }
