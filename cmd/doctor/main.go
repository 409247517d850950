// Command doctor says what the stages find on a machine.
package main

import (
	"strata/cmd/internal/doctor"
	"strata/pkg/cli"
)

func main() { cli.Main(doctor.Command()) }
