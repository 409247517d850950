// Command zarr-tool inspects, converts and validates Zarr and OME-Zarr.
package main

import (
	"strata/cmd/internal/zarrtool"
	"strata/pkg/cli"
)

func main() { cli.Main(zarrtool.Command()) }
