// Command sif builds, signs, checks and opens container images in the Singularity image format, without Apptainer
// and without root.
package main

import (
	"strata/cmd/internal/sif"
	"strata/pkg/cli"
)

func main() { cli.Main(sif.Command()) }
