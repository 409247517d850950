package registration

import "io"

// Match is a line of stack's table of Z matches: how a slice overlaps the one before it (stages
// specification, "stack", sidecars).
type Match struct {
	Fixed, Moving int
	Overlap       int // voxels
	BlendOverlap  int
	MovingZ       int     // first plane of the moving slice that is used
	Correlation   float64 // 0 if not measured
	Fallback      bool    // the expected overlap was used because the correlation was too low
}

// ReadMatches reads a table of Z matches.
func ReadMatches(r io.Reader, name string) ([]Match, error) {
	columns := []string{"fixed_id", "moving_id", "overlap_voxels", "blend_overlap_voxels", "moving_z_start", "correlation", "correlation_fallback_used"}
	return readRows(openTable, r, name, columns, func(t *table, m *Match) error {
		return t.read(columns, &m.Fixed, &m.Moving, &m.Overlap, &m.BlendOverlap, &m.MovingZ, &m.Correlation, &m.Fallback)
	})
}

// FoundShift is a line of stack's table of shifts: the displacement of a slice against the one before it, as
// found in the images and as recorded, in millimetres.
type FoundShift struct {
	Fixed, Moving                    int
	X, Y, Correlation                float64
	RecordedX, RecordedY, RecordedAt float64 // the last is the pictures' correlation there
	Contradicted, Repaired           bool
}

// ReadFoundShifts reads a table of shifts that stack wrote.
func ReadFoundShifts(r io.Reader, name string) ([]FoundShift, error) {
	columns := []string{"fixed_id", "moving_id", "x_shift_mm", "y_shift_mm", "correlation",
		"recorded_x_shift_mm", "recorded_y_shift_mm", "recorded_correlation", "contradicted", "repaired"}
	return readRows(openTable, r, name, columns, func(t *table, s *FoundShift) error {
		return t.read(columns, sliceID{&s.Fixed}, sliceID{&s.Moving}, &s.X, &s.Y, &s.Correlation,
			&s.RecordedX, &s.RecordedY, &s.RecordedAt, &s.Contradicted, &s.Repaired)
	})
}

// Decision is a line of stack's table of decisions: how a slice was placed, and why.
type Decision struct {
	Slice, Fixed    int
	TransformLoaded bool
	TransformSource string // "automated" or "manual"
	ManualOverride  bool
	Confidence      string // as written in the table; "" if unknown
	OverlapSource   string
	Overlap         int // voxels
	BlendOverlap    int
	Correlation     string // as written in the table
}

// ReadDecisions reads a table of decisions.
func ReadDecisions(r io.Reader, name string) ([]Decision, error) {
	needed := []string{"slice_id", "fixed_id", "transform_loaded", "transform_source", "manual_override", "confidence",
		"overlap_source", "overlap_voxels", "blend_overlap_voxels", "correlation"}
	return readRows(openTable, r, name, needed, func(t *table, d *Decision) error {
		*d = Decision{TransformSource: t.text("transform_source"), OverlapSource: t.text("overlap_source"), Confidence: t.text("confidence"), Correlation: t.text("correlation")}
		if err := t.read([]string{"slice_id", "fixed_id", "overlap_voxels", "blend_overlap_voxels", "transform_loaded", "manual_override"},
			&d.Slice, &d.Fixed, &d.Overlap, &d.BlendOverlap, &d.TransformLoaded, &d.ManualOverride); err != nil {
			return err
		}
		for _, column := range []string{"confidence", "correlation"} {
			if t.text(column) == "" {
				continue
			}
			if _, err := t.number(column); err != nil {
				return err
			}
		}
		return nil
	})
}
