// Command common-space puts the slices of a specimen onto one canvas.
package main

import (
	"strata/cmd/internal/commonspace"
	"strata/pkg/cli"
)

func main() { cli.Main(commonspace.Command()) }
