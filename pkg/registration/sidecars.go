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
	t, err := openTable(r, name, "fixed_id", "moving_id", "overlap_voxels", "blend_overlap_voxels", "moving_z_start", "correlation", "correlation_fallback_used")
	if err != nil {
		return nil, err
	}
	var out []Match
	for {
		ok, err := t.next()
		if err != nil || !ok {
			return out, err
		}
		var m Match
		for _, f := range []field[int]{{"fixed_id", &m.Fixed}, {"moving_id", &m.Moving}, {"overlap_voxels", &m.Overlap},
			{"blend_overlap_voxels", &m.BlendOverlap}, {"moving_z_start", &m.MovingZ}} {
			if *f.dst, err = t.count(f.column); err != nil {
				return nil, err
			}
		}
		if m.Correlation, err = t.number("correlation"); err != nil {
			return nil, err
		}
		if m.Fallback, err = t.truth("correlation_fallback_used", false); err != nil {
			return nil, err
		}
		out = append(out, m)
	}
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
	t, err := openTable(r, name, "fixed_id", "moving_id", "x_shift_mm", "y_shift_mm", "correlation",
		"recorded_x_shift_mm", "recorded_y_shift_mm", "recorded_correlation", "contradicted", "repaired")
	if err != nil {
		return nil, err
	}
	var out []FoundShift
	for {
		ok, err := t.next()
		if err != nil || !ok {
			return out, err
		}
		var s FoundShift
		for _, f := range []field[int]{{"fixed_id", &s.Fixed}, {"moving_id", &s.Moving}} {
			if *f.dst, err = t.id(f.column); err != nil {
				return nil, err
			}
		}
		for _, f := range []field[float64]{{"x_shift_mm", &s.X}, {"y_shift_mm", &s.Y}, {"correlation", &s.Correlation},
			{"recorded_x_shift_mm", &s.RecordedX}, {"recorded_y_shift_mm", &s.RecordedY}, {"recorded_correlation", &s.RecordedAt}} {
			if *f.dst, err = t.number(f.column); err != nil {
				return nil, err
			}
		}
		for _, f := range []field[bool]{{"contradicted", &s.Contradicted}, {"repaired", &s.Repaired}} {
			if *f.dst, err = t.truth(f.column, false); err != nil {
				return nil, err
			}
		}
		out = append(out, s)
	}
}

// Decision is a line of stack's table of decisions: what was done with a slice, and why.
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
	t, err := openTable(r, name, "slice_id", "fixed_id", "transform_loaded", "transform_source", "manual_override", "confidence",
		"overlap_source", "overlap_voxels", "blend_overlap_voxels", "correlation")
	if err != nil {
		return nil, err
	}
	var out []Decision
	for {
		ok, err := t.next()
		if err != nil || !ok {
			return out, err
		}
		d := Decision{TransformSource: t.text("transform_source"), OverlapSource: t.text("overlap_source"), Confidence: t.text("confidence"), Correlation: t.text("correlation")}
		for _, f := range []field[int]{{"slice_id", &d.Slice}, {"fixed_id", &d.Fixed}, {"overlap_voxels", &d.Overlap}, {"blend_overlap_voxels", &d.BlendOverlap}} {
			if *f.dst, err = t.count(f.column); err != nil {
				return nil, err
			}
		}
		for _, f := range []field[bool]{{"transform_loaded", &d.TransformLoaded}, {"manual_override", &d.ManualOverride}} {
			if *f.dst, err = t.truth(f.column, false); err != nil {
				return nil, err
			}
		}
		for _, column := range []string{"confidence", "correlation"} {
			if t.text(column) == "" {
				continue
			}
			if _, err := t.number(column); err != nil {
				return nil, err
			}
		}
		out = append(out, d)
	}
}

// count returns a whole number from 0 on.
func (t *table) count(column string) (int, error) {
	v, ok := wholeNumber(t.text(column))
	if !ok {
		return 0, t.errorf("%s is %s, want a whole number from 0 on", column, t.quoted(column))
	}
	return v, nil
}

// field is a column and where its value goes.
type field[T any] struct {
	column string
	dst    *T
}
