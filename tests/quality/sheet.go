package main

import (
	"encoding/csv"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"strata/tests/regions"
)

// A sheet is a table of which the page shows some rows and columns, and a CSV file beside the page has all.
type sheet struct {
	table  string   // its region of the page
	file   string   // beside the page
	texts  int      // leading columns that hold no numbers
	shown  []string // rows on the page, by their first cell or first two; those in italics, which sum up, are always there
	hidden []string // columns that the page lacks
}

var sheets = []sheet{
	{"quality", "quality-volumes.csv", 2, shownVolumes, []string{"seams", "focal plane, µm"}},
	{"scans", "quality-scans.csv", 2, shownScans, nil},
	{"tiles", "quality-tiles.csv", 1, shownTiles, []string{"wrong tiles of the worst", "processor time"}},
	{"tile peers", "quality-peers.csv", 2, shownPeers, []string{"tiles"}},
	{"folder", "quality-folders.csv", 3, shownFolders, []string{"makes", "memory"}},
}

// onPage returns the rows and columns of a Markdown table that the page shows.
func (s sheet) onPage(table string) string {
	var b strings.Builder
	var hidden []int // falling
	n := 0
	for line := range strings.Lines(table) {
		cells := cellsOf(line)
		if n == 0 {
			for i, head := range slices.Backward(cells) {
				if slices.Contains(s.hidden, head) {
					hidden = append(hidden, i)
				}
			}
		}
		shown := n < 2 || strings.HasPrefix(cells[0], "*") || slices.Contains(s.shown, cells[0]) || slices.Contains(s.shown, cells[0]+", "+cells[1])
		if n++; !shown {
			continue
		}
		for _, i := range hidden {
			cells = slices.Delete(cells, i, i+1)
		}
		if n == 2 {
			b.WriteString("|" + strings.Join(cells, "|") + "|\n")
		} else {
			b.WriteString("| " + strings.Join(cells, " | ") + " |\n")
		}
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

// read returns all rows of the file as a Markdown table.
func (s sheet) read(name string) (string, error) {
	f, err := os.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil {
		return "", fmt.Errorf("%s: %w", name, err)
	}
	var b strings.Builder
	for i, row := range rows {
		b.WriteString("| " + strings.Join(row, " | ") + " |\n")
		if i == 0 {
			b.WriteString(strings.Repeat("|---", s.texts) + strings.Repeat("|---:", len(row)-s.texts) + "|\n")
		}
	}
	return b.String(), nil
}

// render writes the regions of a page that its sheets fill.
func render(page string) error {
	texts := map[string]string{}
	for _, s := range sheets {
		table, err := s.read(filepath.Join(filepath.Dir(page), s.file))
		if err != nil {
			return err
		}
		texts[s.table] = s.onPage(table)
	}
	return regions.Write(page, page, texts)
}

// cellsOf returns the cells of a row of a Markdown table.
func cellsOf(row string) (all []string) {
	row = strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(row), "|"), "|")
	for cell := range strings.SplitSeq(row, "|") {
		all = append(all, strings.TrimSpace(cell))
	}
	return all
}
