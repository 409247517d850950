// Command view shows OME-Zarr images, TIFF and CZI files in a browser.
package main

import (
	"strata/cmd/internal/view"
	"strata/pkg/cli"
)

func main() { cli.Main(view.Command()) }
