package docs

import (
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
)

// TestLinks fails for a link of a document of ours to a file or heading that is not there.
func TestLinks(t *testing.T) {
	documents := tracked(t, "*.md")
	if len(documents) < 30 {
		t.Fatalf("only %d documents were found", len(documents))
	}
	found := 0
	for _, name := range documents {
		for _, link := range links(text(t, name)) {
			if strings.Contains(link, "://") || strings.HasPrefix(link, "mailto:") {
				continue
			}
			found++
			if err := leads(t, name, link); err != nil {
				t.Errorf("%s: link %s: %v", name, link, err)
			}
		}
	}
	if found < 200 {
		t.Errorf("only %d links were found", found)
	}
	for _, wrong := range []string{"none.md", "#none", "glossary.md#none", "../../outside"} {
		if leads(t, "docs/index.md", wrong) == nil {
			t.Errorf("link %s is taken for a right one", wrong)
		}
	}
}

// TestIndex fails for a document in docs/ or in a folder below it that the index.md beside it does not link to, for
// such an index that docs/index.md does not link to, and for a program without a row in docs/index.md.
func TestIndex(t *testing.T) {
	indexes := 0
	for _, name := range tracked(t, "docs/*.md") {
		folder, file := path.Split(name)
		if name == "docs/index.md" {
			continue
		}
		if file == "index.md" {
			indexes++
			folder, file = "docs/", strings.TrimPrefix(name, "docs/")
		}
		if !slices.Contains(links(text(t, folder+"index.md")), file) {
			t.Errorf("%sindex.md has no link to %s", folder, name)
		}
	}
	if indexes == 0 {
		t.Error("docs/stages/index.md was not found")
	}
	for _, name := range programs(t) {
		if name != "strata" && !regexp.MustCompile("\n\\| .*`"+name+"[` ].*\\|").MatchString(text(t, "docs/index.md")) {
			t.Errorf("docs/index.md has no row for %s", name)
		}
	}
}

// tracked lists the files of the repository that match a pattern of git, and those that are about to be added.
func tracked(t *testing.T, pattern string) []string {
	t.Helper()
	c := exec.Command("git", "ls-files", "--cached", "--others", "--exclude-standard", "--", pattern)
	c.Dir = root
	out, err := c.Output()
	if err != nil {
		t.Fatalf("git ls-files: %v", err)
	}
	return slices.DeleteFunc(strings.Fields(string(out)), func(name string) bool {
		_, err := os.Stat(filepath.Join(root, name))
		return err != nil || strings.Contains(name, "testdata/")
	})
}

func text(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

var (
	fenced = regexp.MustCompile("(?ms)^```.*?^```")
	code   = regexp.MustCompile("`[^`\n]*`")
	target = regexp.MustCompile(`\]\(([^)\s]+)\)`)
)

// links returns the targets of the links of a document.
func links(document string) (found []string) {
	document = code.ReplaceAllString(fenced.ReplaceAllString(document, ""), "")
	for _, m := range target.FindAllStringSubmatch(document, -1) {
		found = append(found, m[1])
	}
	return found
}

// leads says why a link in a document leads nowhere.
func leads(t *testing.T, document, link string) error {
	file, heading, anchored := strings.Cut(link, "#")
	file, err := url.PathUnescape(file)
	if err != nil {
		return err
	}
	name := document
	if file != "" {
		name = path.Join(path.Dir(document), file)
	}
	if name == ".." || strings.HasPrefix(name, "../") {
		return fmt.Errorf("it leads out of the repository")
	}
	if _, err := os.Stat(filepath.Join(root, name)); err != nil {
		return err
	}
	if anchored && !slices.Contains(anchors(text(t, name)), heading) {
		return fmt.Errorf("no heading of %s has that name", name)
	}
	return nil
}

// anchors returns the names of a document's headings in links, as GitHub makes them.
func anchors(document string) (names []string) {
	for line := range strings.Lines(fenced.ReplaceAllString(document, "")) {
		marks := len(line) - len(strings.TrimLeft(line, "#"))
		if marks == 0 || marks > 6 || line[marks] != ' ' {
			continue
		}
		names = append(names, strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
				return unicode.ToLower(r)
			}
			return -1
		}, strings.TrimSpace(line[marks:])))
	}
	return names
}
