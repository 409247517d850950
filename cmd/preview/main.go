// Command preview draws an OME-Zarr image as a PNG.
package main

import (
	"strata/cmd/internal/preview"
	"strata/pkg/cli"
)

func main() { cli.Main(preview.Command()) }
