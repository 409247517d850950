// Command beam-profile divides a slice by the axial profile of the beam.
package main

import (
	"strata/cmd/internal/beamprofile"
	"strata/pkg/cli"
)

func main() { cli.Main(beamprofile.Command()) }
