package zarr_test

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"strata/pkg/dtype"
	"strata/pkg/zarr"
	"strata/pkg/zarr/store"
)

// numpyArrays unpacks testdata/numpytypes.zip, which zarr-python wrote, and returns the folder of each array.
func numpyArrays(t *testing.T) (dirs []string) {
	t.Helper()
	z, err := zip.OpenReader("testdata/numpytypes.zip")
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	root := t.TempDir()
	for _, f := range z.File {
		r, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		name := filepath.Join(root, f.Name)
		if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, b, 0o666); err != nil {
			t.Fatal(err)
		}
		if dir, ok := strings.CutSuffix(name, ".npy"); ok {
			dirs = append(dirs, dir)
		}
	}
	return dirs
}

// Arrays of dates, times, text and bytes are read as zarr-python wrote them, and written with its metadata.
func TestNumpyTypes(t *testing.T) {
	ctx := t.Context()
	dirs := numpyArrays(t)
	if len(dirs) < 30 {
		t.Fatalf("only %d arrays", len(dirs))
	}
	for _, dir := range dirs {
		t.Run(filepath.Base(dir), func(t *testing.T) {
			a, err := zarr.OpenArray(ctx, store.Folder(dir), "")
			if err != nil {
				t.Fatal(err)
			}
			got := make([]byte, regionBytes(a.Bounds(), a.DType().Size()))
			if err := a.Read(ctx, a.Bounds(), got); err != nil {
				t.Fatal(err)
			}
			npy, err := os.ReadFile(dir + ".npy")
			if err != nil {
				t.Fatal(err)
			}
			if want := npy[len(npy)-len(got):]; !bytes.Equal(got, want) {
				t.Fatalf("read %x, want %x", got, want)
			}
			if numpy := a.NumpyType(); numpy != "" && !bytes.Contains(npy[:128], []byte(numpy+"'")) {
				t.Errorf("type %q of %.100q", numpy, npy)
			}
			for _, format := range []int{2, 3} {
				st := store.Memory()
				b, err := zarr.CreateArray(ctx, st, "", zarr.Spec{Format: format, Shape: a.Shape(), Chunks: a.Chunks(), DType: a.DType(), NumpyType: a.NumpyType(),
					Fill: a.Fill(), BigEndian: a.BigEndian(), Codecs: a.Codecs()}, zarr.OmitFill())
				if err != nil {
					t.Fatal(err)
				}
				if err := b.Write(ctx, b.Bounds(), got); err != nil {
					t.Fatal(err)
				}
				if b, err = zarr.OpenArray(ctx, st, ""); err != nil {
					t.Fatal(err)
				}
				back := make([]byte, len(got))
				if err := b.Read(ctx, b.Bounds(), back); err != nil || !bytes.Equal(back, got) {
					t.Errorf("written in format %d: %v", format, err)
				}
				if !bytes.Equal(b.Fill(), a.Fill()) || b.NumpyType() != a.NumpyType() {
					t.Errorf("written in format %d: fill value %x of %q, want %x of %q", format, b.Fill(), b.NumpyType(), a.Fill(), a.NumpyType())
				}
				if format == a.Format() {
					for _, field := range []string{"dtype", "data_type", "fill_value"} {
						if got, want := member(t, b.MetadataJSON(), field), member(t, a.MetadataJSON(), field); want != nil && !reflect.DeepEqual(got, want) {
							t.Errorf("%s is written as %v, zarr-python's is %v", field, got, want)
						}
					}
				}
			}
		})
	}
}

func member(t *testing.T, document json.RawMessage, field string) any {
	t.Helper()
	var m map[string]any
	if err := json.Unmarshal(document, &m); err != nil {
		t.Fatal(err)
	}
	return m[field]
}

// Types that cannot be read are refused by name, and settings of those that can by field.
func TestNumpyTypesRefused(t *testing.T) {
	ctx := t.Context()
	v2 := func(dtype, fill string) (string, string) {
		return ".zarray", `{"zarr_format":2,"shape":[4],"chunks":[2],"dtype":` + dtype + `,"fill_value":` + fill + `,"order":"C","filters":null,"compressor":null}`
	}
	v3 := func(dtype, fill string) (string, string) {
		return "zarr.json", `{"zarr_format":3,"node_type":"array","shape":[4],"data_type":` + dtype + `,"fill_value":` + fill + `,"chunk_grid":{"name":"regular","configuration":{"chunk_shape":[2]}},` +
			`"chunk_key_encoding":{"name":"default"},"codecs":[{"name":"bytes","configuration":{"endian":"little"}}],"attributes":{}}`
	}
	for _, c := range []struct {
		document func(dtype, fill string) (string, string)
		dtype    string
		fill     string
		want     string // "": it is read
	}{
		{v3, `"string"`, `""`, `data_type: unknown data type "string"`},
		{v3, `{"name":"variable_length_utf8"}`, `""`, `"variable_length_utf8"`},
		{v3, `{"name":"struct","configuration":{"fields":[["a","int32"]]}}`, `0`, `unknown data type "struct"`},
		{v3, `{"name":"numpy.datetime64","configuration":{"unit":"fortnight","scale_factor":1}}`, `0`, `data_type.configuration.unit: is "fortnight"`},
		{v3, `{"name":"numpy.datetime64","configuration":{"unit":"ns","scale_factor":0}}`, `0`, `scale_factor: is 0`},
		{v3, `{"name":"numpy.datetime64","configuration":{"unit":"ns","scale_factor":-1}}`, `0`, `scale_factor: is -1`},
		{v3, `{"name":"numpy.datetime64","configuration":{"scale_factor":1}}`, `0`, `unit: missing`},
		{v3, `{"name":"numpy.datetime64","configuration":{"unit":"ns","zone":"UTC"}}`, `0`, `configuration.zone: unknown field`},
		{v3, `{"name":"numpy.timedelta64","configuration":{"unit":"ns"}}`, `"NaT"`, ``},
		{v3, `{"name":"numpy.timedelta64","configuration":{"unit":"ns"}}`, `1.5`, `fill_value: is 1.5`},
		{v3, `{"name":"fixed_length_utf32","configuration":{"length_bytes":7}}`, `""`, `length_bytes: is 7, must be a multiple of 4`},
		{v3, `{"name":"fixed_length_utf32","configuration":{"length_bytes":8}}`, `"abc"`, `fill_value: is "abc"`},
		{v3, `{"name":"fixed_length_utf32","configuration":{"length_bytes":-4}}`, `""`, `is -4`},
		{v3, `{"name":"null_terminated_bytes","configuration":{"length_bytes":0}}`, `""`, `is 0`},
		{v3, `{"name":"null_terminated_bytes"}`, `""`, `length_bytes: missing`},
		{v3, `{"name":"null_terminated_bytes","configuration":{"length_bytes":2}}`, `"?"`, `base64`},
		{v3, `{"name":"raw_bytes","configuration":{"length_bytes":99999999999}}`, `""`, `length_bytes: is 99999999999`},
		{v3, `"r16"`, `[1, 255]`, ``},
		{v3, `"r16"`, `[1, 256]`, `fill_value`},
		{v3, `"r12"`, `[1]`, `multiple of 8 bits`},
		{v3, `{"name":"int32","configuration":{"x":1}}`, `0`, `unknown field`},
		{v2, `"|O"`, `null`, `Python objects`},
		{v2, `[["a","<i4"]]`, `null`, `structured type`},
		{v2, `"<M8[ns]"`, `null`, ``},
		{v2, `"<M8[parsec]"`, `0`, `unknown unit "parsec"`},
		{v2, `"<M8[99999999999ns]"`, `0`, `too long`},
		{v2, `"|M8[ns]"`, `0`, `byte order`},
		{v2, `"|S0"`, `""`, `unknown data type "|S0"`},
		{v2, `"<U99999999"`, `""`, `more than 16777215 bytes`},
		{v2, `"<U99999999999999999999"`, `""`, `more than 16777215 bytes`},
		{v2, `"|S3"`, `0`, ``},
		{v2, `"<U2"`, `"\ud83d\ude00x"`, ``},
		{v2, `"?M8[ns]"`, `0`, `unknown data type`},
	} {
		st := store.Memory()
		key, document := c.document(c.dtype, c.fill)
		if err := st.Put(ctx, key, []byte(document)); err != nil {
			t.Fatal(err)
		}
		a, err := zarr.OpenArray(ctx, st, "")
		if (err == nil) != (c.want == "") || err != nil && (!strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), path.Base(key))) {
			t.Errorf("%s, fill value %s: %v, want %q", c.dtype, c.fill, err, c.want)
		}
		if err != nil {
			continue
		}
		if err := a.Read(ctx, a.Bounds(), make([]byte, regionBytes(a.Bounds(), a.DType().Size()))); err != nil {
			t.Errorf("%s: %v", c.dtype, err)
		}
	}
	for name, spec := range map[string]zarr.Spec{
		"other size": {DType: dtype.FixedBytes(3), NumpyType: "S4"}, "text of bytes": {DType: dtype.FixedBytes(8), NumpyType: "U2"},
		"numbers": {DType: dtype.Int32, NumpyType: "M8[s]"}, "rubbish": {DType: dtype.Int64, NumpyType: "i8"},
		"no text": {DType: dtype.FixedText(1), Fill: []byte{0, 0xd8, 0, 0}}, "long": {DType: dtype.FixedText(1), Fill: "ab"},
	} {
		spec.Shape, spec.Chunks = []int{2}, []int{1}
		if _, err := zarr.CreateArray(ctx, store.Memory(), "", spec); err == nil {
			t.Errorf("%s: created", name)
		}
	}
}
