// Package cudaemu provides tests with a software double of a GPU: a libcuda.so.1 that runs the kernels of
// pkg/gpu/kernels on the host and detects invalid use of a device. README.md describes how it works and what it
// detects.
package cudaemu

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"strata/pkg/gpu/cost"
	"strata/tests/repo"
)

// Variable is the environment variable that names the library to use as the driver's.
const Variable = "STRATA_LIBCUDA"

// others maps the variables that name other libraries to their doubles, which lie beside that of the driver.
var others = map[string]string{"STRATA_LIBCUFILE": "libcufile.so.0", "STRATA_LIBNVCOMP": "libnvcomp.so.6", "STRATA_LIBNVML": "libnvidia-ml.so.1"}

// figures makes programs that find the double use it however small their input is, and for everything that it can
// do: tests choose explicitly.
const figures = "host.margin=-1e12,host.tries=0"

// Variables with files that the cuFile binding reads instead of /proc/modules and /run/udev, which do not exist on
// every system that runs tests.
const (
	modulesVariable = "STRATA_PROC_MODULES"
	udevVariable    = "STRATA_RUN_UDEV"
)

// Main builds the double, unless STRATA_LIBCUDA names a library, runs the tests with it and exits. TestMain of a
// package whose tests need a device calls it.
func Main(m *testing.M) {
	setup()
	os.Exit(m.Run())
}

// MainBoth is [Main] for tests of kernels: it runs them with the kernels' sources compiled for the host, and
// again, in a separate process, with their PTX interpreted. With a library named by STRATA_LIBCUDA it runs them
// once.
func MainBoth(m *testing.M) {
	built := setup()
	code := m.Run()
	if code == 0 && built && os.Getenv("CUEMU_PTX") == "" {
		code = again()
	}
	os.Exit(code)
}

// setup makes a driver available and reports whether it built the double.
func setup() bool {
	if lib := os.Getenv(Variable); lib != "" {
		name(lib)
		return false
	}
	lib, err := Build()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	name(lib)
	return true
}

// name sets the variables with which this process and its children find the driver's library and those beside it.
func name(lib string) {
	for variable, value := range Environment(lib) {
		if variable == Variable || os.Getenv(variable) == "" {
			_ = os.Setenv(variable, value)
		}
	}
}

// Environment returns the variables with which a process finds and uses the driver's library and those beside it.
// To make it use the GPU for less, set STRATA_GPU_FIGURES to something else.
func Environment(lib string) map[string]string {
	e := map[string]string{Variable: lib, cost.Variable: figures}
	// build.sh leaves a file by which its libraries are told from real ones.
	if _, err := os.Stat(filepath.Join(filepath.Dir(lib), "lock")); err == nil {
		e[modulesVariable], e[udevVariable] = filepath.Join(filepath.Dir(lib), "modules"), os.DevNull
	}
	for variable, file := range others {
		file = filepath.Join(filepath.Dir(lib), file)
		if _, err := os.Stat(file); err == nil {
			e[variable] = file
		}
	}
	return e
}

// again runs this test binary with the interpreter. Output files requested from go test are written by the first
// run.
func again() int {
	args := slices.DeleteFunc(slices.Clone(os.Args[1:]), func(a string) bool {
		return strings.HasPrefix(a, "-test.testlogfile=") || strings.HasPrefix(a, "-test.coverprofile=") || strings.HasPrefix(a, "-test.gocoverdir=")
	})
	c := exec.Command(os.Args[0], args...)
	c.Env = append(os.Environ(), "CUEMU_PTX=1")
	c.Stdout, c.Stderr = os.Stdout, os.Stderr
	if err := c.Run(); err != nil {
		fmt.Fprintf(os.Stderr, "with the PTX interpreted (CUEMU_PTX=1): %v\n", err)
		return 1
	}
	return 0
}

// Use makes the double available to a test, for packages of which only some tests need a device. They call it
// first.
func Use(t testing.TB) {
	t.Helper()
	if err := Find(); err != nil {
		t.Fatal(err)
	}
}

// Find makes the double available like [Use], for programs that are not tests.
func Find() error {
	if lib := os.Getenv(Variable); lib != "" {
		name(lib)
		return nil
	}
	lib, err := Build()
	if err == nil {
		name(lib) // for the process: the library is opened once
	}
	return err
}

// Build builds the double from the current sources, once for the process, and returns its file, in build/cudaemu
// of the repository. It needs g++.
func Build() (string, error) { return built() }

// BuildTraced builds a double, like [Build], whose kernels report every memory access to it, to detect races
// between streams that involve kernels, and for the virtual clock. They are several times slower.
func BuildTraced() (string, error) { return builtTraced() }

var (
	built       = sync.OnceValues(func() (string, error) { return build("cudaemu") })
	builtTraced = sync.OnceValues(func() (string, error) { return build("cudaemu-traced", "-DEMU_TRACE") })
)

func build(folder string, options ...string) (string, error) {
	out := repo.Path("build", folder)
	if b, err := exec.Command(repo.Path("tests", "cudaemu", "build.sh"), append([]string{out}, options...)...).CombinedOutput(); err != nil {
		return "", fmt.Errorf("tests/cudaemu/build.sh: %w\n%s", err, b)
	}
	return filepath.Join(out, "libcuda.so.1"), nil
}
