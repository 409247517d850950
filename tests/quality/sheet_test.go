package main

import (
	"encoding/csv"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"strata/tests/regions"
)

// The page shows rows of the sheets beside it, in their order, and each kind of scan that it is to show.
func TestSheets(t *testing.T) {
	page, err := os.ReadFile("../../docs/quality.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range sheets {
		f, err := os.Open(filepath.Join("../../docs", s.file))
		if err != nil {
			t.Fatal(err)
		}
		rows, err := csv.NewReader(f).ReadAll()
		_ = f.Close()
		if err != nil || len(rows) < 20 {
			t.Fatalf("%s: %d rows, %v", s.file, len(rows), err)
		}
		var table strings.Builder
		for i, row := range rows {
			table.WriteString("| " + strings.Join(row, " | ") + " |\n")
			if i == 0 {
				table.WriteString("|---\n")
			}
		}
		text, err := regions.Text(string(page), s.table)
		if err != nil {
			t.Fatal(err)
		}
		var got, want [][]string
		for line := range strings.Lines(text) {
			got = append(got, cellsOf(line))
		}
		for line := range strings.Lines(s.onPage(table.String())) {
			want = append(want, cellsOf(line))
		}
		got, want = slices.Delete(got, 1, 2), slices.Delete(want, 1, 2)
		if !slices.EqualFunc(got, want, slices.Equal[[]string]) {
			t.Errorf("docs/quality.md shows\n%q\nwant of %s\n%q", got, s.file, want)
		}
		for _, kind := range s.shown {
			if !slices.ContainsFunc(rows, func(row []string) bool { return row[0] == kind }) {
				t.Errorf("%s has no %q", s.file, kind)
			}
		}
	}
}

func TestSheetWrite(t *testing.T) {
	name := filepath.Join(t.TempDir(), "sheet.csv")
	if err := (sheet{}).write(name, "| a | b, px |\n|---|---:|\n| x, y | 1 |\n| *all* | |\n"); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(name); err != nil || string(got) != "a,\"b, px\"\n\"x, y\",1\n*all*,\n" {
		t.Errorf("%q, %v", got, err)
	}
}
