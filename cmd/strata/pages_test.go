package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"strata/pkg/cli"
	"strata/pkg/cli/flags"
)

// tools are the programs that docs/stages/ leaves to other pages.
var tools = []string{"start", "explain", "view", "preview", "qc-report", "phantom", "zarr-tool", "doctor", "sif", "bench-zarr", "bench-io", "bench-tiff", "bench-czi", "bench-tile"}

// longFlag matches a flag in a text.
var longFlag = regexp.MustCompile(`(?:^|[\s(])--([a-z][a-z0-9_-]*)`)

// TestStagePages fails for a stage without a page in docs/stages/. It fails for a flag there, in docs/tiles.md or in
// docs/volumes.md that no program has, as lists of flags spell it, and for one in an example that its program does not
// have.
func TestStagePages(t *testing.T) {
	all := flags.Group("strata", "all programs", members)
	all.Whole()
	known := map[string]bool{}
	flagsOf(all, known)
	pages, err := filepath.Glob("../../docs/stages/*.md")
	if err != nil || len(pages) < 20 {
		t.Fatalf("%d pages, %v", len(pages), err)
	}
	for _, m := range members {
		if page := filepath.Join("../../docs/stages", m.Name+".md"); !slices.Contains(tools, m.Name) && !slices.Contains(pages, page) {
			t.Errorf("%s has no page %s", m.Name, page)
		}
	}
	pages = append(pages, "../../docs/tiles.md", "../../docs/volumes.md")
	named, examples := 0, 0
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			line, _, _ = strings.Cut(line, "    # ")
			of := known
			if example, is := strings.CutPrefix(line, "    strata "); is {
				examples++
				program, _, _ := strings.Cut(example, " ")
				i := slices.IndexFunc(all.Commands, func(c *cli.Command) bool { return c.Name == program })
				if i < 0 {
					t.Errorf("%s: there is no program %q", page, program)
					continue
				}
				of = map[string]bool{}
				flagsOf(all.Commands[i], of)
			}
			for _, m := range longFlag.FindAllStringSubmatch(strings.ReplaceAll(line, "`", " "), -1) {
				named++
				if name := strings.TrimPrefix(m[1], "no-"); !of[name] {
					t.Errorf("%s: there is no flag --%s: %s", page, m[1], line)
				}
			}
		}
	}
	if named < 200 || examples < 25 {
		t.Errorf("only %d flags and %d examples were found", named, examples)
	}
}

// flagsOf adds the names of the flags of a command, and of the commands below it.
func flagsOf(c *cli.Command, names map[string]bool) {
	for _, f := range c.All() {
		names[f.Name] = true
	}
	for _, sub := range c.Commands {
		flagsOf(sub, names)
	}
}
