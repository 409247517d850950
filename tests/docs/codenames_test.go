package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestNamesOfCode fails for a name like `aip.Run`, `ngff.Writer.Close` or `oct.Resources.Coming` in a document about
// the code that no package declares.
func TestNamesOfCode(t *testing.T) {
	packages := declared(t)
	if len(packages) < 100 {
		t.Fatalf("only %d names of packages were found", len(packages))
	}
	for name, least := range map[string]int{"docs/architecture.md": 80, "CONTRIBUTING.md": 3} {
		found := 0
		for _, code := range codeNames(text(t, name)) {
			found++
			if !packages.has(code) {
				t.Errorf("%s: nothing of the code is named %s", name, code)
			}
		}
		if found < least {
			t.Errorf("%s: only %d names of code were found", name, found)
		}
	}
	for code, want := range map[string]bool{
		"aip.Run": true, "aip.projection.project": true, "ngff.Writer.Close": true, "compute.Projector.AddPlanes": true, "oct.Resources.Coming": true,
		"cli.Run.Later": true, "aip.Walk": false, "aip.projection.walk": false, "nosuchpackage.Run": false, "oct.Resources.Going": false,
	} {
		if packages.has(code) != want {
			t.Errorf("%s is declared: %v", code, !want)
		}
	}
}

// qualified matches a name behind that of a package, and parameters behind it; notCode the names of files and
// libraries, and what the standard library declares.
var (
	qualified = regexp.MustCompile("`([a-z][a-z0-9]*(?:\\.[A-Za-z][A-Za-z0-9]*)+)(?:\\([^`]*\\))?`")
	notCode   = regexp.MustCompile(`\.(go|json|md|mod|so|svs|toml|tsv|work)(\.|$)|^(context|iter)\.`)
)

// codeNames returns the qualified names of code in a document.
func codeNames(document string) (names []string) {
	for _, m := range qualified.FindAllStringSubmatch(fenced.ReplaceAllString(document, ""), -1) {
		if !notCode.MatchString(m[1]) {
			names = append(names, m[1])
		}
	}
	return names
}

// declarations holds what packages declare: for each name of a package, which several may have, the names at its top
// level with their members. A member that begins with "=" stands for all members of another type: of the same package,
// or "package.Type".
type declarations map[string]map[string][]string

// has reports whether a name is declared: package.Name, package.Name.Member.
func (d declarations) has(name string) bool {
	parts := strings.Split(name, ".")
	members, known := d[parts[0]][parts[1]]
	return known && (len(parts) == 2 || len(parts) == 3 && d.member(parts[0], members, parts[2], 0))
}

func (d declarations) member(in string, members []string, name string, depth int) bool {
	if slices.Contains(members, name) {
		return true
	}
	return depth < 8 && slices.ContainsFunc(members, func(m string) bool {
		other, is := strings.CutPrefix(m, "=")
		p, typ, elsewhere := strings.Cut(other, ".")
		if !elsewhere {
			p, typ = in, other
		}
		return is && d.member(p, d[p][typ], name, depth+1)
	})
}

// declared reads the declarations of the product's packages, tests aside.
func declared(t *testing.T) declarations {
	all := declarations{}
	for _, top := range []string{"cmd", "pkg"} {
		err := filepath.WalkDir(filepath.Join(root, top), func(name string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
				return err
			}
			file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			p := all[file.Name.Name]
			if p == nil {
				p = map[string][]string{}
				all[file.Name.Name] = p
			}
			for _, decl := range file.Decls {
				declare(p, decl)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// declare adds what a declaration declares.
func declare(p map[string][]string, decl ast.Decl) {
	switch decl := decl.(type) {
	case *ast.FuncDecl:
		if decl.Recv == nil {
			p[decl.Name.Name] = append(p[decl.Name.Name], "")
		} else if of := typeName(decl.Recv.List[0].Type); of != "" {
			p[of] = append(p[of], decl.Name.Name)
		}
	case *ast.GenDecl:
		for _, spec := range decl.Specs {
			switch spec := spec.(type) {
			case *ast.ValueSpec:
				for _, name := range spec.Names {
					p[name.Name] = append(p[name.Name], "")
				}
			case *ast.TypeSpec:
				p[spec.Name.Name] = append(p[spec.Name.Name], membersOf(spec.Type)...)
			}
		}
	}
}

// membersOf returns the fields or methods that a type's expression lists.
func membersOf(e ast.Expr) (members []string) {
	var fields *ast.FieldList
	switch e := e.(type) {
	case *ast.StructType:
		fields = e.Fields
	case *ast.InterfaceType:
		fields = e.Methods
	default:
		return []string{"=" + typeName(e)}
	}
	for _, f := range fields.List {
		for _, name := range f.Names {
			members = append(members, name.Name)
		}
		if of := typeName(f.Type); f.Names == nil && of != "" { // embedded
			members = append(members, of[strings.LastIndex(of, ".")+1:], "="+of)
		}
	}
	return append(members, "")
}

// typeName returns the name of a type behind pointers and type arguments; "" if it has none.
func typeName(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return typeName(e.X) + "." + e.Sel.Name
	case *ast.StarExpr:
		return typeName(e.X)
	case *ast.IndexExpr:
		return typeName(e.X)
	case *ast.IndexListExpr:
		return typeName(e.X)
	}
	return ""
}
