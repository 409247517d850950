// Command sif makes, signs, checks and opens container images of the Singularity
// image format, without Apptainer and without root.
package main

import (
	"strata/cmd/internal/sif"
	"strata/pkg/cli"
)

func main() { cli.Main(sif.Command()) }
