// Command mosaic makes mosaic grids of raw tiles.
package main

import (
	"strata/cmd/internal/mosaic"
	"strata/pkg/cli"
)

func main() { cli.Main(mosaic.Command()) }
