// Command bench-tile measures how fast images are streamed as tiles with a halo.
package main

import (
	"strata/cmd/internal/benchtile"
	"strata/pkg/cli"
)

func main() { cli.Main(benchtile.Command()) }
