// Command strata contains all commands in one file. Started through a link with a command's name it is that
// command, and "strata aip …" is the command aip. Container images contain it because separate programs would
// share most of their code.
package main

import (
	"strata/cmd/internal/aip"
	"strata/cmd/internal/align"
	"strata/cmd/internal/attenuation"
	"strata/cmd/internal/beamprofile"
	"strata/cmd/internal/benchczi"
	"strata/cmd/internal/benchio"
	"strata/cmd/internal/benchtiff"
	"strata/cmd/internal/benchtile"
	"strata/cmd/internal/benchzarr"
	"strata/cmd/internal/biasfield"
	"strata/cmd/internal/commonspace"
	"strata/cmd/internal/crop"
	"strata/cmd/internal/doctor"
	"strata/cmd/internal/flatfield"
	"strata/cmd/internal/focal"
	"strata/cmd/internal/interpolate"
	"strata/cmd/internal/manual"
	"strata/cmd/internal/mosaic"
	"strata/cmd/internal/normalize"
	"strata/cmd/internal/phantom"
	"strata/cmd/internal/preview"
	"strata/cmd/internal/qcreport"
	"strata/cmd/internal/register"
	"strata/cmd/internal/resample"
	"strata/cmd/internal/shifts"
	"strata/cmd/internal/sif"
	"strata/cmd/internal/slices"
	"strata/cmd/internal/smooth"
	"strata/cmd/internal/stack"
	"strata/cmd/internal/stitch"
	"strata/cmd/internal/view"
	"strata/cmd/internal/zarrtool"
	"strata/pkg/cli"
)

func main() { cli.MainOf(command()) }

func command() *cli.Command {
	return &cli.Command{
		Name:  "strata",
		Usage: "all programs in one file: from mosaics of tiles to one volume",
		Commands: []*cli.Command{
			mosaic.Command(),
			aip.Command(),
			resample.Command(),
			focal.Command(),
			flatfield.Command(),
			stitch.Command(),
			beamprofile.Command(),
			crop.Command(),
			attenuation.Command(),
			normalize.Command(),
			slices.Command(),
			shifts.Command(),
			commonspace.Command(),
			interpolate.Command(),
			register.Command(),
			manual.Command(),
			stack.Command(),
			biasfield.Command(),
			align.Command(),
			preview.Command(),
			view.Command(),
			qcreport.Command(),
			smooth.Command(),
			phantom.Command(),
			zarrtool.Command(),
			doctor.Command(),
			sif.Command(),
			benchio.Command(),
			benchzarr.Command(),
			benchtile.Command(),
			benchtiff.Command(),
			benchczi.Command(),
		},
	}
}
