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
	"strata/cmd/internal/explain"
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
	"strata/cmd/internal/start"
	"strata/cmd/internal/stitch"
	"strata/cmd/internal/view"
	"strata/cmd/internal/zarrtool"
	"strata/pkg/cli"
)

// members are all programs, in the order of a workflow. What is said of them here is what their commands say; a test
// compares it.
var members = []cli.Member{
	{Name: "start", Usage: "look at a folder, say what it has, and print the commands that come next", Command: start.Command},
	{Name: "mosaic", Usage: "make mosaic grids of the tiles that a microscope writes", Aliases: []string{"linum-create-mosaic-grid-3d"}, Command: mosaic.Command},
	{Name: "aip", Usage: "compute the average intensity projection of a mosaic grid", Aliases: []string{"linum-aip"}, Command: aip.Command},
	{Name: "resample", Usage: "resample a mosaic grid to another voxel size", Aliases: []string{"linum-resample-mosaic-grid"}, Command: resample.Command},
	{Name: "focal", Usage: "correct the focal-plane curvature of a mosaic grid", Aliases: []string{"linum-detect-focal-curvature"}, Command: focal.Command},
	{Name: "flatfield", Usage: "correct the uneven illumination that the tiles of a mosaic grid share", Aliases: []string{"linum-fix-illumination-basic", "linum-fix-illumination-3d"}, Command: flatfield.Command},
	{Name: "stitch", Usage: "stitch the tiles of a mosaic grid into a slice", Aliases: []string{"linum-stitch-3d-refined", "linum-estimate-global-transform", "linum-stitch-motor-only", "linum-compare-stitching"}, Command: stitch.Command},
	{Name: "beam-profile", Usage: "divide a slice by the axial profile of the beam", Aliases: []string{"linum-compensate-psf-model-free"}, Command: beamprofile.Command},
	{Name: "crop", Usage: "crop a mosaic grid or a slice to a depth below the tissue interface", Aliases: []string{"linum-crop-3d-mosaic-below-interface"}, Command: crop.Command},
	{Name: "attenuation", Usage: "undo the decay of the signal with depth in a slice", Aliases: []string{"linum-compensate-attenuation-inplace"}, Command: attenuation.Command},
	{Name: "normalize", Usage: "bring the intensities of a slice to a common scale", Aliases: []string{"linum-normalize-intensities-per-slice"}, Command: normalize.Command},
	{Name: "slices", Usage: "decide which slices are used, in the table slice_config.csv", Aliases: []string{"linum-generate-slice-config", "linum-assess-slice-quality", "linum-auto-exclude-slices"}, Command: slices.Command},
	{Name: "shifts", Usage: "make, repair and describe the table of shifts between slices", Aliases: []string{"linum-estimate-xy-shift-from-metadata", "linum-detect-rehoming", "linum-analyze-shifts", "linum-suggest-params", "linum-analyze-acquisition-rotation"}, Command: shifts.Command},
	{Name: "common-space", Usage: "put the slices of a specimen onto one canvas", Aliases: []string{"linum-align-mosaics-3d-from-shifts"}, Command: commonspace.Command},
	{Name: "interpolate", Usage: "fill the gap of a missing slice between its two neighbours", Aliases: []string{"linum-interpolate-missing-slice"}, Command: interpolate.Command},
	{Name: "register", Usage: "find how a slice lies on the slice before it", Aliases: []string{"linum-register-pairwise", "linum-analyze-registration-transforms"}, Command: register.Command},
	{Name: "manual", Usage: "correct the registration of slices by hand, with view", Command: manual.Command},
	{Name: "stack", Usage: "assemble slices into one volume", Aliases: []string{"linum-stack-slices-motor", "linum-stack-motor-only"}, Command: stack.Command},
	{Name: "bias-field", Usage: "remove the smooth multiplicative field of a stacked volume", Aliases: []string{"linum-correct-bias-field"}, Command: biasfield.Command},
	{Name: "align", Usage: "register a volume to a template", Aliases: []string{"linum-align-to-ras"}, Command: align.Command},
	{Name: "preview", Usage: "draw a picture of an OME-Zarr image, a TIFF or a CZI file", Command: preview.Command},
	{Name: "view", Usage: "look at images of any size in a browser", Command: view.Command},
	{Name: "qc-report", Usage: "write the quality report of a run, one HTML page", Aliases: []string{"linum-generate-pipeline-report"}, Command: qcreport.Command},
	{Name: "explain", Usage: "say how an image was made: commands, inputs, versions, warnings, what changed since, and a paragraph for a paper", Command: explain.Command},
	{Name: "smooth", Usage: "filter an image by median, Gaussian or gradient", Command: smooth.Command},
	{Name: "phantom", Usage: "simulate OCT mosaic grids, raw tiles and slide scans whose truth is known", Command: phantom.Command},
	{Name: "zarr-tool", Usage: "inspect, convert and validate Zarr v2 and v3, OME-Zarr 0.4 and 0.5, TIFF and CZI", Aliases: []string{"linum-extract-pyramid-levels", "linum-clip-percentile", "linum-axis-xyz-to-zyx", "linum-segment-brain-3d"}, Command: zarrtool.Command},
	{Name: "doctor", Usage: "report what the stages find on this machine: GPUs, drivers, GPUDirect Storage, leases", Command: doctor.Command},
	{Name: "sif", Usage: "build, sign, verify and run container images (SIF) without Apptainer and without root", Command: sif.Command},
	{Name: "bench-io", Usage: "measure how fast files are read and written in every way, beside fio", Command: benchio.Command},
	{Name: "bench-zarr", Usage: "measure how fast Zarr arrays are read into memory or a GPU, and written, beside other programs", Command: benchzarr.Command},
	{Name: "bench-tile", Usage: "measure how fast images stream as tiles with a halo, beside reading the tiles alone", Command: benchtile.Command},
	{Name: "bench-tiff", Usage: "measure how fast TIFF files are read into memory or a GPU and converted to Zarr, beside other programs", Command: benchtiff.Command},
	{Name: "bench-czi", Usage: "measure how fast the tiles of CZI files are read in which way, and where the time goes", Aliases: []string{"benchmark-czi-loading", "profile-czi-loading", "quick-test-czi"}, Command: benchczi.Command},
}

func main() {
	cli.MainOf("strata", "all programs in one file: from raw tiles or mosaics to one volume", members)
}
