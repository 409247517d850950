package qc

import "strings"

// advice maps a part of a warning to the remedy shown with it. The first entry that fits counts.
var advice = []struct{ part, do string }{
	{"the best overlap of", doOverlap},
	{"scanned twice: at the same depth", doBad},
	{"brightness the same at all depths", doBad},
	{"the specimen has ended", "Nothing, if the specimen ends there."},
	{"of the voxels of a plane have its highest value", doBad},
	{"where those of most slices are", "Look up how this slice was scanned: slices of one stack have tiles and voxels of the same size. Leave it out, or scan it again."},
	{"all voxels that were looked at are", "Look for the scan of this slice; without it leave the slice out, and let `interpolate` fill the gap."},
	{"no slice shows the", "Nothing, if the slices between were to be left out; `interpolate` makes up for single ones."},
	{"as in noise", "Look at the slice in `view`; if it is noise, acquire it again, or leave it out by --slice_config, and let `interpolate` fill the gap."},
	{"agree with no neighbour", "Look at these slices in `view`: if they show the tissue of their neighbours, `register` them, or give the true --slicing_interval_mm and shifts; else leave them out by --slice_config."},
	{"no overlap can be correlated", "The slices hold NaN or infinite voxels: find the stage that made them (`zarr-tool info SLICE`), and repeat it."},
	{"have no pixels in common", "Check the shift of this pair in shifts_xy.csv (mm), or run `strata stack --repair_shifts fix`."},
	{"is far from the median of", "Compare the join in `strata view volume.ome.zarr`; give the true distance by `stack --slicing_interval_mm`."},
	{"were expected (--slicing_interval_mm", "Give `stack` the distance that was cut by --slicing_interval_mm, and the first plane that is used by --moving_z_first_index."},
	{"where their pictures correlate by", doShift},
	{"are missing: the slices beside them", "Nothing, if the slices were lost; else repeat their stages, and `stack` again."},
	{"are missing: the volume begins or ends", "Nothing, if the slices were lost; else repeat their stages, and `stack` again."},
	{"no transform for slices", "Add their transforms to --transforms_dir, or accept that the motors' shifts place them."},
	{"no .tfm file", "Repeat the registration of this slice, or accept that the motors' shifts place it."},
	{"no shift between slices", "Add the missing line to shifts_xy.csv, or run `strata stack --repair_shifts fix`."},
	{"no shift for slices", "Add the missing lines to shifts_xy.csv, or run `strata stack --repair_shifts fix`."},
	{"are larger than the", "Check that every slice was made with the same options."},
	{"are left out: none is used", "Lower --moving_z_first_index of `stack`, or keep more planes by `crop --depth`."},
	{"is larger than the slice", "Keep more planes by `crop --depth`, or lower the overlap by `stack --slicing_interval_mm`."},
	{"is larger than slice", "Keep more planes by `crop --depth`, or lower the overlap by `stack --slicing_interval_mm`."},
	{"does not darken towards its last plane", doNothing + " the brightness is even along depth already, as after `beam-profile`."},
	{"the image brightens nowhere", "Look at the slice in `view`; if its tissue is there, check that `crop` got the stitched slice, and raise --max_interface_fraction."},
	{"--pad_after adds zeros", "Ask `crop` for a smaller --depth, or add --pad_after."},
	{"of neighbouring tiles do not touch", "Check --overlap of `stitch` against the microscope's setting, or give a --transform of another slice."},
	{"the matrix stays as it began", "Give `stitch` a --transform that was estimated on slices with more tissue."},
	{"the tiles stay where the matrix", "Nothing, if the seams look right; else give `stitch` a --transform of another slice."},
	{"do not fit where", "Run `stitch` with --estimate, or give it the true --overlap."},
	{"leave out --max_refinement_px", "Run `stitch` without --max_refinement_px: its tiles err by more than that."},
	{"nothing that places them", "Nothing, if these tiles are agarose; else look at them in `view`, and give `stitch` a --transform of a slice with more tissue."},
	{"nothing joins them to the rest", "Look at this slice in `view`; if its parts do not fit, give `stitch` a --transform of a slice with more tissue."},
	{"one overlap that nothing checks", "Look at the borders of the slice in `view`."},
	{"neighbours along", "Nothing, if the mosaic has one row or column of tiles."},
	{"has no position for", "Complete the file of positions; the tiles named are left out."},
	{"there is only one whole tile", "Give `focal` a mosaic of several tiles, or leave `focal` out."},
	{"shows nothing", "Look at the slice in `view`; if it is empty, leave it out by --slice_config, and let `interpolate` fill the gap."},
	{"tiles show nothing", "Look at these tiles: was the detector on? Copy them again, or accept dark places in the slice."},
	{"are they on one canvas", "Give `interpolate` slices that `common-space` has written."},
	{"the coarse resolutions led astray", "Look at the --preview of `align`, and give a nearer --initial_rotation if the volume does not lie on the template."},
	{"are NaN or infinite", "Find where they come from: `zarr-tool info` on the inputs of this stage, from the first one on."},
	{"read as the fill value", "Run `zarr-tool validate` on the input, and copy the missing chunks again."},
	{"no usable", doNothing + " the result is the same. `doctor` says what the GPU lacks; --no-use_gpu silences this."},
	{"did not finish replacing it", "Repeat that run, or remove what it left."},
	{"one of them is of another run", "Repeat the stage that wrote the file, so that records and results agree."},
	{"nothing in this folder that a report shows", "Give --run the workflow's --outdir."},
	{"the JSON ends in the middle", "Repeat the run that wrote the file: it was interrupted."},
	{"not used, ", "Name the file that counts (see `qc-report --help`), or remove the other one."},
}

const (
	doNothing = "Nothing:" // begins what is said of messages that ask for nothing: they are notes
	doOverlap = "Look at the join: `strata view volume.ome.zarr`. If tissue jumps there, repeat `stack` with a larger --search_range_mm, or leave the slice out by --slice_config."
	doBad     = "Look at the slice in `view`. If it is bad, acquire it again, or let `stack` leave it out (--leave_out_excluded); if it is not, set use=true in the slice table."
	doShift   = "Repeat `stack` with --repair_shifts fix, which takes the shift that the pictures show."
)

// knownAdvice returns what to do about a warning by its text; "" if nothing is known of it.
func knownAdvice(text string) string {
	for _, a := range advice {
		if strings.Contains(text, a.part) {
			return a.do
		}
	}
	return ""
}

// adviceFor returns what to do about a warning: what is known of its text, or where more is said.
func adviceFor(text, tool string) string {
	if do := knownAdvice(text); do != "" {
		return do
	}
	if tool == "" {
		return "See docs/troubleshooting.md."
	}
	return "Read what `strata " + tool + " --help` says of the options that the message names, or see docs/troubleshooting.md."
}

// doExit maps the exit code of a failed run to a remedy.
var doExit = map[int]string{
	1: "Check free disk space and memory (`doctor`), then repeat the run.",
	2: "Correct the option that the message names, then repeat the run.",
	3: "Check the input with `zarr-tool validate`, then repeat the run.",
	4: "Run `doctor` to see what the GPU lacks, or leave --require_gpu out.",
}
