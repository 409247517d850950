package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"strata/tests/regions"
)

// The page is what the sheets beside it make, and shows each scan that it is to show.
func TestSheets(t *testing.T) {
	page, err := os.ReadFile("../../docs/quality.md")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	copied := filepath.Join(dir, "quality.md")
	if err := os.WriteFile(copied, page, 0o666); err != nil {
		t.Fatal(err)
	}
	least := map[string]int{"quality": 6, "folder": 6, "scans": 12, "tiles": 40, "tile peers": 22}
	for _, s := range sheets {
		b, err := os.ReadFile(filepath.Join("../../docs", s.file))
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, s.file), b, 0o666)
		}
		if err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(string(b), "\n") - 1; n < least[s.table] {
			t.Errorf("%s has %d rows, want %d", s.file, n, least[s.table])
		}
		text, err := regions.Text(string(page), s.table)
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range s.shown {
			scan, _, _ := strings.Cut(row, ", ")
			if !strings.Contains(text, "\n| "+row+" |") && !strings.Contains(text, "\n| "+scan+" | "+strings.TrimPrefix(row, scan+", ")+" |") {
				t.Errorf("docs/quality.md does not show %q of %s", row, s.file)
			}
		}
	}
	if err := render(copied); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(copied); err != nil || string(got) != string(page) {
		t.Errorf("docs/quality.md is not what its sheets make (go run ./tests/quality -render -page docs/quality.md); %v", err)
	}
}

// The page has the chosen rows, by one cell or two, and lacks the hidden columns.
func TestOnPage(t *testing.T) {
	s := sheet{shown: []string{"a", "b, 2"}, hidden: []string{"left out", "too"}}
	got := s.onPage("| scan | n | left out | v | too |\n|---|---|---:|---:|---:|\n| a | 1 | x | 3 | |\n| b | 1 | x | 4 | |\n| b | 2 | x | 5 | |\n| *all* | | | | |\n")
	if want := "| scan | n | v |\n|---|---|---:|\n| a | 1 | 3 |\n| b | 2 | 5 |\n| *all* |  |  |\n"; got != want {
		t.Errorf("%q, want %q", got, want)
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

// A page that is written of measured tables is the one that the sheets make.
func TestWritePageIsRender(t *testing.T) {
	dir := t.TempDir()
	page := filepath.Join(dir, "page.md")
	empty := ""
	tables := map[string]string{}
	for _, s := range sheets {
		empty += "<!-- " + s.table + ": begin -->\n<!-- " + s.table + ": end -->\n"
		tables[s.table] = "| scan | kind | v |\n|---|---|---|\n| base, ihc | x | 1 |\n| *all* | | |\n"
	}
	if err := os.WriteFile(page, []byte(empty), 0o666); err != nil {
		t.Fatal(err)
	}
	if err := writePage(page, tables); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if err := render(page); err != nil {
		t.Fatal(err)
	}
	if again, err := os.ReadFile(page); err != nil || string(again) != string(got) || !strings.Contains(string(got), "| *all* |") {
		t.Errorf("%s\nrendered:\n%s%v", got, again, err)
	}
}
