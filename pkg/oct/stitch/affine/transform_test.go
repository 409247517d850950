package affine

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"strata/pkg/oct"
	"strata/pkg/smallfile"
)

// stitchNpy is a .npy file of 2 × 2 numbers in the order given.
func stitchNpy(descr string, fortran bool, numbers any) []byte {
	head := fmt.Sprintf("{'descr': '%s', 'fortran_order': %s, 'shape': (2, 2), }", descr, map[bool]string{true: "True", false: "False"}[fortran])
	head += strings.Repeat(" ", 63-(10+len(head))%64) + "\n"
	b := append([]byte("\x93NUMPY\x01\x00"), byte(len(head)), byte(len(head)>>8))
	b = append(b, head...)
	var order binary.ByteOrder = binary.LittleEndian
	if descr[0] == '>' {
		order = binary.BigEndian
	}
	b, _ = binary.Append(b, order, numbers)
	return b
}

func TestReadTransform(t *testing.T) {
	want := Matrix{{1, 2}, {-3, 4}}
	for name, file := range map[string][]byte{
		"bare rows":         []byte("[[1, 2], [-3, 4]]"),
		"an object":         []byte(`{"matrix": [[1, 2], [-3, 4]], "from": "elsewhere"}`),
		"with a mark":       []byte("\ufeff {\r\n\"matrix\": [[1, 2], [-3, 4]]}\r\n"),
		"float64":           stitchNpy("<f8", false, []float64{1, 2, -3, 4}),
		"float32":           stitchNpy("<f4", false, []float32{1, 2, -3, 4}),
		"int16":             stitchNpy("<i2", false, []int16{1, 2, -3, 4}),
		"big-endian":        stitchNpy(">f8", false, []float64{1, 2, -3, 4}),
		"Fortran's order":   stitchNpy("<f8", true, []float64{1, -3, 2, 4}),
		"big-endian int64":  stitchNpy(">i8", true, []int64{1, -3, 2, 4}),
		"as it is written":  stitchWritten(t, Transform{Matrix: want, Overlap: -1}),
		"spaces everywhere": []byte("\n\n [ [1,2],\n[-3,4] ] \n"),
	} {
		got, err := ReadTransform(bytes.NewReader(file), "m")
		if err != nil || got.Matrix != want || got.Overlap != -1 {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	all := Transform{Matrix: Matrix{{0.1, 1.0 / 3}, {-7, 1e-5}}, Overlap: 0.15, Pairs: 12, Spread: 0.25, Voxel: [2]float64{2, 3.5}}
	if got, err := ReadTransform(bytes.NewReader(stitchWritten(t, all)), "m"); err != nil || got != all {
		t.Errorf("written and read: %+v, %v", got, err)
	}
}

// Where pixels have another proportion, a tile goes to the same place in micrometres.
func TestTransformOnOtherPixels(t *testing.T) {
	a := Transform{Matrix: Matrix{{1.01, -0.02}, {0.03, 0.99}}, Voxel: [2]float64{2, 3}}
	for _, voxel := range [][2]float64{{2, 3}, {10, 15}, {5, 5}, {4, 10}} {
		m := a.On(voxel)
		step := [2]float64{100, 70} // µm
		for d := range 2 {
			want := (a.Matrix[d][0]*step[0]/a.Voxel[0] + a.Matrix[d][1]*step[1]/a.Voxel[1]) * a.Voxel[d]
			if got := (m[d][0]*step[0]/voxel[0] + m[d][1]*step[1]/voxel[1]) * voxel[d]; math.Abs(got-want) > 1e-9 {
				t.Errorf("pixels of %v µm: axis %d at %v µm, want %v", voxel, d, got, want)
			}
		}
	}
	if m := (Transform{Matrix: a.Matrix}).On([2]float64{4, 10}); m != a.Matrix {
		t.Errorf("a matrix of unknown pixels became %v", m)
	}
}

func stitchWritten(t *testing.T, tr Transform) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := WriteTransform(&b, tr); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestReadTransformRefuses(t *testing.T) {
	npy := stitchNpy("<f8", false, []float64{1, 0, 0, 1})
	for name, c := range map[string]struct{ file, want string }{
		"empty":             {"", "empty"},
		"no JSON":           {"matrix", "line 1"},
		"broken":            {"[[1,\n 0],\n [0 1]]", "line 3"},
		"broken, indented":  {"\n\n{\"matrix\": [[1, x]]}", "line 3"},
		"text":              {`[["1", "0"], ["0", "1"]]`, "line 1"},
		"3 × 3":             {"[[1,0,0],[0,1,0],[0,0,1]]", "two rows of two"},
		"2 × 3":             {"[[1,0,5],[0,1,5]]", "two rows of two"},
		"a row":             {"[1, 0]", "line 1"},
		"another object":    {`{"rotation": 5}`, `no "matrix"`},
		"singular":          {"[[1, 1], [1, 1]]", "singular"},
		"nearly singular":   {"[[1, 1], [1, 1.0000001]]", "singular"},
		"huge":              {"[[1, 0], [0, 1e300]]", "within ±1e6"},
		"overlap":           {`{"matrix": [[1,0],[0,1]], "overlap": 1}`, "overlap 1 is not within"},
		"large":             {strings.Repeat(" ", smallfile.MaxBytes+1), "is longer than 16 MiB"},
		"npy cut off":       {string(npy[:len(npy)-1]), "bytes after the header: want 32"},
		"npy too long":      {string(npy) + "x", "bytes after the header: want 32"},
		"npy of a vector":   {strings.Replace(string(npy), "(2, 2)", "(4,)  ", 1), "want (2, 2)"},
		"npy of bool":       {strings.Replace(string(npy), "<f8", "|b1", 1), "want"},
		"npy of NaN":        {string(stitchNpy("<f8", false, []uint64{0x7ff8 << 48, 0, 0, 0x3ff0 << 48})), "not a number"},
		"npy without heads": {"\x93NUMPY", "m: "},
	} {
		_, err := ReadTransform(strings.NewReader(c.file), "m")
		if !errors.Is(err, oct.ErrInput) || !strings.HasPrefix(err.Error(), "m: ") || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

func FuzzReadTransform(f *testing.F) {
	f.Add([]byte("[[1, 2], [-3, 4]]"))
	f.Add([]byte(`{"matrix": [[1, 2], [-3, 4]], "overlap": 0.2, "pairs": 3}`))
	f.Add(stitchNpy("<f8", false, []float64{1, 2, -3, 4}))
	f.Add(stitchNpy(">i2", true, []int16{1, 2, -3, 4}))
	f.Fuzz(func(t *testing.T, b []byte) {
		got, err := ReadTransform(bytes.NewReader(b), "m")
		if err != nil {
			if !errors.Is(err, oct.ErrInput) {
				t.Fatal(err)
			}
			return
		}
		again, err := ReadTransform(bytes.NewReader(stitchWritten(t, got)), "m")
		if err != nil || again != got {
			t.Fatalf("%+v, written and read %+v (%v)", got, again, err)
		}
	})
}
