package shifts

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"strata/pkg/filter"
	"strata/pkg/registration"
)

// Suggestion is a value for a parameter of the workflow.
type Suggestion struct {
	Name  string
	Value string // as YAML has it; "" where nothing says one
	Why   string
}

// glitchSpread is how many robust standard deviations above the median the length of a shift is a glitch's; leastSpread
// is the smallest deviation, in mm, that is assumed.
const glitchSpread, leastSpread = 3, 0.005

// fewShifts is the number of shifts below which their distribution says nothing.
const fewShifts = 4

// Suggest returns parameters of the workflow for the slices of a table of shifts. It leaves out those about which
// neither the shifts nor the acquisition say anything. resolution is the voxel size in µm to work with; 0: the smallest
// usual voxel size that is not finer than the pixels.
func Suggest(t *registration.ShiftTable, a Acquisition, resolution float64) (out []Suggestion) {
	t.Sort()
	say := func(name, value, format string, args ...any) {
		out = append(out, Suggestion{name, value, fmt.Sprintf(format, args...)})
	}
	number := func(v float64) string { return strconv.FormatFloat(v, 'g', 6, 64) }

	switch {
	case resolution > 0:
		say("resample_resolution", strconv.Quote(number(resolution)), "as asked for")
	case a.Pixel.Known():
		resolution = usual(a.Pixel.Value)
		say("resample_resolution", strconv.Quote(number(resolution)), "pixels are %s µm wide, by %s; the next usual voxel size", number(a.Pixel.Value), a.Pixel.From)
	default:
		say("resample_resolution", "", "the size of pixels is not known: give --data_dir or --mosaic")
	}
	if a.Axial.Known() {
		say("mosaic_axial_resolution", number(a.Axial.Value), "by %s", a.Axial.From)
	}
	if a.Overlap.Known() {
		say("stitch_overlap", number(math.Round(a.Overlap.Value*1000)/1000), "by %s", a.Overlap.From)
	} else {
		say("stitch_overlap", "", "not known: stitch --estimate measures it from any value that is roughly right")
	}
	out = append(out, glitches(t, a)...)
	if a.Thickness.Known() {
		say("stack_slicing_interval_mm", number(math.Round(a.Thickness.Value*1e4)/1e4), "by %s", a.Thickness.From)
		say("stack_search_range_mm", number(math.Round(a.Thickness.Value*5e3)/1e4), "half of the slicing interval")
	} else {
		say("stack_slicing_interval_mm", "", "not known: as the blade was set")
	}
	if a.Tile.Known() && resolution > 0 {
		px := math.Ceil(a.Tile.Value/resolution/10) * 10
		say("register_max_translation_px", number(px), "a tile, %s µm by %s, at %s µm", number(a.Tile.Value), a.Tile.From, number(resolution))
	}
	if a.Depth.Known() && a.Thickness.Known() {
		depth := math.Ceil(a.Thickness.Value*1000*1.5/50) * 50
		if depth < a.Depth.Value {
			say("crop_depth", number(depth), "one and a half times the slicing interval, so that slices overlap; A-lines are %s µm deep. Look at a cross-section", number(math.Round(a.Depth.Value)))
		}
	}
	return append(out, gaps(t))
}

// usual returns the smallest usual voxel size, in µm, that is not smaller than a pixel.
func usual(pixel float64) float64 {
	for _, v := range []float64{1, 2, 5, 10, 15, 20, 25, 50} {
		if v >= pixel*(1-1e-6) {
			return v
		}
	}
	return math.Ceil(pixel/50) * 50
}

// glitches suggests parameters of shifts clean. It tells glitches of the stage from regular shifts by their length.
func glitches(t *registration.ShiftTable, a Acquisition) (out []Suggestion) {
	var lengths []float64
	for _, r := range t.Rows {
		lengths = append(lengths, length(r.X, r.Y))
	}
	if len(lengths) < fewShifts {
		return []Suggestion{{"shifts_clean_max_shift_mm", "", fmt.Sprintf("%d shifts are too few to tell glitches", len(lengths))}}
	}
	median := filter.MedianOf(slices.Clone(lengths))
	var off []float64
	for _, l := range lengths {
		off = append(off, math.Abs(l-median))
	}
	limit := median + glitchSpread*max(leastSpread, 1.4826*filter.MedianOf(off))
	var usualOnes []float64
	var far []string
	whole := 0
	for i, r := range t.Rows {
		if lengths[i] <= limit {
			usualOnes = append(usualOnes, lengths[i])
			continue
		}
		far = append(far, fmt.Sprintf("%d–%d (%.3f mm)", r.Fixed, r.Moving, lengths[i]))
		if a.Tile.Known() && (wholeTiles(r.X, a.Tile.Value/1000) || wholeTiles(r.Y, a.Tile.Value/1000)) {
			whole++
		}
	}
	slices.Sort(usualOnes)
	q1, q3 := quantile(usualOnes, 25), quantile(usualOnes, 75)
	most := max(0.05, math.Ceil(max(q3+1.5*(q3-q1), usualOnes[len(usualOnes)-1])/0.05-1e-9)*0.05)
	if len(far) > 0 {
		out = append(out, Suggestion{"clean_shifts", "true", fmt.Sprintf("%d of %d shifts are far longer than the others: %s", len(far), len(lengths), strings.Join(far[:min(len(far), 6)], ", "))})
	}
	out = append(out, Suggestion{"shifts_clean_max_shift_mm", strconv.FormatFloat(math.Round(most*1e4)/1e4, 'g', 6, 64), fmt.Sprintf("the longest of %d usual shifts is %.3f mm, three quarters of them are below %.3f mm", len(usualOnes), usualOnes[len(usualOnes)-1], q3)})
	if whole > 0 {
		out = append(out, Suggestion{"shifts_clean_tile_fov_mm", strconv.FormatFloat(a.Tile.Value/1000, 'g', 6, 64), fmt.Sprintf("%d of them hold whole tiles of the width by %s", whole, a.Tile.From)})
	}
	return out
}

// wholeTiles reports whether a component of a shift is about a whole number of tiles, at least one, as [Clean] asks by
// default.
func wholeTiles(mm, tile float64) bool {
	n := math.Round(mm / tile)
	return n != 0 && math.Abs(mm/tile-n) <= DefaultCleanOptions().TileFOVTolerance
}

// gaps suggests whether missing slices are interpolated.
func gaps(t *registration.ShiftTable) Suggestion {
	var single, several []string
	for _, r := range t.Rows {
		switch missing := r.Moving - r.Fixed - 1; {
		case missing == 1:
			single = append(single, strconv.Itoa(r.Fixed+1))
		case missing > 1:
			several = append(several, fmt.Sprintf("%d–%d", r.Fixed+1, r.Moving-1))
		}
	}
	s := Suggestion{"interpolate", strconv.FormatBool(len(single) > 0), "no single slice is missing"}
	if len(single) > 0 {
		s.Why = "missing slices: " + strings.Join(single, ", ")
	}
	if len(several) > 0 {
		s.Why += "; gaps of several slices stay: " + strings.Join(several, ", ")
	}
	return s
}

// WriteParams writes suggestions as a parameter file of the workflow, YAML, with a comment behind each. What is not
// known is a comment.
func WriteParams(w io.Writer, all []Suggestion, from string) error {
	var b strings.Builder
	fmt.Fprintf(&b, "# Parameters suggested from %s, for: nextflow run … -params-file FILE\n", strings.ReplaceAll(from, "\n", " "))
	for _, s := range all {
		why := strings.ReplaceAll(s.Why, "\n", " ")
		if s.Value == "" {
			fmt.Fprintf(&b, "# %s: # %s\n", s.Name, why)
		} else {
			fmt.Fprintf(&b, "%s: %s # %s\n", s.Name, s.Value, why)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}
