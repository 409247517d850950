package docs

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// module is the first part of our import paths.
const module = "strata/"

// TestLayers fails for a package that "Layers" in docs/architecture.md does not list, and for
// one that imports a package of a row above its own, or a helper of tests. What tests
// import is not looked at.
func TestLayers(t *testing.T) {
	rows := layers(t)
	packages := imports(t)
	if len(rows) < 20 || len(packages) < 60 {
		t.Fatalf("%d rows and %d packages were found", len(rows), len(packages))
	}
	for _, wrong := range misplaced(rows, packages) {
		t.Error(wrong)
	}
}

// A package that is not listed, an arrow up and a helper of tests in a program are found.
func TestMisplaced(t *testing.T) {
	rows := [][]string{{"cmd/a"}, {"pkg/high", "pkg/high/part"}, {"pkg/low"}}
	got := misplaced(rows, map[string][]string{
		"cmd/a":            {"pkg/high", "pkg/low", "pkg/high/hightest"},
		"pkg/high":         {"pkg/high/part", "pkg/low", "tests/double"},
		"pkg/high/part":    {"pkg/high"},
		"pkg/low":          {"pkg/high/part"},
		"pkg/low/more":     {},
		"pkg/low/lowtest":  {"cmd/a", "tests/double"},
		"pkg/high/hightes": {},
	})
	want := []string{
		"cmd/a imports pkg/high/hightest, which is for tests",
		"pkg/high imports tests/double, which is for tests",
		"pkg/high/hightes is in no row of Layers in docs/architecture.md",
		"pkg/low imports pkg/high/part, which lies above it",
		"pkg/low/more is in no row of Layers in docs/architecture.md",
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

// TestOneBody fails for a stage with one body for the host and a device that goes past the operators of pkg/oct/compute
// to a device.
func TestOneBody(t *testing.T) {
	packages := imports(t)
	for _, stage := range []string{"pkg/oct/aip", "pkg/oct/crop", "pkg/oct/focal", "pkg/oct/resample", "pkg/oct/smooth", "pkg/oct/stack", "pkg/oct/stitch", "pkg/oct/surface"} {
		if len(packages[stage]) == 0 {
			t.Errorf("%s imports nothing", stage)
		}
		for _, q := range packages[stage] {
			if slices.Contains(strings.Split(q, "/"), "gpu") || strings.HasSuffix(q, "gpu") {
				t.Errorf("%s imports %s", stage, q)
			}
		}
	}
}

// misplaced says which packages are in no row, or import what they may not.
func misplaced(rows [][]string, packages map[string][]string) (wrong []string) {
	row := map[string]int{}
	for i, r := range rows {
		for _, p := range r {
			row[p] = i
		}
	}
	for p, imported := range packages {
		if forTests(p) {
			continue
		}
		own, listed := row[p]
		if !listed {
			wrong = append(wrong, p+" is in no row of Layers in docs/architecture.md")
		}
		for _, q := range imported {
			above, known := row[q]
			switch {
			case forTests(q):
				wrong = append(wrong, p+" imports "+q+", which is for tests")
			case listed && known && above < own:
				wrong = append(wrong, p+" imports "+q+", which lies above it")
			}
		}
	}
	slices.Sort(wrong)
	return wrong
}

// forTests reports whether a package is a part of tests or of the laboratory, which may import everything.
func forTests(p string) bool {
	return strings.HasPrefix(p, "tests/") || strings.HasPrefix(p, "lab/") || strings.HasSuffix(p, "test")
}

// width is how many columns of the table list packages; what they are for stands right of them.
const width = 35

// below are the sub-packages that the right side of a row names: "record/", "internal/fill/".
var below = regexp.MustCompile(`(?:^|[ (])((?:[a-z0-9_]+/)+)`)

// layers reads the packages of each row of the table in docs/architecture.md. A line that begins with a
// space belongs to the row above it.
func layers(t *testing.T) (rows [][]string) {
	text, err := os.ReadFile(filepath.Join(root, "docs/architecture.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(text), "\n## Layers\n")
	_, table, _ = strings.Cut(table, "\n```\n")
	table, _, _ = strings.Cut(table, "\n```\n")
	top := "" // cmd/ or pkg/ of the row
	for line := range strings.SplitSeq(table, "\n") {
		columns := []rune(line)
		at := min(len(columns), width)
		left, right := string(columns[:at]), string(columns[at:])
		if !strings.HasPrefix(line, " ") {
			top, _, _ = strings.Cut(line, "/")
			top += "/"
			rows = append(rows, nil)
		}
		row := &rows[len(rows)-1]
		if top == "tests/" || top == "lab/" || top == "nextflow/" {
			continue
		}
		for word := range strings.FieldsSeq(left) {
			if word == "…" { // all that lie beside the one in front
				beside := path.Dir((*row)[len(*row)-1])
				folders, err := os.ReadDir(filepath.Join(root, beside))
				if err != nil {
					t.Fatal(err)
				}
				for _, f := range folders {
					*row = append(*row, path.Join(beside, f.Name()))
				}
				continue
			}
			p := top + strings.TrimPrefix(word, top)
			if !isFolder(p) {
				t.Errorf("%q in Layers of docs/architecture.md is no package", word)
			}
			for _, r := range rows {
				if slices.Contains(r, p) {
					t.Errorf("%s is listed twice in Layers of docs/architecture.md", p)
				}
			}
			*row = append(*row, p)
		}
		for _, m := range below.FindAllStringSubmatch(right, -1) {
			for _, p := range slices.Clone(*row) {
				if isFolder(p + "/" + m[1]) {
					*row = append(*row, path.Join(p, m[1]))
				}
			}
		}
	}
	return rows
}

func isFolder(p string) bool {
	info, err := os.Stat(filepath.Join(root, p))
	return err == nil && info.IsDir()
}

// imports returns the packages of the module that each of its packages imports, on any system, tests aside.
func imports(t *testing.T) map[string][]string {
	packages := map[string][]string{}
	for _, top := range []string{"cmd", "pkg"} {
		err := filepath.WalkDir(filepath.Join(root, top), func(name string, d fs.DirEntry, err error) error {
			if err == nil && d.IsDir() && d.Name() == "testdata" {
				return filepath.SkipDir
			}
			if err != nil || d.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
				return err
			}
			file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly)
			if err != nil {
				return err
			}
			p, err := filepath.Rel(root, filepath.Dir(name))
			if err != nil {
				return err
			}
			p = filepath.ToSlash(p)
			packages[p] = slices.Clip(packages[p])
			for _, spec := range file.Imports {
				path, err := strconv.Unquote(spec.Path.Value)
				if err != nil {
					return err
				}
				if q, ours := strings.CutPrefix(path, module); ours && !slices.Contains(packages[p], q) {
					packages[p] = append(packages[p], q)
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return packages
}
