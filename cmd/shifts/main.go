// Command shifts makes, repairs and describes the table of shifts between slices.
package main

import (
	"strata/cmd/internal/shifts"
	"strata/pkg/cli"
)

func main() { cli.Main(shifts.Command()) }
