// Package docs holds documents against the programs that they are about.
package docs

import (
	"bufio"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const root = "../.."

// Messages in the tables of docs/troubleshooting.md are those of the programs: a message is a text that a program can
// write, or is put together from two such texts.
func TestTroubleshooting(t *testing.T) {
	texts := written(t)
	if len(texts) < 1000 {
		t.Fatalf("only %d texts were found in the programs", len(texts))
	}
	rows := messages(t, filepath.Join(root, "docs/troubleshooting.md"))
	if len(rows) < 40 {
		t.Fatalf("only %d messages are in the table", len(rows))
	}
	seen := map[string]int{}
	for line, m := range rows {
		if other, twice := seen[m]; twice {
			t.Errorf("line %d: %q stands in line %d too", line, m, other)
		}
		seen[m] = line
		if part := unwritten(m, texts); part != "" {
			t.Errorf("line %d: no program writes %q (of %q)", line, part, m)
		}
	}
	for _, wrong := range []string{
		"the NVIDIA driver sees no devices", "no usable …: …; taking the …", "…", "a: …",
		"… buffers get … its control group allows … is more than this job has", // each part is written, but not so
	} {
		if unwritten(wrong, texts) == "" {
			t.Errorf("%q is taken for a message of the programs", wrong)
		}
	}
}

// What check_gds.sh knows what to do about is what the programs write.
func TestAdvice(t *testing.T) {
	texts := written(t)
	script, err := os.ReadFile(filepath.Join(root, "server_setup/check_gds.sh"))
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`\*("[^"]+"|'[^']+')\*`).FindAllStringSubmatch(string(script), -1)
	if len(found) < 10 {
		t.Fatalf("only %d patterns were found in it", len(found))
	}
	for _, f := range found {
		pattern := f[1][1 : len(f[1])-1]
		if part := unwritten(pattern, texts); part != "" {
			t.Errorf("no program writes %q", part)
		}
	}
}

// unwritten returns "" for a message that stands in one text of the programs with its parts in order, or in two: one
// text, and another in place of an ellipsis or at an end. Of another message it returns the longest part that stands in
// no text, or the message.
func unwritten(message string, texts []string) string {
	if len(strings.Join(parts(message), "")) < 12 {
		return message
	}
	if inOrder(message, texts) {
		return ""
	}
	seams := []int{0, len(message)}
	for _, at := range regexp.MustCompile("…|: ").FindAllStringIndex(message, -1) {
		seams = append(seams, at...)
	}
	slices.Sort(seams)
	for i, from := range seams {
		for _, to := range seams[i+1:] {
			inner, outer := message[from:to], message[:from]+"…"+message[to:]
			if len(parts(inner)) > 0 && len(parts(outer)) > 0 && inOrder(inner, texts) && inOrder(outer, texts) {
				return ""
			}
		}
	}
	wrong := ""
	for _, part := range parts(message) {
		if len(part) > len(wrong) && !inOrder(part, texts) {
			wrong = part
		}
	}
	if wrong == "" {
		wrong = message
	}
	return wrong
}

// parts returns what stands between the ellipses of a message.
func parts(message string) (found []string) {
	for _, part := range strings.Split(message, "…") {
		if part = strings.Trim(part, " :;,"); part != "" {
			found = append(found, part)
		}
	}
	return found
}

// inOrder reports whether one of texts has all parts of a message, one behind the other.
func inOrder(message string, texts []string) bool {
	all := parts(message)
	return len(all) == 0 || slices.ContainsFunc(texts, func(text string) bool {
		for _, part := range all {
			at := strings.Index(text, part)
			if at < 0 {
				return false
			}
			text = text[at+len(part):]
		}
		return true
	})
}

// messages are the first cells of the tables of a document that are code, by line.
func messages(t *testing.T, path string) map[int]string {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	found := map[int]string{}
	cell := regexp.MustCompile("^\\| `([^`]+)` \\|")
	s := bufio.NewScanner(f)
	for n := 1; s.Scan(); n++ {
		switch m := cell.FindStringSubmatch(s.Text()); {
		case m != nil:
			found[n] = m[1]
		case strings.HasPrefix(s.Text(), "| ") && !strings.HasPrefix(s.Text(), "| message |"):
			t.Errorf("line %d: the first cell is not a message", n)
		}
	}
	if err := s.Err(); err != nil {
		t.Fatal(err)
	}
	return found
}

var (
	verb     = regexp.MustCompile(`%[-+# 0]*[0-9]*(\.[0-9]+)?[a-zA-Z]`)
	variable = regexp.MustCompile(`\$\{[^{}]*\}|\$\([^()]*\)|\$[A-Za-z_][A-Za-z_0-9]*`)
)

// written are the texts in the programs: Go's literals, and the workflow and the scripts as
// they are; what differs from run to run is an ellipsis.
func written(t *testing.T) []string {
	t.Helper()
	var texts []string
	for _, folder := range []string{"cmd", "pkg", "nextflow", "server_setup", "apptainer"} {
		err := filepath.WalkDir(filepath.Join(root, folder), func(path string, d fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case d.IsDir() && d.Name() == "testdata":
				return fs.SkipDir
			case d.IsDir() || strings.HasSuffix(path, "_test.go"):
				return nil
			}
			switch filepath.Ext(path) {
			case ".go":
				found, err := literals(path)
				texts = append(texts, found...)
				return err
			case ".sh", ".nf", ".groovy":
				b, err := os.ReadFile(path)
				texts = append(texts, strings.Split(variable.ReplaceAllString(string(b), "…"), "\n")...)
				return err
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return texts
}

// literals are the texts of a Go file; those that are added up are one.
func literals(path string) ([]string, error) {
	f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	var texts []string
	ast.Inspect(f, func(n ast.Node) bool {
		if _, imported := n.(*ast.ImportSpec); imported {
			return false
		}
		e, ok := n.(ast.Expr)
		if !ok {
			return true
		}
		text, ok := literal(e)
		if !ok {
			return true
		}
		texts = append(texts, verb.ReplaceAllString(text, "…"))
		return false
	})
	return texts, nil
}

// literal is the text of a literal or of a sum, in which what is no literal is an ellipsis.
func literal(e ast.Expr) (string, bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		if e.Kind != token.STRING {
			return "", false
		}
		text, err := strconv.Unquote(e.Value)
		return text, err == nil
	case *ast.BinaryExpr:
		if e.Op != token.ADD {
			return "", false
		}
		a, left := literal(e.X)
		b, right := literal(e.Y)
		if !left {
			a = "…"
		}
		if !right {
			b = "…"
		}
		return a + b, left || right
	}
	return "", false
}
