package registration

import (
	"encoding/csv"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
)

// ShiftTable is a shifts CSV with all of its rows and columns, to be changed and written again.
type ShiftTable struct {
	Name string
	Rows []ShiftRow // in the order of the file

	// Judged reports whether there is a column "reliable". Without it all rows are reliable.
	Judged bool
	header []string // of the file; nil: there is none
}

// ShiftRow is a row of a [ShiftTable]. The shift, in millimetres, is the position of the moving slice's content
// relative to that of the fixed one.
type ShiftRow struct {
	PairShift
	PX       [2]float64 // the shift (x, y) in pixels; NaN: not given
	Reliable bool
	Line     int      // in the file
	fields   []string // as read, in the order of the file
	was      *ShiftRow
}

// The columns of a table that has no file.
var shiftColumns = []string{"fixed_id", "moving_id", "x_shift", "y_shift", "x_shift_mm", "y_shift_mm", "reliable"}

// ReadShiftTable reads a shifts CSV, like [ReadShifts], with the shifts in pixels and the column "reliable" where
// it has them, and keeps the text of all other columns. name is the file's name in errors.
func ReadShiftTable(r io.Reader, name string) (*ShiftTable, error) {
	t, err := openKept(r, name, "fixed_id", "moving_id", "x_shift_mm", "y_shift_mm")
	if err != nil {
		return nil, err
	}
	_, judged := t.columns["reliable"]
	s := &ShiftTable{Name: name, Judged: judged, header: t.header}
	lines := map[[2]int]int{}
	for {
		ok, err := t.next()
		if err != nil || !ok {
			return s, err
		}
		row := ShiftRow{Line: t.line}
		if row.PairShift, err = t.pair(); err != nil {
			return nil, err
		}
		pair := [2]int{row.Fixed, row.Moving}
		if first, ok := lines[pair]; ok {
			return nil, t.twice(row.PairShift, first)
		}
		lines[pair] = t.line
		for i, column := range []string{"x_shift", "y_shift"} {
			if row.PX[i] = math.NaN(); t.text(column) == "" || strings.EqualFold(t.text(column), "nan") {
				continue
			}
			if row.PX[i], err = t.number(column); err != nil {
				return nil, err
			}
		}
		if row.Reliable, err = t.truth("reliable", true); err != nil {
			return nil, err
		}
		if row.fields, err = t.fields(); err != nil {
			return nil, err
		}
		read := row
		row.was = &read
		s.Rows = append(s.Rows, row)
	}
}

// Sort orders the rows by moving slice, then by fixed slice.
func (s *ShiftTable) Sort() {
	slices.SortStableFunc(s.Rows, func(a, b ShiftRow) int {
		if a.Moving != b.Moving {
			return a.Moving - b.Moving
		}
		return a.Fixed - b.Fixed
	})
}

// IDs returns the numbers of all slices in the table, in increasing order.
func (s *ShiftTable) IDs() []int {
	var ids []int
	for _, row := range s.Rows {
		ids = append(ids, row.Fixed, row.Moving)
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// Shifts returns the shifts of the table, as [ReadShifts] reads them from a file.
func (s *ShiftTable) Shifts() *Shifts {
	out := &Shifts{s.Name, map[[2]int]pairShift{}}
	for _, r := range s.Rows {
		out.pairs[[2]int{r.Fixed, r.Moving}] = pairShift{r.X, r.Y, r.Line}
	}
	return out
}

// Write writes the table as CSV, with lines that end in LF or, as Python's csv module does, in CRLF. Numbers that
// were not changed keep their text. The column "reliable" is written if the table is Judged: as 1 or 0, in a table
// without a file as 1.0 or 0.0 like all of its numbers.
func (s *ShiftTable) Write(dst io.Writer, crlf bool) error {
	header := s.header
	if header == nil {
		header = shiftColumns
	}
	if s.Judged && !slices.Contains(header, "reliable") {
		header = append(slices.Clone(header), "reliable")
	}
	w := csv.NewWriter(dst)
	w.UseCRLF = crlf
	rows := [][]string{header}
	for _, row := range s.Rows {
		text := make([]string, len(header))
		copy(text, row.fields)
		for i, column := range header {
			if now, changed := row.text(column); changed {
				text[i] = now
			}
		}
		rows = append(rows, text)
	}
	return w.WriteAll(rows)
}

// text returns the text to write into a column, and whether it differs from the text that was read.
func (r *ShiftRow) text(column string) (text string, changed bool) {
	number := func(of func(*ShiftRow) float64) (string, bool) {
		now := of(r)
		if r.was != nil && same(now, of(r.was)) {
			return "", false
		}
		if math.IsNaN(now) {
			return "", true
		}
		return Float(now), true
	}
	switch column {
	case "fixed_id":
		return number(func(r *ShiftRow) float64 { return float64(r.Fixed) })
	case "moving_id":
		return number(func(r *ShiftRow) float64 { return float64(r.Moving) })
	case "x_shift":
		return number(func(r *ShiftRow) float64 { return r.PX[0] })
	case "y_shift":
		return number(func(r *ShiftRow) float64 { return r.PX[1] })
	case "x_shift_mm":
		return number(func(r *ShiftRow) float64 { return r.X })
	case "y_shift_mm":
		return number(func(r *ShiftRow) float64 { return r.Y })
	case "reliable":
		text = "0"
		if r.Reliable {
			text = "1"
		}
		if r.was == nil {
			text += ".0"
		}
		return text, true
	}
	return "", false
}

// same reports whether two numbers are equal, or both NaN.
func same(a, b float64) bool { return a == b || math.IsNaN(a) && math.IsNaN(b) }

// Float returns the text of a number as Python prints it: the shortest that is read as the same number, with a
// decimal point or an exponent.
func Float(v float64) string {
	if math.IsNaN(v) {
		return "nan"
	}
	if math.IsInf(v, 0) {
		return strings.ToLower(strings.TrimPrefix(strconv.FormatFloat(v, 'g', -1, 64), "+"))
	}
	if a := math.Abs(v); v != 0 && (a < 1e-4 || a >= 1e16) {
		return strconv.FormatFloat(v, 'e', -1, 64)
	}
	s := strconv.FormatFloat(v, 'f', -1, 64)
	if !strings.Contains(s, ".") {
		s += ".0"
	}
	return s
}
