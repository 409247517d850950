package docs

import (
	"path/filepath"
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

// TestNamesOfOthers fails for a command that starts another program where the package of another program is installed:
// view is vim's. The documents type strata view.
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

// TestSpellingOfFlags fails for a command of ours in a document or in an example of --help that spells a flag with a
// dash inside its name, where lists of flags have an underscore. Only no- stands before a name with a dash, as in the
// lists.
func TestSpellingOfFlags(t *testing.T) {
	ours := map[string]bool{}
	for _, name := range programs(t) {
		ours[name] = true
	}
	pattern := regexp.MustCompile(` --[a-z0-9_]+-[a-z]`)
	dashed := func(command string) bool { return pattern.MatchString(strings.ReplaceAll(command, " --no-", " --no_")) }
	check := func(place, command string) (is bool) {
		command, _, _ = strings.Cut(command, " # ")
		first, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(command, "$ "), "strata "), " ")
		if is = ours[first]; is && dashed(command) {
			t.Errorf("%s: %q has a flag with a dash in its name: want an underscore", place, command)
		}
		return is
	}
	commands := 0
	count := func(is bool) {
		if is {
			commands++
		}
	}
	for _, name := range tracked(t, "*.md") {
		if name == "CHANGELOG.md" { // what was
			continue
		}
		document := text(t, name)
		for _, line := range commandsOf(document) {
			count(check(name, line))
		}
		for _, span := range code.FindAllString(fenced.ReplaceAllString(document, ""), -1) {
			count(check(name, strings.Trim(span, "`")))
		}
	}
	example := regexp.MustCompile(`\{Command: "((?:[^"\\]|\\.)*)"`)
	for _, name := range tracked(t, "cmd/*.go") {
		for _, m := range example.FindAllStringSubmatch(text(t, name), -1) {
			count(check(name, m[1]))
		}
	}
	if commands < 300 {
		t.Errorf("only %d commands were found", commands)
	}
	if !dashed("a --no-max-tiles") || !dashed("a --max-tiles 3") || dashed("a --no-use_gpu --max_tiles") {
		t.Error("the pattern does not find flags with dashes")
	}
}

// programs returns the names of our programs.
func programs(t *testing.T) (names []string) {
	found, err := filepath.Glob(filepath.Join(root, "cmd", "*", "main.go"))
	if err != nil || len(found) < 10 {
		t.Fatalf("%d programs, %v", len(found), err)
	}
	for _, main := range found {
		names = append(names, filepath.Base(filepath.Dir(main)))
	}
	return names
}
