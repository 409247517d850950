// Package cudaemu gives tests a GPU that is none: a double of libcuda.so.1 that runs
// the kernels of pkg/gpu/kernels on the host, and traps what a program must not do
// with a device. README.md says how it works and what it sees.
package cudaemu

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
)

// Variable names the library to take for the driver's.
const Variable = "STRATA_LIBCUDA"

// Main is the TestMain of packages whose tests need a device: it builds the double,
// unless STRATA_LIBCUDA names a library, and runs the tests with it.
func Main(m *testing.M) {
	if os.Getenv(Variable) == "" {
		lib, err := Build()
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		_ = os.Setenv(Variable, lib)
	}
	os.Exit(m.Run())
}

// Use is [Main] for a package of which only some tests need a device: they call it
// first.
func Use(t testing.TB) {
	t.Helper()
	if os.Getenv(Variable) != "" {
		return
	}
	lib, err := Build()
	if err != nil {
		t.Fatal(err)
	}
	_ = os.Setenv(Variable, lib) // for the process: the library is opened once
}

// Build makes the double from the sources as they are now and returns its file, in
// build/cudaemu of the repository. It needs g++.
func Build() (string, error) {
	_, here, _, _ := runtime.Caller(0)
	root := filepath.Join(filepath.Dir(here), "..", "..")
	out := filepath.Join(root, "build", "cudaemu")
	if b, err := exec.Command(filepath.Join(filepath.Dir(here), "build.sh"), out).CombinedOutput(); err != nil {
		return "", fmt.Errorf("tests/cudaemu/build.sh: %w\n%s", err, b)
	}
	return filepath.Join(out, "libcuda.so.1"), nil
}
