package registration

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"strata/pkg/document"
)

// table reads a CSV file with a header row by column names.
type table struct {
	name    string
	r       *csv.Reader
	columns map[string]int
	row     []string
	line    int // of row
}

// openTable reads the header. It must have the needed columns, in any order,
// each once; others are not looked at.
func openTable(r io.Reader, name string, needed ...string) (*table, error) {
	b, err := document.Lines(r, name)
	if err != nil {
		return nil, err
	}
	b = bytes.TrimPrefix(b, []byte("\xef\xbb\xbf"))
	t := &table{name: name, r: csv.NewReader(bytes.NewReader(b)), columns: map[string]int{}}
	t.r.FieldsPerRecord = -1
	t.r.ReuseRecord = true
	t.r.TrimLeadingSpace = true
	if ok, err := t.next(); err != nil {
		return nil, err
	} else if !ok {
		return nil, fmt.Errorf("%s:1: the file is empty, want a header with the columns %s", name, strings.Join(needed, ", "))
	}
	if len(t.row) == 1 && len(needed) > 1 {
		for _, c := range ";\t|" {
			if strings.ContainsRune(t.row[0], c) {
				return nil, fmt.Errorf("%s:%d: columns are separated by %q, want commas", name, t.line, string(c))
			}
		}
	}
	twice := ""
	for i, c := range t.row {
		c = strings.TrimSpace(c)
		if _, ok := t.columns[c]; ok && c != "" {
			twice = c
		}
		t.columns[c] = i
	}
	for _, c := range needed {
		if _, ok := t.columns[c]; !ok {
			return nil, fmt.Errorf("%s:%d: there is no column %q (columns are %.200q)", name, t.line, c, t.row)
		}
	}
	if twice != "" {
		return nil, fmt.Errorf("%s:%d: column %q appears twice", name, t.line, twice)
	}
	return t, nil
}

// next goes to the next row that is not blank; ok is false at the end.
func (t *table) next() (ok bool, err error) {
	for {
		t.row, err = t.r.Read()
		if err == io.EOF {
			return false, nil
		}
		var p *csv.ParseError
		if errors.As(err, &p) {
			return false, fmt.Errorf("%s:%d: %w", t.name, p.Line, p.Err)
		}
		if err != nil {
			return false, fmt.Errorf("%s: %w", t.name, err)
		}
		t.line, _ = t.r.FieldPos(0)
		for _, f := range t.row {
			if strings.TrimSpace(f) != "" {
				return true, nil
			}
		}
	}
}

// text returns a field of the row, or "" if the row or the table does not have it.
func (t *table) text(column string) string {
	i, ok := t.columns[column]
	if !ok || i >= len(t.row) {
		return ""
	}
	return strings.TrimSpace(t.row[i])
}

func (t *table) errorf(format string, args ...any) error {
	return fmt.Errorf("%s:%d: %w", t.name, t.line, fmt.Errorf(format, args...))
}

// number returns a finite number.
func (t *table) number(column string) (float64, error) {
	v, err := strconv.ParseFloat(t.text(column), 64)
	if err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
		return 0, t.errorf("%s is %q, want a number", column, t.text(column))
	}
	return v, nil
}

// id returns the number of a slice; "3", "03" and "3.0" are the same one.
func (t *table) id(column string) (int, error) {
	v, ok := wholeNumber(t.text(column))
	if !ok {
		return 0, t.errorf("%s is %q, want the number of a slice", column, t.text(column))
	}
	return v, nil
}

// wholeNumber reads a whole number from 0 on that may be written as a float.
func wholeNumber(s string) (int, bool) {
	v, err := strconv.ParseFloat(s, 64)
	if err != nil || v < 0 || v > 1e9 || v != math.Trunc(v) {
		return 0, false
	}
	return int(v), true
}

// truth returns a boolean, or the default if the field is empty.
func (t *table) truth(column string, def bool) (bool, error) {
	switch strings.ToLower(t.text(column)) {
	case "":
		return def, nil
	case "true", "yes", "1", "1.0", "t", "y":
		return true, nil
	case "false", "no", "0", "0.0", "f", "n":
		return false, nil
	}
	return false, t.errorf("%s is %q, want true or false", column, t.text(column))
}
