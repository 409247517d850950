package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
)

// Where v is a product, v-v may be computed from the exact one on some machines (arm64 fuses both), and is not zero
// then: it must be converted first, as in float64(a * b).
func TestDifferencesOfProducts(t *testing.T) {
	for _, root := range []string{"../../pkg", "../../cmd"} {
		err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(name, ".go") {
				return err
			}
			files := token.NewFileSet()
			f, err := parser.ParseFile(files, name, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			for _, at := range fusedDifferences(f) {
				t.Errorf("%s: what is subtracted from itself is a product: convert it first", files.Position(at))
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// fusedDifferences returns where a variable is subtracted from itself to which its function assigns a product.
func fusedDifferences(f *ast.File) (out []token.Pos) {
	for _, d := range f.Decls {
		products := map[string]bool{}
		ast.Inspect(d, func(n ast.Node) bool {
			if a, is := n.(*ast.AssignStmt); is && len(a.Lhs) == len(a.Rhs) {
				for i, l := range a.Lhs {
					name, is := l.(*ast.Ident)
					b, product := ast.Unparen(a.Rhs[i]).(*ast.BinaryExpr)
					if is && product && b.Op == token.MUL {
						products[name.Name] = true
					}
				}
			}
			return true
		})
		ast.Inspect(d, func(n ast.Node) bool {
			if b, is := n.(*ast.BinaryExpr); is && b.Op == token.SUB {
				x, isX := b.X.(*ast.Ident)
				y, isY := b.Y.(*ast.Ident)
				if isX && isY && x.Name == y.Name && products[x.Name] {
					out = append(out, b.Pos())
				}
			}
			return true
		})
	}
	return out
}

func TestFusedDifferences(t *testing.T) {
	const code = `package p
func bad(a, b float64) bool { p := a * b; return p-p == 0 }
func good(a, b float64) bool { p := float64(a * b); return p-p == 0 }
func other(a float64) bool { return a-a == 0 }
`
	f, err := parser.ParseFile(token.NewFileSet(), "p.go", code, 0)
	if err != nil {
		t.Fatal(err)
	}
	if got := fusedDifferences(f); len(got) != 1 {
		t.Errorf("%d places, want 1", len(got))
	}
}
