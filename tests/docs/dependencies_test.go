package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/mod/modfile"
)

// moduleRow matches a row of a table that begins with a module.
var moduleRow = regexp.MustCompile(`(?m)^\| ((?:[a-z0-9-]+\.)+[a-z]+/\S+) \|`)

// docs/dependencies.md has a row for each module that go.mod requires for the product itself, and no others.
func TestDependenciesAreListed(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	mod, err := modfile.Parse("go.mod", text, nil)
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, r := range mod.Require {
		if !r.Indirect || slices.ContainsFunc(mod.Tool, func(tool *modfile.Tool) bool { return strings.HasPrefix(tool.Path, r.Mod.Path+"/") }) {
			want = append(want, r.Mod.Path)
		}
	}
	page, err := os.ReadFile(filepath.Join(root, "docs", "dependencies.md"))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, m := range moduleRow.FindAllStringSubmatch(string(page), -1) {
		got = append(got, m[1])
	}
	slices.Sort(want)
	slices.Sort(got)
	if len(want) < 20 || !slices.Equal(got, want) {
		t.Errorf("docs/dependencies.md lists %q, go.mod requires %q", got, want)
	}
}
