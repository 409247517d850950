package work

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// bare are the goroutines that may start elsewhere, by the file and how they start, with the reason.
var bare = map[string]string{
	"pkg/filelayer/pool.go: go":             "a thread of the file layer; reads of inputs are guarded in File.fill",
	"pkg/gpu/thread.go: go":                 "hands panics to the caller of do",
	"pkg/cli/run/supervise.go: go":          "waits for signals that the supervisor passes on",
	"pkg/cli/run/supervise.go: wg.Go":       "passes signals on to the worker",
	"pkg/cli/run/signals.go: w.wg.Go":       "waits for signals",
	"pkg/cli/progress/progress.go: d.wg.Go": "prints a line every few seconds",
}

// TestGoroutinesStartHere fails for a goroutine that is not started by this package: a panic in
// it would end the process, with the hidden outputs left behind.
func TestGoroutinesStartHere(t *testing.T) {
	found := map[string]bool{}
	for _, top := range []string{"cmd", "pkg"} {
		err := filepath.WalkDir(filepath.Join("..", "..", top), func(path string, d fs.DirEntry, err error) error {
			if err != nil || !d.IsDir() {
				return err
			}
			rel, err := filepath.Rel(filepath.Join("..", ".."), path)
			if err != nil || rel == filepath.Join("pkg", "work") || d.Name() == "testdata" {
				return err
			}
			files, err := filepath.Glob(filepath.Join(path, "*.go"))
			if err != nil {
				return err
			}
			return starts(files, func(file string, at token.Position, how string) {
				key := filepath.ToSlash(filepath.Join(rel, filepath.Base(file))) + ": " + how
				if found[key] = true; bare[key] == "" {
					t.Errorf("%s: a goroutine starts by %q; start it by work.Go, work.Group, work.Each or work.Async", at, how)
				}
			})
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for key := range bare {
		if !found[key] {
			t.Errorf("the exception %q is not needed any more", key)
		}
	}
}

// starts calls report for what starts a goroutine in the files of a package: go statements, the
// Go of wait groups, and imports of errgroup.
func starts(names []string, report func(file string, at token.Position, how string)) error {
	fset := token.NewFileSet()
	files := map[string]*ast.File{}
	groups := map[string]bool{} // names of variables and fields that are wait groups
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(fset, name, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		files[name] = f
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.ValueSpec:
				if isWaitGroup(n.Type) {
					addNames(groups, n.Names)
				}
			case *ast.Field:
				if isWaitGroup(n.Type) {
					addNames(groups, n.Names)
				}
			}
			return true
		})
	}
	for name, f := range files {
		for _, i := range f.Imports {
			if p, _ := strconv.Unquote(i.Path.Value); p == "golang.org/x/sync/errgroup" {
				report(name, fset.Position(i.Pos()), "errgroup")
			}
		}
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.GoStmt:
				report(name, fset.Position(n.Pos()), "go")
			case *ast.SelectorExpr:
				if n.Sel.Name == "Go" && groups[lastName(n.X)] {
					report(name, fset.Position(n.Pos()), dotted(n))
				}
			}
			return true
		})
	}
	return nil
}

func addNames(to map[string]bool, names []*ast.Ident) {
	for _, n := range names {
		to[n.Name] = true
	}
	if len(names) == 0 {
		to["WaitGroup"] = true // embedded
	}
}

// isWaitGroup reports whether a type is sync.WaitGroup or a pointer to one.
func isWaitGroup(t ast.Expr) bool {
	if p, ok := t.(*ast.StarExpr); ok {
		t = p.X
	}
	s, ok := t.(*ast.SelectorExpr)
	return ok && s.Sel.Name == "WaitGroup"
}

// lastName is the name after the last dot of an expression.
func lastName(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return e.Sel.Name
	}
	return ""
}

// dotted is a selector as it is written.
func dotted(e ast.Expr) string {
	if s, ok := e.(*ast.SelectorExpr); ok {
		return dotted(s.X) + "." + s.Sel.Name
	}
	return lastName(e)
}

// The check finds each way in which a goroutine can start.
func TestStarts(t *testing.T) {
	dir := t.TempDir()
	source := `package p

import (
	"sync"

	"golang.org/x/sync/errgroup"
)

type s struct{ running *sync.WaitGroup }

func f(s s) {
	var wg sync.WaitGroup
	go f(s)
	wg.Go(func() {})
	s.running.Go(func() {})
	var g errgroup.Group
	g.Go(nil)
}
`
	name := filepath.Join(dir, "p.go")
	if err := os.WriteFile(name, []byte(source), 0o666); err != nil {
		t.Fatal(err)
	}
	var got []string
	if err := starts([]string{name}, func(_ string, at token.Position, how string) {
		got = append(got, strconv.Itoa(at.Line)+" "+how)
	}); err != nil {
		t.Fatal(err)
	}
	if want := "6 errgroup, 13 go, 14 wg.Go, 15 s.running.Go"; strings.Join(got, ", ") != want {
		t.Errorf("found %v, want %v", got, want)
	}
}
