// Command focal removes the focal-plane curvature from a mosaic grid.
package main

import (
	"strata/cmd/internal/focal"
	"strata/pkg/cli"
)

func main() { cli.Main(focal.Command()) }
