package sif

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"strata/tests/clitest"
)

func TestMain(m *testing.M) {
	clitest.Main(m, map[string]func(){"sif": clitest.Of(Command), "with-mirror": withMirror, "make-key": makeKey})
}

func TestCommand(t *testing.T) { clitest.Check(t, Command()) }

func TestScripts(t *testing.T) { clitest.Scripts(t, "testdata") }

// Commands in an unpacked root.
func TestRunRoot(t *testing.T) {
	if said, err := exec.Command("unshare", "--user", "--map-root-user", "--mount", "true").CombinedOutput(); err != nil {
		t.Skipf("user namespaces are off here, nothing can be run in an unpacked root: %v: %s", err, said)
	}
	// A program without libraries is all that the image needs.
	dir := t.TempDir()
	build := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", filepath.Join(dir, "probe"), "./testdata/probe")
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=")
	if said, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v: %s", err, said)
	}
	t.Setenv("PATH", dir+string(filepath.ListSeparator)+os.Getenv("PATH"))
	clitest.Scripts(t, "testdata/run-root")
}
