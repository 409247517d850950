package docs

import (
	"encoding/csv"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestScriptsOfLinumpy fails if docs/migrating.md and docs/linumpy-scripts.csv lack one of linumpy's console scripts,
// or name one that linumpy does not have.
func TestScriptsOfLinumpy(t *testing.T) {
	var scripts []string
	for line := range strings.Lines(text(t, "tests/docs/testdata/linumpy-scripts.txt")) {
		if !strings.HasPrefix(line, "#") {
			scripts = append(scripts, strings.TrimSpace(line))
		}
	}
	if len(scripts) != 87 {
		t.Fatalf("%d scripts instead of 87", len(scripts))
	}
	var rows []string // their first two cells: where the names of linumpy stand
	for _, row := range regexp.MustCompile(`(?m)^\|([^|]*\|[^|]*)\|`).FindAllStringSubmatch(text(t, "docs/migrating.md"), -1) {
		rows = append(rows, row[1])
	}
	named := regexp.MustCompile("`(linum-[a-z0-9-]+)").FindAllStringSubmatch(strings.Join(rows, "\n"), -1)
	table, err := csv.NewReader(strings.NewReader(text(t, "docs/linumpy-scripts.csv"))).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range table[1:] {
		named = append(named, row[:2]) // for, linumpy, strata
		if row[2] == "" {
			t.Errorf("docs/linumpy-scripts.csv says nothing of %s", row[1])
		}
	}
	seen := map[string]bool{}
	for _, name := range named {
		seen[name[1]] = true
		if !slices.Contains(scripts, name[1]) {
			t.Errorf("linumpy has no script %s", name[1])
		}
	}
	for _, name := range scripts {
		if !seen[name] {
			t.Errorf("no row of docs/migrating.md or docs/linumpy-scripts.csv has %s", name)
		}
	}
}
