// Package golden provides tests with the golden set of this folder: inputs written by other programs and the
// outputs that independent libraries computed from them. README.md names the library for each number.
package golden

import (
	"archive/zip"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"strata/pkg/dtype"
	"strata/pkg/npy"
	"strata/tests/repo"
)

// Case is one case.json, with the arrays beside it.
type Case struct {
	Name   string
	Stage  string          `json:"stage"` // or process of the workflow
	Params json.RawMessage `json:"params"`

	Tolerance struct {
		Rel      float64 `json:"rel"`
		Abs      float64 `json:"abs"`
		PNG16Abs float64 `json:"png16_abs"`
		// Off is the fraction of values that may exceed the tolerance.
		Off float64 `json:"max_fraction_off"`
	} `json:"tolerance"`
	VoxelSize [][]float64 `json:"voxel_size_um"` // per level
	Chunks    []int       `json:"chunks"`

	// File is all of case.json, for fields that only one stage has.
	File   json.RawMessage  `json:"-"`
	Arrays map[string]Array `json:"-"`
}

// Primitive is a test of one operator: inputs, and outputs of another library.
type Primitive struct {
	File string          `json:"file"`
	Op   string          `json:"op"`
	Args json.RawMessage `json:"args"`

	Tolerance struct {
		Rel float64 `json:"rel"`
		Abs float64 `json:"abs"`
	} `json:"tolerance"`
	RawTolerance json.RawMessage  `json:"-"` // if an operator has tolerances of its own
	Arrays       map[string]Array `json:"-"`
}

// Primitives reads all files of an operator.
func Primitives(t testing.TB, op string) []Primitive {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(folder(), "prim", "index.json"))
	if err != nil {
		t.Fatal(err)
	}
	var all []json.RawMessage
	if err := json.Unmarshal(b, &all); err != nil {
		t.Fatal(err)
	}
	var out []Primitive
	for _, raw := range all {
		var p Primitive
		var own struct{ Tolerance json.RawMessage }
		if err := errors.Join(json.Unmarshal(raw, &p), json.Unmarshal(raw, &own)); err != nil {
			t.Fatalf("prim/index.json: %v", err)
		}
		if p.Op == op {
			p.RawTolerance = own.Tolerance
			p.Arrays = readNpz(t, filepath.Join(folder(), "prim", p.File))
			out = append(out, p)
		}
	}
	if len(out) == 0 {
		t.Fatalf("no golden primitive of %s", op)
	}
	return out
}

// Array is an expected output in C order and native bytes.
type Array struct {
	Type  dtype.Type
	Shape []int
	Data  []byte
}

func folder() string {
	return repo.Path("tests", "golden")
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
		c := Case{Name: filepath.Base(filepath.Dir(file)), File: b}
		var of struct{ Process string }
		if err := errors.Join(json.Unmarshal(b, &c), json.Unmarshal(b, &of)); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		c.Stage = cmp.Or(c.Stage, of.Process)
		if npz := filepath.Join(filepath.Dir(file), "expected.npz"); !c.tables() {
			c.Arrays = readNpz(t, npz)
		}
		out = append(out, c)
	}
	return out
}

// tables reports whether case.json lists no arrays, because all that is expected stands in it.
func (c *Case) tables() bool {
	var of struct{ Arrays map[string]any }
	return json.Unmarshal(c.File, &of) == nil && of.Arrays != nil && len(of.Arrays) == 0
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

// Input unpacks the mosaic named by a case's parameters and returns its path.
func Input(t testing.TB, c Case) string {
	t.Helper()
	var p struct{ Input string }
	if err := json.Unmarshal(c.Params, &p); err != nil || p.Input == "" {
		t.Fatalf("%s: no input: %v", c.Name, err)
	}
	return filepath.Join(Unpack(t, p.Input), strings.TrimSuffix(filepath.Base(p.Input), ".zip")+".ome.zarr")
}

// Slices unpacks the folder of slices named by a case's parameters. It returns the paths of the folder, of the
// shifts CSV, and of the folder of transforms ("": none).
func Slices(t testing.TB, c Case) (slices, shifts, transforms string) {
	t.Helper()
	var p struct {
		Slices, Shifts string
		Transforms     string `json:"transforms_dir"`
	}
	if err := json.Unmarshal(c.Params, &p); err != nil || p.Slices == "" || p.Shifts == "" {
		t.Fatalf("%s: no slices: %v", c.Name, err)
	}
	slices = filepath.Join(Unpack(t, p.Slices), strings.TrimSuffix(filepath.Base(p.Slices), ".zip"))
	if p.Transforms != "" {
		dir := Unpack(t, filepath.Join(c.Stage, c.Name, p.Transforms))
		inner, err := os.ReadDir(dir)
		if err != nil || len(inner) != 1 {
			t.Fatalf("%s: transforms: %v, %v", c.Name, inner, err)
		}
		transforms = filepath.Join(dir, inner[0].Name())
	}
	return slices, filepath.Join(slices, p.Shifts), transforms
}

// Unpack unpacks a zip file of this folder into a temporary folder.
func Unpack(t testing.TB, name string) string {
	t.Helper()
	dir := t.TempDir()
	z, err := zip.OpenReader(filepath.Join(folder(), name))
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	if err := os.CopyFS(dir, z); err != nil {
		t.Fatal(err)
	}
	return dir
}
