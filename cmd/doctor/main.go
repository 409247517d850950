// Command doctor reports what the stages can use on a machine.
package main

import (
	"strata/cmd/internal/doctor"
	"strata/pkg/cli"
)

func main() { cli.Main(doctor.Command()) }
