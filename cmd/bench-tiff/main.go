// Command bench-tiff measures how fast TIFF files are read and converted to Zarr.
package main

import (
	"strata/cmd/internal/benchtiff"
	"strata/pkg/cli"
)

func main() { cli.Main(benchtiff.Command()) }
