package scripts

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// What make quick tests: the packages of files that changed since the merge base, committed or not, and those
// that import them directly.
func TestQuickList(t *testing.T) {
	script, err := os.ReadFile("../../scripts/quick.sh")
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	write := func(name, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	git := func(args string) {
		t.Helper()
		c := exec.Command("git", strings.Fields("-c user.name=a -c user.email=a@b -c init.defaultBranch=main -c commit.gpgsign=false "+args)...)
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("git %s: %v\n%s", args, err, out)
		}
	}
	list := func() string {
		t.Helper()
		c := exec.Command("scripts/quick.sh", "list")
		c.Env = append(os.Environ(), "GOFLAGS=")
		out, err := c.CombinedOutput()
		if err != nil {
			t.Fatalf("quick.sh: %v\n%s", err, out)
		}
		return strings.ReplaceAll(strings.TrimSpace(string(out)), "\n", ", ")
	}
	write("scripts/quick.sh", string(script))
	write("go.mod", "module m\n\ngo 1.26\n")
	write("go.work", "go 1.26\n\nuse (\n\t.\n\t./lab\n)\n")
	write("lab/go.mod", "module m/lab\n\ngo 1.26\n\nrequire m v0.0.0\n\nreplace m => ../\n")
	write("lab/scale/scale.go", "package scale\n\nimport _ \"m/high\"\n")
	write("low/low.go", "package low\n")
	write("low/testdata/deep/x.go", "not Go\n")
	write("middle/middle.go", "package middle\n\nimport _ \"m/low\"\n")
	write("high/high.go", "package high\n\nimport _ \"m/middle\"\n")
	write("tested/tested.go", "package tested\n")
	write("tested/tested_test.go", "package tested_test\n\nimport _ \"m/low\"\n")
	git("init -q .")
	git("add .")
	git("commit -qm first")
	if got := list(); got != "changed ./high, changed ./lab/scale, changed ./low, changed ./middle, changed ./tested" {
		t.Errorf("of the first commit: %s", got)
	}
	git("update-ref refs/remotes/origin/main HEAD")
	write("middle/middle.go", "package middle\n\nimport _ \"m/low\"\n\nvar X int\n")
	git("commit -qam second")
	write("README.md", "text\n")
	if got := list(); got != "changed ./middle, imports ./high" {
		t.Errorf("of a commit: %s", got)
	}
	write("low/testdata/deep/x.go", "changed\n")
	if got := list(); got != "changed ./low, changed ./middle, imports ./high, imports ./tested" {
		t.Errorf("of a file that is not committed: %s", got)
	}
	write("high/high.go", "package high\n")
	if got := list(); got != "changed ./high, changed ./low, changed ./middle, imports ./lab/scale, imports ./tested" {
		t.Errorf("of a package that only the other module imports: %s", got)
	}
	git("update-ref refs/remotes/origin/main HEAD")
	git("checkout -q .")
	if got := list(); got != "changed ./middle, imports ./high" {
		t.Errorf("on origin/main: %s", got)
	}
}
