// Command align registers a volume to a template and resamples it on the template's axes.
package main

import (
	"strata/cmd/internal/align"
	"strata/pkg/cli"
)

func main() { cli.Main(align.Command()) }
