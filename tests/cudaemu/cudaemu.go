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
	"slices"
	"strings"
	"sync"
	"testing"

	"strata/pkg/gpu/cost"
)

// Variable names the library to take for the driver's.
const Variable = "STRATA_LIBCUDA"

// others are the doubles of other libraries, which lie beside that of the driver, by the
// variables that name them.
var others = map[string]string{"STRATA_LIBCUFILE": "libcufile.so.0", "STRATA_LIBNVCOMP": "libnvcomp.so.6", "STRATA_LIBNVML": "libnvidia-ml.so.1"}

// Programs that find the double take it, however small their input is, and do by it what it can: tests say what it is to do.
const figures = "host.margin=-1e12,host.tries=0"

// What cuFile's binding reads instead of /proc/modules and /run/udev, which not every
// system has that runs tests.
const (
	modulesVariable = "STRATA_PROC_MODULES"
	udevVariable    = "STRATA_RUN_UDEV"
)

// Main is the TestMain of packages whose tests need a device: it builds the double,
// unless STRATA_LIBCUDA names a library, and runs the tests with it.
func Main(m *testing.M) {
	setup()
	os.Exit(m.Run())
}

// MainBoth is [Main] for tests of kernels: they run with the kernels' sources compiled
// for the host, and then, in a process of its own, with their PTX interpreted. A library
// that STRATA_LIBCUDA names runs them once.
func MainBoth(m *testing.M) {
	built := setup()
	code := m.Run()
	if code == 0 && built && os.Getenv("CUEMU_PTX") == "" {
		code = again()
	}
	os.Exit(code)
}

// setup tells whether it built the double.
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

// name tells this process, and those that it starts, the driver's library, and the
// others that are beside it.
func name(lib string) {
	for variable, value := range Environment(lib) {
		if variable == Variable || os.Getenv(variable) == "" {
			_ = os.Setenv(variable, value)
		}
	}
}

// Environment is what a process needs to find the driver's library and the others that
// are beside it, and to use them: whoever asks for less sets STRATA_GPU_FIGURES to something else.
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

// again runs this test binary with the interpreter. What go test gave it to write for
// itself is the first run's.
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

// Use is [Main] for a package of which only some tests need a device: they call it
// first.
func Use(t testing.TB) {
	t.Helper()
	if err := Find(); err != nil {
		t.Fatal(err)
	}
}

// Find is [Use] for programs that are no tests.
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

// Build makes the double from the sources as they are now, once for the process, and
// returns its file, in build/cudaemu of the repository. It needs g++.
func Build() (string, error) { return built() }

// BuildTraced is [Build] of a double whose kernels tell it every access to memory: for races between streams that
// kernels take part in, and for the virtual clock. They are some times slower.
func BuildTraced() (string, error) { return builtTraced() }

var (
	built       = sync.OnceValues(func() (string, error) { return build("cudaemu") })
	builtTraced = sync.OnceValues(func() (string, error) { return build("cudaemu-traced", "-DEMU_TRACE") })
)

func build(folder string, options ...string) (string, error) {
	_, here, _, _ := runtime.Caller(0)
	root := filepath.Join(filepath.Dir(here), "..", "..")
	out := filepath.Join(root, "build", folder)
	if b, err := exec.Command(filepath.Join(filepath.Dir(here), "build.sh"), append([]string{out}, options...)...).CombinedOutput(); err != nil {
		return "", fmt.Errorf("tests/cudaemu/build.sh: %w\n%s", err, b)
	}
	return filepath.Join(out, "libcuda.so.1"), nil
}
