// Package tables defines the reports of the stack stage about each pair of slices, and writes them as CSV.
package tables

import (
	"encoding/csv"
	"io"
	"strconv"
	"strings"
)

// Match is the measured overlap of a pair of slices along z.
type Match struct {
	FixedID, MovingID int
	Overlap, Blend    int // voxels
	MovingZStart      int // first plane of the moving slice that is used
	Correlation       float64
	Fallback          bool // the correlation was too low, and the expected overlap is used
}

// Decision describes how stack treated a pair of slices.
type Decision struct {
	SliceID, FixedID int
	Loaded           bool
	Manual           bool
	Confidence       float64 // of a loaded transform
	Source           string  // of the overlap
	Overlap, Blend   int
	Correlation      float64
}

// Correction is an overlap that the consistency step changed.
type Correction struct {
	MovingID int
	Field    string // overlap_voxels or blend_overlap_voxels
	From, To int
}

// Shift is the displacement (x, y) in millimetres of a slice from the one before it: as recorded by shifts and
// translations, and as found in pictures of both.
type Shift struct {
	FixedID, MovingID int
	Recorded, Found   [2]float64
	// AtRecorded and AtFound are the correlations of the pictures at the two displacements, after division by their
	// local means; 0 if there is nothing to compare.
	AtRecorded, AtFound float64
	Contradicted        bool // the pictures clearly contradict the recorded shift
	Repaired            bool
}

// truth formats a boolean as Python does.
func truth(b bool) string {
	if b {
		return "True"
	}
	return "False"
}

// float returns the shortest text of a number that has a decimal point.
func float(v float64) string {
	s := strconv.FormatFloat(v, 'f', -1, 64)
	if !strings.ContainsAny(s, ".NI") {
		s += ".0"
	}
	return s
}

// WriteMatches writes matches as the CSV of --output_z_matches.
func WriteMatches(dst io.Writer, matches []Match) error {
	w := csv.NewWriter(dst)
	rows := [][]string{{"fixed_id", "moving_id", "overlap_voxels", "blend_overlap_voxels", "moving_z_start", "correlation", "correlation_fallback_used"}}
	for _, m := range matches {
		rows = append(rows, []string{strconv.Itoa(m.FixedID), strconv.Itoa(m.MovingID), strconv.Itoa(m.Overlap), strconv.Itoa(m.Blend),
			strconv.Itoa(m.MovingZStart), float(m.Correlation), truth(m.Fallback)})
	}
	return w.WriteAll(rows)
}

// WriteShifts writes shifts as the CSV of --output_shifts: the found shifts in the columns of a shifts file,
// followed by the recorded ones.
func WriteShifts(dst io.Writer, shifts []Shift) error {
	w := csv.NewWriter(dst)
	rows := [][]string{{"fixed_id", "moving_id", "x_shift_mm", "y_shift_mm", "correlation", "recorded_x_shift_mm", "recorded_y_shift_mm", "recorded_correlation", "contradicted", "repaired"}}
	digits := func(v float64) string { return strconv.FormatFloat(v, 'f', 4, 64) }
	for _, s := range shifts {
		rows = append(rows, []string{strconv.Itoa(s.FixedID), strconv.Itoa(s.MovingID), digits(s.Found[0]), digits(s.Found[1]), digits(s.AtFound),
			digits(s.Recorded[0]), digits(s.Recorded[1]), digits(s.AtRecorded), truth(s.Contradicted), truth(s.Repaired)})
	}
	return w.WriteAll(rows)
}

// WriteDecisions writes decisions as the CSV of --output_stacking_decisions.
func WriteDecisions(dst io.Writer, decisions []Decision) error {
	w := csv.NewWriter(dst)
	rows := [][]string{{"slice_id", "fixed_id", "transform_loaded", "transform_source", "manual_override", "confidence",
		"overlap_source", "overlap_voxels", "blend_overlap_voxels", "correlation"}}
	for _, d := range decisions {
		source, confidence := "automated", ""
		if d.Manual {
			source = "manual"
		}
		if d.Loaded {
			confidence = strconv.FormatFloat(d.Confidence, 'f', 4, 64)
		}
		rows = append(rows, []string{strconv.Itoa(d.SliceID), strconv.Itoa(d.FixedID), truth(d.Loaded), source, truth(d.Manual), confidence,
			d.Source, strconv.Itoa(d.Overlap), strconv.Itoa(d.Blend), strconv.FormatFloat(d.Correlation, 'f', 4, 64)})
	}
	return w.WriteAll(rows)
}
