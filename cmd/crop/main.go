// Command crop cuts a mosaic grid or a slice below the tissue interface.
package main

import (
	"strata/cmd/internal/crop"
	"strata/pkg/cli"
)

func main() { cli.Main(crop.Command()) }
