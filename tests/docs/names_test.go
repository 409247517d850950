package docs

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// commandsOf returns the lines of code blocks of a document, indented or fenced.
func commandsOf(document string) (lines []string) {
	fenced := false
	for line := range strings.Lines(document) {
		if strings.HasPrefix(strings.TrimSpace(line), "```") {
			fenced = !fenced
		} else if fenced || strings.HasPrefix(line, "    ") {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	return lines
}

// TestNamesOfOthers fails for a command that starts another program where the package of another program is installed: view is vim's. The
// documents type strata view.
func TestNamesOfOthers(t *testing.T) {
	var taken []string
	for _, m := range regexp.MustCompile(`(?m)^([a-z-]+)\t.*\t.*\t`).FindAllStringSubmatch(text(t, "packaging/debian/names.tsv"), -1) {
		taken = append(taken, m[1])
	}
	taken = slices.Compact(taken)
	if len(taken) < 3 {
		t.Fatalf("only %q are names of others", taken)
	}
	bare := regexp.MustCompile(`(^|[|;&(] *)(sudo |time )?(` + strings.Join(taken, "|") + `)( |$)`)
	if !bare.MatchString("a && view x") || !bare.MatchString("view x") || bare.MatchString("strata view x") {
		t.Fatal("the pattern does not find commands")
	}
	commands := 0
	for _, name := range tracked(t, "*.md") {
		if name == "docs/architecture.md" || name == "CHANGELOG.md" { // a map of the code; what was
			continue
		}
		for _, line := range commandsOf(text(t, name)) {
			commands++
			if bare.MatchString(line) {
				t.Errorf("%s: %q may start another program: want strata before the name", name, line)
			}
		}
	}
	if commands < 100 {
		t.Fatalf("only %d commands were found", commands)
	}
}
