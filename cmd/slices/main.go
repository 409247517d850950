// Command slices decides which slices are used, in the table slice_config.csv.
package main

import (
	"strata/cmd/internal/slices"
	"strata/pkg/cli"
)

func main() { cli.Main(slices.Command()) }
