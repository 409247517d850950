//go:build !nocuda

package cudaemu

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// The interpreter of PTX knows every instruction that ships, and does what the ISA
// says at the edges of their types.
func TestInterpreter(t *testing.T) {
	lib, err := Build()
	if err != nil {
		t.Fatal(err)
	}
	objects, err := filepath.Glob(filepath.Join(filepath.Dir(lib), "ptx_*.o"))
	if err != nil || len(objects) == 0 {
		t.Fatal(err, objects)
	}
	ptx, err := filepath.Glob(filepath.Join(filepath.Dir(lib), "ptx", "*.ptx"))
	if err != nil || len(ptx) == 0 {
		t.Fatal(err, ptx)
	}
	program := filepath.Join(t.TempDir(), "ptx_test")
	args := append([]string{"-std=c++17", "-O1", "-Idouble", "-o", program, "selftest/ptx_test.cpp"}, objects...)
	cxx := os.Getenv("CXX")
	if cxx == "" {
		cxx = "g++"
	}
	if out, err := exec.Command(cxx, args...).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	out, err := exec.Command(program, ptx...).CombinedOutput()
	t.Logf("%s", out)
	if err != nil {
		t.Fatal(err)
	}
}
