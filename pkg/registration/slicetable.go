package registration

import (
	"encoding/csv"
	"fmt"
	"io"
	"slices"
)

// Columns of a slice configuration, in the order in which they are written.
const (
	SliceID             = "slice_id"
	Use                 = "use"            // boolean; empty counts as not used where slices are chosen
	ExcludeReason       = "exclude_reason" // why use is false
	QualityScore        = "quality_score"
	GalvoConfidence     = "galvo_confidence"
	GalvoFix            = "galvo_fix" // boolean
	Notes               = "notes"
	Rehomed             = "rehomed"           // boolean: the shift to this slice was corrected
	RehomingReliable    = "rehoming_reliable" // 1 or 0
	AutoExcluded        = "auto_excluded"     // boolean
	AutoExcludeReason   = "auto_exclude_reason"
	Interpolated        = "interpolated"         // boolean
	InterpolationFailed = "interpolation_failed" // boolean
	InterpolationMethod = "interpolation_method_used"
	InterpolationReason = "interpolation_fallback_reason"
	Fault               = "fault"        // what is wrong with the slice; written only if a slice has one
	FaultReason         = "fault_reason" // the figures that show it
)

// FaultDuplicate is the fault of a slice that was scanned twice: the blade cut nothing off before it.
const FaultDuplicate = "duplicate"

// sliceColumns holds the columns that every written table has, even if empty.
var sliceColumns = []string{SliceID, Use, ExcludeReason, QualityScore, GalvoConfidence, GalvoFix, Notes, Rehomed, RehomingReliable, AutoExcluded,
	AutoExcludeReason, Interpolated, InterpolationFailed, InterpolationMethod, InterpolationReason}

// faultColumns holds the columns that a written table has if at least one slice has a fault.
var faultColumns = []string{Fault, FaultReason}

// truthColumns holds the columns whose values are written as true or false.
var truthColumns = []string{Use, GalvoFix, Rehomed, AutoExcluded, Interpolated, InterpolationFailed}

// SliceTable is a slice configuration (slice_config.csv) with all of its columns, to be changed and written again.
// The zero value is an empty table.
type SliceTable struct {
	rows  map[int]*SliceRow
	extra []string // further columns, in the order of the file
}

// SliceRow is a slice's row of a [SliceTable].
type SliceRow struct {
	ID     int
	Line   int               // in the file; 0: a new row
	fields map[string]string // by column
}

// ReadSliceTable reads a slice configuration. Only the column slice_id is needed; columns that this package does
// not know are kept. A duplicate slice is an error, and so is a use that is neither true nor false. name is the
// file's name in errors.
func ReadSliceTable(r io.Reader, name string) (*SliceTable, error) {
	t, err := openKept(r, name, SliceID)
	if err != nil {
		return nil, err
	}
	s := &SliceTable{}
	for _, c := range t.header {
		if c != "" && !slices.Contains(sliceColumns, c) && !slices.Contains(faultColumns, c) {
			s.extra = append(s.extra, c)
		}
	}
	for {
		ok, err := t.next()
		if err != nil || !ok {
			return s, err
		}
		id, err := t.id(SliceID)
		if err != nil {
			return nil, err
		}
		if first := s.Row(id); first != nil {
			return nil, t.errorf("slice %d is already on line %d", id, first.Line)
		}
		for _, c := range []string{Use, AutoExcluded} {
			if _, err := t.truth(c, false); err != nil {
				return nil, err
			}
		}
		texts, err := t.fields()
		if err != nil {
			return nil, err
		}
		row := s.Add(id)
		row.Line = t.line
		for i, text := range texts {
			switch c := t.header[i]; {
			case c == "" && text != "":
				return nil, t.errorf("%.100q is in column %d, which has no name", text, i+1)
			case c != SliceID:
				row.Set(c, text)
			}
		}
	}
}

// IDs returns the numbers of the slices in the table, in increasing order.
func (s *SliceTable) IDs() []int {
	var ids []int
	for id := range s.rows {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

// Row returns the row of a slice, or nil.
func (s *SliceTable) Row(id int) *SliceRow { return s.rows[id] }

// Add returns the row of a slice, and appends an empty one if there is none.
func (s *SliceTable) Add(id int) *SliceRow {
	if s.rows == nil {
		s.rows = map[int]*SliceRow{}
	}
	row := s.rows[id]
	if row == nil {
		row = &SliceRow{ID: id, fields: map[string]string{}}
		s.rows[id] = row
	}
	return row
}

// Stamp returns the row of a slice to write a decision into. A slice that has none gets one with use=false: nobody
// decided to use it.
func (s *SliceTable) Stamp(id int) *SliceRow {
	row := s.Row(id)
	if row == nil {
		row = s.Add(id)
		row.SetBool(Use, false)
	}
	return row
}

// Text returns the text of a column, "" if the row has none.
func (r *SliceRow) Text(column string) string { return r.fields[column] }

// Bool reports whether a column has a text for true.
func (r *SliceRow) Bool(column string) bool {
	v, _ := truth(r.fields[column])
	return v
}

// Set writes a text into a column. The columns of a table are those of this package and those of its file.
func (r *SliceRow) Set(column, text string) {
	if v, ok := truth(text); ok && slices.Contains(truthColumns, column) {
		text = fmt.Sprint(v)
	}
	if text == "" {
		delete(r.fields, column)
		return
	}
	r.fields[column] = text
}

// SetBool writes true or false into a column.
func (r *SliceRow) SetBool(column string, v bool) { r.fields[column] = fmt.Sprint(v) }

// SliceName returns a slice's number as tables and file names have it: at least two digits.
func SliceName(id int) string { return fmt.Sprintf("%02d", id) }

// Write writes the table as CSV with CRLF line ends, and with rows in the order of slice numbers. The columns of this
// package come first (those of faults only if a slice has one), then the columns that only the read file had.
func (s *SliceTable) Write(dst io.Writer) error {
	w := csv.NewWriter(dst)
	w.UseCRLF = true
	columns := slices.Clone(sliceColumns)
	for _, row := range s.rows {
		if row.fields[Fault] != "" {
			columns = append(columns, faultColumns...)
			break
		}
	}
	columns = append(columns, s.extra...)
	rows := [][]string{columns}
	for _, id := range s.IDs() {
		text := []string{SliceName(id)}
		for _, c := range columns[1:] {
			text = append(text, s.rows[id].fields[c])
		}
		rows = append(rows, text)
	}
	return w.WriteAll(rows)
}
