package repo

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// packageDoc matches the first line of a comment that says what a package or a command is.
var packageDoc = regexp.MustCompile(`(?m)^(// |/\*\s*)(Package|Command|Program) \S`)

// TestPackagesHaveDocs fails for a folder of Go files none of which says what the package is. Packages that hold tests
// alone need not.
func TestPackagesHaveDocs(t *testing.T) {
	documented := map[string]bool{}
	eachGoFile(t, func(name, source string) {
		if strings.HasSuffix(name, "_test.go") {
			return
		}
		dir := filepath.Dir(name)
		documented[dir] = documented[dir] || packageDoc.MatchString(source)
	})
	var missing []string
	for dir, has := range documented {
		if !has {
			missing = append(missing, dir)
		}
	}
	slices.Sort(missing)
	for _, dir := range missing {
		t.Errorf("%s: no file says what the package is", dir)
	}
}
