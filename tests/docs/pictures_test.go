package docs

import (
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestPicturesAreCurrent fails for a picture that was made from other files than there are, by the hash that
// scripts/docs-pictures.sh recorded, and for a PNG in docs that it does not make.
func TestPicturesAreCurrent(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "docs", "pictures.tsv"))
	if err != nil {
		t.Fatal(err)
	}
	var recorded []string
	for line := range strings.Lines(string(text)) {
		f := strings.Split(strings.TrimSpace(line), "\t")
		if len(f) != 3 {
			t.Fatalf("docs/pictures.tsv: %q: want a picture, a hash and patterns", line)
		}
		recorded = append(recorded, filepath.Join(root, f[0]))
		if got := hashOf(t, strings.Fields(f[2])); got != f[1] {
			t.Errorf("%s was made when its inputs (%s) were others: look at it, and run scripts/docs-pictures.sh %s", f[0], f[2], f[0])
		}
	}
	err = filepath.WalkDir(filepath.Join(root, "docs"), func(name string, _ fs.DirEntry, err error) error {
		if err == nil && filepath.Ext(name) == ".png" && !slices.Contains(recorded, name) {
			t.Errorf("%s is not in docs/pictures.tsv: let scripts/docs-pictures.sh make it", name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// comments matches lines of comments, which no picture shows.
var comments = regexp.MustCompile(`(?m)^[ \t]*//.*\n`)

// hashOf returns what the script calls the hash of the files that match.
func hashOf(t *testing.T, patterns []string) string {
	var names []string
	for _, p := range patterns {
		list, err := filepath.Glob(filepath.Join(root, p))
		if err != nil || len(list) == 0 {
			t.Errorf("docs/pictures.tsv: no file %s", p)
		}
		for _, name := range list {
			if !strings.HasSuffix(name, "_test.go") {
				rel, err := filepath.Rel(root, name)
				if err != nil {
					t.Fatal(err)
				}
				names = append(names, rel)
			}
		}
	}
	slices.Sort(names)
	all := sha256.New()
	for _, name := range names {
		b, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(all, "%x  %s\n", sha256.Sum256(comments.ReplaceAll(b, nil)), name)
	}
	return fmt.Sprintf("%x", all.Sum(nil))[:16]
}
