package main

import (
	"encoding/csv"
	"os"
	"slices"
	"strings"
	"testing"

	"strata/tests/regions"
)

// The page shows the rows of the sheet that it is to show, and the sheet has each job with all data.
func TestPage(t *testing.T) {
	f, err := os.Open("../../docs/" + sheetFile)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	if want := 1 + len(jobs())*len(sets); len(rows) != want || !slices.Equal(rows[0], sheetHead) {
		t.Errorf("%d rows below %q, want %d", len(rows), rows[0], want)
	}
	table, err := onPage(rows)
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("../../docs/dependencies.md")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := regions.Text(string(page), "codecs"); err != nil || !strings.HasPrefix(got, "\n"+table+"\nMeasured on ") {
		t.Errorf("docs/dependencies.md has other rows than the sheet: %v", err)
	}
}

// Rows of the image and of a faster library are shown.
func TestOnPage(t *testing.T) {
	rows := [][]string{sheetHead, {"a", image, "l", "2", "1", "2.00", "1.50", "2.50", ""}, {"a", "text", "l", "2", "1", "2.00", "1.50", "2.50", ""}, {"b", "text", "l", "1", "2", "0.50", "0.40", "0.60", "1.1"}}
	got, err := onPage(rows)
	if want := "| a | " + image + " | 2 | 1 | 2.00 (1.50–2.50) |  |\n| b | text | 1 | 2 | 0.50 (0.40–0.60) | 1.1 |\n"; err != nil || !strings.HasSuffix(got, "|\n"+want) {
		t.Errorf("%q, %v", got, err)
	}
}

// Both do each job, with the same result; a codec that returned other bytes would end the measurement.
func TestJobs(t *testing.T) {
	data := []byte(strings.Repeat("a slice of a brain, and the next slice of the brain; ", 2000))
	for _, j := range jobs() {
		row, err := j.measure(data, 1)
		if err != nil || len(row) != len(sheetHead)-3 {
			t.Errorf("%s: %q, %v", j.name, row, err)
		}
	}
}
