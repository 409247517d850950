package filelayer_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The program in docs/file-layer.md is built by another module, as it says there, and runs.
func TestUsedFromOutside(t *testing.T) {
	if testing.Short() {
		t.Skip("builds a program")
	}
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(root, "docs", "file-layer.md"))
	if os.IsNotExist(err) {
		t.Skip("the test runs outside of the sources")
	}
	if err != nil {
		t.Fatal(err)
	}
	_, program, _ := strings.Cut(string(text), "```go\n")
	program, _, ok := strings.Cut(program, "```\n")
	sums, err := os.ReadFile(filepath.Join(root, "go.sum"))
	if err != nil || !ok {
		t.Fatal("no program: ", err)
	}
	dir := t.TempDir()
	for name, content := range map[string]string{"main.go": program, "go.mod": "module example.org/reader\n\ngo 1.26\n", "go.sum": string(sums)} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	for _, line := range [][]string{
		{"go", "mod", "edit", "-require=strata@v0.0.0", "-replace=strata=" + root},
		{"go", "build", "-o", "reader", "."},
		{"./reader", "main.go"},
	} {
		c := exec.Command(line[0], line[1:]...)
		c.Dir = dir
		c.Env = append(os.Environ(), "GOFLAGS=-mod=mod -trimpath", "CGO_ENABLED=0", "GOWORK=off", "PWD="+dir)
		out, err := c.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %v\n%s", line, err, out)
		}
		if line[0] == "./reader" && !strings.HasSuffix(string(out), " bytes\n") {
			t.Errorf("%s", out)
		}
	}
}
