// Command focal takes the focal-plane curvature out of a mosaic grid.
package main

import (
	"strata/cmd/internal/focal"
	"strata/pkg/cli"
)

func main() { cli.Main(focal.Command()) }
