package main

import (
	"encoding/csv"
	"os"
	"slices"
	"strings"
)

// A sheet is a table of which the page shows some rows, and a CSV file beside the page has all.
type sheet struct {
	table string   // its region of the page
	file  string   // beside the page
	shown []string // first cells of the rows on the page; those in italics, which sum up, are always there
}

var sheets = []sheet{{"tiles", "quality-tiles.csv", shownTiles}, {"tile peers", "quality-peers.csv", shownPeers}}

// onPage returns the rows of a Markdown table that the page shows.
func (s sheet) onPage(table string) string {
	var b strings.Builder
	head := 2 // lines
	for line := range strings.Lines(table) {
		if first := cellsOf(line)[0]; head > 0 || strings.HasPrefix(first, "*") || slices.Contains(s.shown, first) {
			b.WriteString(line)
		}
		head--
	}
	return b.String()
}

// write writes all rows of a Markdown table as CSV.
func (s sheet) write(name, table string) error {
	var b strings.Builder
	w := csv.NewWriter(&b)
	for line := range strings.Lines(table) {
		if strings.HasPrefix(line, "|---") {
			continue
		}
		if err := w.Write(cellsOf(line)); err != nil {
			return err
		}
	}
	w.Flush()
	return os.WriteFile(name, []byte(b.String()), 0o666)
}

// cellsOf returns the cells of a row of a Markdown table.
func cellsOf(row string) (all []string) {
	for cell := range strings.SplitSeq(strings.Trim(strings.TrimSpace(row), "|"), "|") {
		all = append(all, strings.TrimSpace(cell))
	}
	return all
}
