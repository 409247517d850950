package oct

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"testing"

	"strata/pkg/document"
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
	all := Transform{Matrix: Matrix{{0.1, 1.0 / 3}, {-7, 1e-5}}, Overlap: 0.15, Pairs: 12, Spread: 0.25}
	if got, err := ReadTransform(bytes.NewReader(stitchWritten(t, all)), "m"); err != nil || got != all {
		t.Errorf("written and read: %+v, %v", got, err)
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
		"large":             {strings.Repeat(" ", document.MaxBytes+1), "is longer than 16 MiB"},
		"npy cut off":       {string(npy[:len(npy)-1]), "bytes after the header: want 32"},
		"npy too long":      {string(npy) + "x", "bytes after the header: want 32"},
		"npy of a vector":   {strings.Replace(string(npy), "(2, 2)", "(4,)  ", 1), "want (2, 2)"},
		"npy of bool":       {strings.Replace(string(npy), "<f8", "|b1", 1), "want"},
		"npy of NaN":        {string(stitchNpy("<f8", false, []uint64{0x7ff8 << 48, 0, 0, 0x3ff0 << 48})), "no number"},
		"npy without heads": {"\x93NUMPY", "m: "},
	} {
		_, err := ReadTransform(strings.NewReader(c.file), "m")
		if !errors.Is(err, ErrInput) || !strings.HasPrefix(err.Error(), "m: ") || !strings.Contains(err.Error(), c.want) {
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
			if !errors.Is(err, ErrInput) {
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
