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

	"strata/pkg/address"
	"strata/pkg/smallfile"
)

// table reads a CSV file with a header row by column names.
type table struct {
	name    string
	r       *csv.Reader
	columns map[string]int
	header  []string // as in columns
	row     []string
	line    int // of row
	size    int // of the file, bytes
}

// Limits of tables that are kept whole.
const (
	keptBytes   = 4 << 20
	keptColumns = 256
)

// openKept opens a table that is kept whole in memory. It limits the size and the number of columns.
func openKept(r io.Reader, name string, needed ...string) (*table, error) {
	t, err := openTable(r, name, needed...)
	switch {
	case err != nil:
		return nil, err
	case t.size > keptBytes:
		return nil, fmt.Errorf("%s: is longer than %d MiB", name, keptBytes>>20)
	case len(t.header) > keptColumns:
		return nil, t.errorf("%d columns, want at most %d", len(t.header), keptColumns)
	}
	return t, nil
}

// openTable reads the header. It must have the needed columns, in any order,
// each once; others are not looked at.
func openTable(r io.Reader, name string, needed ...string) (*table, error) {
	b, err := smallfile.Lines(r, name)
	if err != nil {
		return nil, err
	}
	b = bytes.TrimPrefix(b, []byte("\xef\xbb\xbf"))
	t := &table{name: name, r: csv.NewReader(bytes.NewReader(b)), columns: map[string]int{}, size: len(b)}
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
		t.header = append(t.header, c)
		if _, ok := t.columns[c]; ok && c != "" {
			twice = c
		}
		t.columns[c] = i
	}
	for _, c := range needed {
		if _, ok := t.columns[c]; !ok {
			return nil, fmt.Errorf("%s:%d: there is no column %q (columns are %s)", name, t.line, c, t.names())
		}
	}
	if twice != "" {
		return nil, fmt.Errorf("%s:%d: column %s appears twice", name, t.line, address.Quoted(twice))
	}
	return t, nil
}

// next reads the next row that is not blank; ok is false at the end.
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

// readRows opens a table with the needed columns and reads a value from each of its rows.
func readRows[T any](open func(io.Reader, string, ...string) (*table, error), r io.Reader, name string, needed []string, read func(t *table, v *T) error) ([]T, error) {
	t, err := open(r, name, needed...)
	if err != nil {
		return nil, err
	}
	var out []T
	for {
		ok, err := t.next()
		if err != nil || !ok {
			return out, err
		}
		var v T
		if err := read(t, &v); err != nil {
			return nil, err
		}
		out = append(out, v)
	}
}

// sliceID is the destination for the number of a slice.
type sliceID struct{ *int }

// read parses fields of the row into the given destinations. The type of a destination determines the format: a
// [sliceID]; an *int for a whole number from 0 on; a *float64; or a *bool, which an empty field makes false.
func (t *table) read(columns []string, into ...any) (err error) {
	for i, column := range columns {
		switch dst := into[i].(type) {
		case sliceID:
			*dst.int, err = t.id(column)
		case *int:
			*dst, err = t.count(column)
		case *float64:
			*dst, err = t.number(column)
		case *bool:
			*dst, err = t.truth(column, false)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// text returns a field of the row, or "" if the row or the table does not have it.
func (t *table) text(column string) string {
	i, ok := t.columns[column]
	if !ok || i >= len(t.row) {
		return ""
	}
	return strings.TrimSpace(t.row[i])
}

// quoted returns a field of the row as messages quote it.
func (t *table) quoted(column string) string { return address.Quoted(t.text(column)) }

// names returns the names of the first columns as messages quote them.
func (t *table) names() string {
	const most = 12
	var out []string
	for i, c := range t.header {
		if i == most {
			out = append(out, fmt.Sprintf("… %d more", len(t.header)-most))
			break
		}
		out = append(out, address.Quoted(c))
	}
	return "[" + strings.Join(out, " ") + "]"
}

func (t *table) errorf(format string, args ...any) error {
	return fmt.Errorf("%s:%d: %w", t.name, t.line, fmt.Errorf(format, args...))
}

// number returns a number of a size that can be meant.
func (t *table) number(column string) (float64, error) {
	v, err := number(t.text(column))
	if err != nil {
		return 0, t.errorf("%s is %w", column, err)
	}
	return v, nil
}

// farthest bounds the numbers of all files: positions and shifts in any unit beyond it are mistakes, with which whole
// numbers would overflow.
const farthest = 1e12

// number reads a finite number of at most [farthest], either way.
func number(s string) (float64, error) {
	v, err := strconv.ParseFloat(s, 64)
	switch {
	case errors.Is(err, strconv.ErrRange), err == nil && math.Abs(v) > farthest && !math.IsInf(v, 0):
		return 0, fmt.Errorf("%s, want a number from %g to %g", address.Quoted(s), -farthest, farthest)
	case err != nil || math.IsNaN(v) || math.IsInf(v, 0):
		return 0, fmt.Errorf("%s, want a number", address.Quoted(s))
	}
	return v, nil
}

// id returns the number of a slice; "3", "03" and "3.0" are the same one.
func (t *table) id(column string) (int, error) { return t.whole(column, "the number of a slice") }

// count returns a whole number from 0 on.
func (t *table) count(column string) (int, error) {
	return t.whole(column, "a whole number from 0 on")
}

func (t *table) whole(column, want string) (int, error) {
	v, ok := wholeNumber(t.text(column))
	if !ok {
		return 0, t.errorf("%s is %s, want %s", column, t.quoted(column), want)
	}
	return v, nil
}

// repeated returns an error if an earlier row of the table was about the same slice; lines has the lines of those rows.
func (t *table) repeated(lines map[int]int, slice int) error {
	if first, ok := lines[slice]; ok {
		return t.errorf("slice %d is already on line %d", slice, first)
	}
	lines[slice] = t.line
	return nil
}

// mostWhole bounds the numbers of slices and planes.
const mostWhole = 1e9

// wholeNumber reads a whole number from 0 on that may be written as a float.
func wholeNumber(s string) (int, bool) {
	v, err := strconv.ParseFloat(s, 64)
	if err != nil || v < 0 || v > mostWhole || v != math.Trunc(v) {
		return 0, false
	}
	return int(v), true
}

// fields returns the texts of the row, one per column at most. A text beyond the last column is an error.
func (t *table) fields() ([]string, error) {
	var out []string
	for i, text := range t.row {
		if text = strings.TrimSpace(text); i < len(t.header) {
			out = append(out, text)
		} else if text != "" {
			return nil, t.errorf("%s is in column %d, the header has %d columns", address.Quoted(text), i+1, len(t.header))
		}
	}
	return out, nil
}

// truth returns a boolean, or the default if the field is empty.
func (t *table) truth(column string, def bool) (bool, error) {
	if t.text(column) == "" {
		return def, nil
	}
	v, ok := truth(t.text(column))
	if !ok {
		return false, t.errorf("%s is %s, want true or false", column, t.quoted(column))
	}
	return v, nil
}

// truth reads a boolean.
func truth(s string) (v, ok bool) {
	switch strings.ToLower(s) {
	case "true", "yes", "1", "1.0", "t", "y":
		return true, true
	case "false", "no", "0", "0.0", "f", "n":
		return false, true
	}
	return false, false
}
