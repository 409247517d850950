// Command aip computes the average intensity projection of a mosaic grid.
package main

import (
	"strata/cmd/internal/aip"
	"strata/pkg/cli"
)

func main() { cli.Main(aip.Command()) }
