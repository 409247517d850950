package zarr_test

import (
	"bytes"
	"encoding/binary"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"strata/pkg/zarr"
	"strata/pkg/zarr/store"
)

// stored lays out an array of one chunk.
func stored(t *testing.T, dataType, fill, grid, codecs string, chunks map[string][]byte) (*zarr.Array, error) {
	t.Helper()
	dir := t.TempDir()
	document := `{"zarr_format": 3, "node_type": "array", "shape": [4], "data_type": "` + dataType + `", "chunk_grid": ` + grid +
		`, "chunk_key_encoding": {"name": "default"}, "fill_value": ` + fill + `, "codecs": ` + codecs + `}`
	chunks = map[string][]byte{"zarr.json": []byte(document), "c/0": chunks["c/0"], "c/1": chunks["c/1"]}
	for name, b := range chunks {
		if b == nil {
			continue
		}
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, b, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return zarr.OpenArray(t.Context(), store.Folder(dir), "")
}

// little returns values as they lie in memory.
func little(t *testing.T, values any) []byte {
	t.Helper()
	b, err := binary.Append(nil, binary.LittleEndian, values)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestExtensionCodecs reads scale_offset and cast_value by the examples and rules of zarr-extensions
// (codecs/scale_offset and codecs/cast_value, README.md), which no library for this Python writes.
func TestExtensionCodecs(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	const cast = `{"name": "cast_value", "configuration": {"data_type": `
	for _, c := range []struct {
		name, dataType, codecs string
		chunk, want            any // nil: an error when it is read
		problem                string
	}{
		{"nothing configured", "int16", `["scale_offset", {"name": "bytes", "configuration": {"endian": "little"}}]`, []int16{1, -2, 3, 4}, []int16{1, -2, 3, 4}, ""},
		{"the first example", "float32", `[{"name": "scale_offset", "configuration": {"offset": 5, "scale": 0.1}}, {"name": "bytes", "configuration": {"endian": "little"}}]`,
			[]float32{0, 1, -2.5, 0.1}, []float32{5, 1/float32(0.1) + 5, -2.5/float32(0.1) + 5, 6}, ""},
		{"the second, its range reduced", "uint16", `[{"name": "scale_offset", "configuration": {"offset": 1000}}, ` + cast + `"uint8"}}, "bytes"]`, []uint8{0, 1, 128, 255}, []uint16{1000, 1001, 1128, 1255}, ""},
		{"the third, its NaN kept", "float64", `[{"name": "scale_offset", "configuration": {"offset": -10, "scale": 0.1}}, ` + cast + `"uint8", "rounding": "nearest-even",
			"scalar_map": {"encode": [["NaN", 0]], "decode": [[0, "NaN"]]}}}, "bytes"]`, []uint8{0, 1, 2, 255}, []float64{nan, 1/0.1 - 10, 2/0.1 - 10, 255/0.1 - 10}, ""},
		{"big-endian", "float64", `[` + cast + `"int16"}}, {"name": "bytes", "configuration": {"endian": "big"}}]`, []uint8{0, 1, 1, 0, 255, 255, 128, 0}, []float64{1, 256, -1, -32768}, ""},
		{"integers by their scale", "int32", `[{"name": "scale_offset", "configuration": {"offset": -7, "scale": 3}}, {"name": "bytes", "configuration": {"endian": "little"}}]`, []int32{0, 3, -9, 300}, []int32{-7, -6, -10, 93}, ""},
		{"which has to divide them", "int32", `[{"name": "scale_offset", "configuration": {"scale": 3}}, {"name": "bytes", "configuration": {"endian": "little"}}]`, []int32{0, 3, 4, 6}, nil,
			"scale_offset: element 2 divided by 3, plus 0, is no int32"},
		{"out of range", "int8", `[{"name": "scale_offset", "configuration": {"offset": 100}}, "bytes"]`, []int8{0, 27, 28, 0}, nil, "element 2"},
		{"the least, negated", "int64", `[{"name": "scale_offset", "configuration": {"scale": -1}}, {"name": "bytes", "configuration": {"endian": "little"}}]`, []int64{1, math.MinInt64, 0, 0}, nil, "element 1"},
		{"values that no type has", "uint8", `[` + cast + `"int16"}}, {"name": "bytes", "configuration": {"endian": "little"}}]`, []int16{0, 255, 256, 0}, nil, "cast_value: element 2, a int16, is no uint8"},
		{"clamped", "uint8", `[` + cast + `"int16", "out_of_range": "clamp"}}, {"name": "bytes", "configuration": {"endian": "little"}}]`, []int16{-5, 255, 256, 32767}, []uint8{0, 255, 255, 255}, ""},
		{"wrapped", "int16", `[` + cast + `"int32", "out_of_range": "wrap"}}, {"name": "bytes", "configuration": {"endian": "little"}}]`, []int32{32768, 32769, -32769, 5}, []int16{-32768, -32767, 32767, 5}, ""},
		{"to even", "int8", `[` + cast + `"float32"}}, {"name": "bytes", "configuration": {"endian": "little"}}]`, []float32{0.5, 1.5, -2.5, 2.6}, []int8{0, 2, -2, 3}, ""},
		{"away from zero", "int8", `[` + cast + `"float32", "rounding": "nearest-away"}}, {"name": "bytes", "configuration": {"endian": "little"}}]`, []float32{0.5, 1.5, -2.5, 2.4}, []int8{1, 2, -3, 2}, ""},
		{"towards zero", "int8", `[` + cast + `"float32", "rounding": "towards-zero"}}, {"name": "bytes", "configuration": {"endian": "little"}}]`, []float32{0.9, 1.5, -2.9, 2}, []int8{0, 1, -2, 2}, ""},
		{"up", "int8", `[` + cast + `"float32", "rounding": "towards-positive"}}, {"name": "bytes", "configuration": {"endian": "little"}}]`, []float32{0.1, 1.5, -2.9, 2}, []int8{1, 2, -2, 2}, ""},
		{"down", "int8", `[` + cast + `"float32", "rounding": "towards-negative"}}, {"name": "bytes", "configuration": {"endian": "little"}}]`, []float32{0.1, 1.5, -2.1, 2}, []int8{0, 1, -3, 2}, ""},
		{"no number as integer", "int8", `[` + cast + `"float32", "out_of_range": "clamp"}}, {"name": "bytes", "configuration": {"endian": "little"}}]`, []float32{1, float32(nan), 0, 0}, nil, "element 1"},
		{"by the map", "uint8", `[` + cast + `"float32", "scalar_map": {"decode": [["NaN", 7], ["+Infinity", 8], ["-Infinity", 9], ["NaN", 1]]}}}, {"name": "bytes", "configuration": {"endian": "little"}}]`,
			[]float32{float32(nan), float32(inf), float32(-inf), 2}, []uint8{7, 8, 9, 2}, ""},
		{"beyond the floats", "float32", `[` + cast + `"float64"}}, {"name": "bytes", "configuration": {"endian": "little"}}]`, []float64{0.1, 1e300, 0, 0}, nil, "element 1"},
		{"as infinity", "float32", `[` + cast + `"float64", "out_of_range": "clamp"}}, {"name": "bytes", "configuration": {"endian": "little"}}]`, []float64{0.1, 1e300, -1e300, nan}, []float32{0.1, float32(inf), float32(-inf), float32(nan)}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			a, err := stored(t, c.dataType, "0", `{"name": "regular", "configuration": {"chunk_shape": [4]}}`, c.codecs, map[string][]byte{"c/0": little(t, c.chunk)})
			if err != nil {
				t.Fatal(err)
			}
			defer a.Close()
			got := make([]byte, 4*a.DType().Size())
			err = a.Read(t.Context(), a.Bounds(), got)
			switch {
			case c.want == nil && (err == nil || !strings.Contains(err.Error(), c.problem)):
				t.Errorf("%v, want %q", err, c.problem)
			case c.want != nil && (err != nil || !bytes.Equal(got, little(t, c.want))):
				t.Errorf("%x, %v, want %x", got, err, little(t, c.want))
			}
		})
	}
}

// TestRectilinearGrids: chunks of one shape are read however the grid says so; others are refused by name.
func TestRectilinearGrids(t *testing.T) {
	for _, c := range []struct{ shapes, problem string }{
		{`[3]`, ""}, {`[[3, 3]]`, ""}, {`[[[3, 2]]]`, ""}, {`[[3, [3, 5]]]`, ""}, {`[[3.0, 3]]`, ""},
		{`[[3, 1]]`, "chunks of several lengths (3, 1) are not supported"},
		{`[[3]]`, "whose sum must be 4"},
		{`[[[3, 0]]]`, "must be whole numbers above 0"},
		{`[[0, 4]]`, "must be whole numbers above 0"},
		{`[[]]`, "must be a length or a list of lengths"},
		{`["x"]`, "must be a length or a list of lengths"},
		{`[3, 3]`, "one for each dimension"},
		{`[[[3, 9223372036854775807]]]`, ""},
	} {
		grid := `{"name": "rectilinear", "configuration": {"kind": "inline", "chunk_shapes": ` + c.shapes + `}}`
		a, err := stored(t, "uint8", "9", grid, `["bytes"]`, map[string][]byte{"c/0": {1, 2, 3}, "c/1": {4, 5, 6}})
		if c.problem != "" {
			if err == nil || !strings.Contains(err.Error(), c.problem) {
				t.Errorf("%s: %v, want %q", c.shapes, err, c.problem)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", c.shapes, err)
			continue
		}
		got := make([]byte, 4)
		if err := a.Read(t.Context(), a.Bounds(), got); err != nil || !bytes.Equal(got, []byte{1, 2, 3, 4}) {
			t.Errorf("%s: %v, %v", c.shapes, got, err)
		}
		a.Close()
	}
	if _, err := stored(t, "uint8", "0", `{"name": "rectilinear", "configuration": {"kind": "file", "chunk_shapes": [3]}}`, `["bytes"]`, nil); err == nil || !strings.Contains(err.Error(), `"file" is not supported`) {
		t.Error(err)
	}
}
