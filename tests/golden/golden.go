// Package golden gives tests the golden set of this folder: inputs that other
// programs wrote and the outputs that independent libraries computed from them.
// README.md says which library stands behind which number.
package golden

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"strata/pkg/dtype"
	"strata/pkg/npy"
)

// Case is one case.json with the arrays beside it.
type Case struct {
	Name   string
	Stage  string          `json:"stage"`
	Params json.RawMessage `json:"params"`

	Tolerance struct {
		Rel      float64 `json:"rel"`
		Abs      float64 `json:"abs"`
		PNG16Abs float64 `json:"png16_abs"`
	} `json:"tolerance"`
	VoxelSize [][]float64 `json:"voxel_size_um"` // per level
	Chunks    []int       `json:"chunks"`

	Arrays map[string]Array `json:"-"`
}

// Array is an expected output in C order and native bytes.
type Array struct {
	Type  dtype.Type
	Shape []int
	Data  []byte
}

func folder() string {
	_, file, _, _ := runtime.Caller(0)
	return filepath.Dir(file)
}

// Cases reads all cases of a stage.
func Cases(t testing.TB, stage string) []Case {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder(), stage, "*", "case.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no golden cases of %s: %v", stage, err)
	}
	var out []Case
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		c := Case{Name: filepath.Base(filepath.Dir(file))}
		if err := json.Unmarshal(b, &c); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		c.Arrays = readNpz(t, filepath.Join(filepath.Dir(file), "expected.npz"))
		out = append(out, c)
	}
	return out
}

func readNpz(t testing.TB, path string) map[string]Array {
	t.Helper()
	z, err := zip.OpenReader(path)
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	out := map[string]Array{}
	for _, f := range z.File {
		r, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		r.Close()
		body := bytes.NewReader(b)
		h, err := npy.ReadHeader(body)
		if err != nil || h.BigEndian || h.Fortran {
			t.Fatalf("%s: %s: %+v, %v", path, f.Name, h, err)
		}
		// a copy of its own is aligned for every element type
		data := make([]byte, body.Len())
		copy(data, b[len(b)-body.Len():])
		out[strings.TrimSuffix(f.Name, ".npy")] = Array{h.Type, h.Shape, data}
	}
	return out
}

// Input unpacks the input that a case's parameters name and returns its path.
func Input(t testing.TB, c Case) string {
	t.Helper()
	var p struct{ Input string }
	if err := json.Unmarshal(c.Params, &p); err != nil || p.Input == "" {
		t.Fatalf("%s: no input: %v", c.Name, err)
	}
	dir := t.TempDir()
	z, err := zip.OpenReader(filepath.Join(folder(), p.Input))
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	if err := os.CopyFS(dir, z); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, strings.TrimSuffix(filepath.Base(p.Input), ".zip")+".ome.zarr")
}
