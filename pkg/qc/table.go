package qc

import (
	"bytes"
	"encoding/base64"
	"encoding/csv"
	"html/template"
	"strconv"
	"strings"

	"strata/pkg/webpage"
)

// table is a table of the page, which can be downloaded as CSV.
type table struct {
	File    string // name of the CSV file
	Caption string
	Columns []column
	Rows    [][]cell // of as many cells as there are columns; the first names the row
	Class   string
}

// column is the head of a column; numbers stand at the right. The page writes each time and size in the unit that suits
// it; the CSV file has all of a column in one, which its head there names.
type column struct {
	Name   string
	Number bool
	Unit   string
}

// cell is a value as the page shows it and, where that is not the same, as the CSV file has it.
type cell struct {
	Text  string
	Value string
	Tip   string
	Bad   string // what is shown as a fault after the text
	Parts []part // shown as a bar, in place of the text
	Code  bool
	Spot  *webpage.Spot // place that the text names; nil: none
}

// Shown returns the text as HTML, marked with its place.
func (c cell) Shown() template.HTML { return c.Spot.Mark(c.Text) }

// at returns the cell with the place that its text names.
func (c cell) at(s *webpage.Spot) cell {
	c.Spot = s
	return c
}

// text returns a cell that shows a text.
func text(s string) cell { return cell{Text: s} }

// number returns a cell that shows a number in a form, and has all its digits in the CSV file.
func number(v float64, form string) cell {
	return cell{Text: form, Value: strconv.FormatFloat(v, 'f', -1, 64)}
}

// whole returns a cell of a whole number.
func whole(n int) cell { return text(strconv.Itoa(n)) }

// fixed returns a cell of a number with so many digits after the point.
func fixed(v float64, digits int) cell { return number(v, strconv.FormatFloat(v, 'f', digits, 64)) }

// columnsOf returns columns of these names; "NAME|n" is one of numbers, "NAME|n|UNIT" one that is in a unit in the CSV
// file.
func columnsOf(names ...string) (out []column) {
	for _, n := range names {
		name, rest, isNumber := strings.Cut(n, "|n")
		out = append(out, column{name, isNumber, strings.TrimPrefix(rest, "|")})
	}
	return out
}

// Link returns the attributes of the link that saves the table: the file's name and, so that it works without a
// server, its content. A template would write each plus sign of it in five characters.
func (t *table) Link() template.HTMLAttr {
	return template.HTMLAttr(`download="` + template.HTMLEscapeString(t.File) + `" href="data:text/csv;base64,` + base64.StdEncoding.EncodeToString(t.csv()) + `"`)
}

// csv returns the table as CSV (RFC 4180) in UTF-8, with the byte order mark by which spreadsheets recognise UTF-8.
func (t *table) csv() []byte {
	var b bytes.Buffer
	b.WriteString("\ufeff")
	w := csv.NewWriter(&b)
	record := make([]string, len(t.Columns))
	for i, c := range t.Columns {
		if record[i] = harmless(c.Name); c.Unit != "" {
			record[i] += ", " + c.Unit
		}
	}
	_ = w.Write(record) // into memory
	for _, r := range t.Rows {
		for i, c := range r {
			switch {
			case c.Value != "":
				record[i] = c.Value
			case c.Text == "–":
				record[i] = ""
			default:
				record[i] = harmless(c.Text)
			}
		}
		_ = w.Write(record)
	}
	w.Flush()
	return b.Bytes()
}

// harmless returns a text in a form that no spreadsheet takes for a formula.
func harmless(s string) string {
	if s == "" || !strings.ContainsRune("=+-@\t\r", rune(s[0])) {
		return s
	}
	if _, err := strconv.ParseFloat(s, 64); err == nil {
		return s
	}
	return "'" + s
}
