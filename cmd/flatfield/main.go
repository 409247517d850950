// Command flatfield divides the tiles of a mosaic grid by the illumination that they share.
package main

import (
	"strata/cmd/internal/flatfield"
	"strata/pkg/cli"
)

func main() { cli.Main(flatfield.Command()) }
