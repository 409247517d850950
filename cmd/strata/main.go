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

// members are all programs, in the order of a workflow.
var members = []cli.Member{
	{Name: "mosaic", Command: mosaic.Command},
	{Name: "aip", Command: aip.Command},
	{Name: "resample", Command: resample.Command},
	{Name: "focal", Command: focal.Command},
	{Name: "flatfield", Command: flatfield.Command},
	{Name: "stitch", Command: stitch.Command},
	{Name: "beam-profile", Command: beamprofile.Command},
	{Name: "crop", Command: crop.Command},
	{Name: "attenuation", Command: attenuation.Command},
	{Name: "normalize", Command: normalize.Command},
	{Name: "slices", Command: slices.Command},
	{Name: "shifts", Command: shifts.Command},
	{Name: "common-space", Command: commonspace.Command},
	{Name: "interpolate", Command: interpolate.Command},
	{Name: "register", Command: register.Command},
	{Name: "manual", Command: manual.Command},
	{Name: "stack", Command: stack.Command},
	{Name: "bias-field", Command: biasfield.Command},
	{Name: "align", Command: align.Command},
	{Name: "preview", Command: preview.Command},
	{Name: "view", Command: view.Command},
	{Name: "qc-report", Command: qcreport.Command},
	{Name: "smooth", Command: smooth.Command},
	{Name: "phantom", Command: phantom.Command},
	{Name: "zarr-tool", Command: zarrtool.Command},
	{Name: "doctor", Command: doctor.Command},
	{Name: "sif", Command: sif.Command},
	{Name: "bench-io", Command: benchio.Command},
	{Name: "bench-zarr", Command: benchzarr.Command},
	{Name: "bench-tile", Command: benchtile.Command},
	{Name: "bench-tiff", Command: benchtiff.Command},
	{Name: "bench-czi", Command: benchczi.Command},
}

func main() { cli.MainOf(group, members) }

var group = &cli.Command{Name: "strata", Usage: "all programs in one file: from raw tiles or mosaics to one volume"}
