package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The page is what the sheets in git make, and has a row for each set and frame that it is to show.
func TestPageIsOfSheets(t *testing.T) {
	dir := t.TempDir()
	if err := render("../../docs", dir); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(filepath.Join(dir, page))
	if err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile(filepath.Join("../../docs", page))
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("docs/%s is not what its sheets make (go run ./lab/zstdlevels -render); %v", page, err)
	}
	for _, data := range shownFrames {
		if !strings.Contains(string(want), "\n| "+data+" | strata |") || !strings.Contains(string(want), "\n| "+data+" | libzstd |") {
			t.Errorf("docs/%s has no decoding of %s", page, data)
		}
	}
}

// What is missing or no number in a sheet is named.
func TestSheetErrors(t *testing.T) {
	dir := t.TempDir()
	for text, want := range map[string]string{"a,b\n": "the columns are not data,level", "": "the columns are not", "a\n\"": "parse error"} {
		if err := os.WriteFile(levelsSheet.path(dir), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		if _, err := levelsSheet.read(dir); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want %q", text, err, want)
		}
	}
	if _, err := levelsTable(nil); err == nil || !strings.Contains(err.Error(), "has no level 1 of image 128³ float32") {
		t.Errorf("error %v, want one that names the row", err)
	}
	if _, err := levelsTable([][]string{{shownData[0], "1", "x", "1", "1", "1"}}); err == nil || !strings.Contains(err.Error(), "level 1") {
		t.Errorf("error %v, want one that names the value", err)
	}
}
