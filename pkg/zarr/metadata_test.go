package zarr

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"strata/pkg/dtype"
	"strata/pkg/zarr/box"
	"strata/pkg/zarr/codec"
	"strata/pkg/zarr/meta"
	"strata/pkg/zarr/store"
	"strata/tests/corpus"
)

// What an array's metadata says comes back from a document written of it.
func TestSpecRoundTrip(t *testing.T) {
	ctx := t.Context()
	for ty := dtype.Bool; ty <= dtype.Complex128; ty++ {
		for _, big := range []bool{false, true} {
			for i, s := range []Spec{
				{Format: 2, Order: 'F', Separator: "/", Codecs: codec.Chain{codec.Zlib(1)}},
				{Format: 3, DimensionNames: []string{"z", "", "x"}, Codecs: codec.Chain{codec.Gzip(1), codec.CRC32C()}},
				{Format: 3, Order: 'F', Separator: ".", Shard: []int{4, 6, 8}, Codecs: codec.Chain{codec.Zstd(3, true)}},
			} {
				s.Shape, s.Chunks, s.DType, s.BigEndian = []int{5, 6, 7}, []int{2, 3, 4}, ty, big
				s.Attributes = map[string]any{"n": 1}
				st := store.Memory()
				a, err := CreateArray(ctx, st, "", s)
				if err != nil {
					t.Fatal(err)
				}
				b, err := OpenArray(ctx, st, "")
				if err != nil {
					t.Fatalf("%s: %v\n%s", ty, err, a.MetadataJSON())
				}
				for _, x := range []*Array{a, b} {
					got := fmt.Sprint(x.Format(), x.Shape(), x.Chunks(), x.Shard(), x.DType(), x.BigEndian(), string(x.Order()), x.Separator(),
						x.DimensionNames(), len(x.Codecs()), string(x.Attributes()["n"]))
					order := "C"
					if s.Order != 0 {
						order = "F"
					}
					sep := s.Separator
					if sep == "" {
						sep = "/"
					}
					want := fmt.Sprint(s.Format, s.Shape, s.Chunks, s.Shard, ty, big && ty.Size() > 1, order, sep, s.DimensionNames, len(s.Codecs), "1")
					if got != want {
						t.Errorf("%s, spec %d:\n got %s\nwant %s", ty, i, got, want)
					}
				}
			}
		}
	}
}

// Messages of wrong metadata name the field.
func TestFieldsAreNamed(t *testing.T) {
	good := `{"zarr_format":3,"node_type":"array","shape":[8,6],"data_type":"int32","chunk_grid":{"name":"regular","configuration":{"chunk_shape":[4,6]}},` +
		`"chunk_key_encoding":{"name":"default"},"fill_value":0,"codecs":[{"name":"bytes","configuration":{"endian":"little"}}]}`
	v2 := `{"zarr_format":2,"shape":[8,6],"chunks":[4,6],"dtype":"<i4","compressor":null,"fill_value":0,"order":"C","filters":null}`
	for _, c := range []struct{ doc, old, new, field string }{
		{good, `"shape":[8,6]`, `"shape":[8,6.5]`, "shape[1]"},
		{good, `"shape":[8,6]`, `"shape":null`, "shape"},
		{good, `[4,6]`, `[4,0]`, "chunk_grid.configuration.chunk_shape[1]"},
		{good, `[4,6]`, `[4]`, "chunk_grid.configuration.chunk_shape"},
		{good, `"int32"`, `"int33"`, "data_type"},
		{good, `"int32"`, `{"name":"int32","configuration":{"x":1}}`, "data_type.configuration.x"},
		{good, `"name":"default"`, `"name":"defaults"`, "chunk_key_encoding.name"},
		{good, `{"name":"default"}`, `{"name":"v2","configuration":{"separator":"-"}}`, "chunk_key_encoding.configuration.separator"},
		{good, `"little"`, `"middle"`, "codecs[0].configuration.endian"},
		{good, `{"name":"bytes",`, `{"name":"bytes","mode":1,`, "codecs[0].mode"},
		{good, `"codecs":[`, `"codecs":[{"name":"transpose","configuration":{"order":[0,2]}},`, "codecs[0].configuration.order"},
		{good, `"codecs":[`, `"codecs":[{"name":"zstd","configuration":{"level":1,"checksum":false}},`, "codecs[0]"},
		{good, `"fill_value":0`, `"fill_value":"none"`, "fill_value"},
		{good, `"fill_value":0`, `"fill_value":0,"dimension_names":["y"]`, "dimension_names"},
		{good, `"fill_value":0`, `"fill_value":0,"attributes":[]`, "attributes"},
		{good, `"fill_value":0`, `"fill_value":0,"storage_transformers":[{"name":"lock"}]`, "storage_transformers[0]"},
		{good, `"fill_value":0`, `"fill_value":0,"extra":{"must_understand":true}`, "extra"},
		{good, `"zarr_format":3`, `"zarr_format":2`, "zarr_format"},
		{good, `"node_type":"array"`, `"node_type":"table"`, "node_type"},
		{v2, `"order":"C"`, `"order":"K"`, "order"},
		{v2, `"dtype":"<i4"`, `"dtype":[["a","<i4"]]`, "dtype"},
		{v2, `"chunks":[4,6]`, `"chunks":[4,-6]`, "chunks[1]"},
		{v2, `"filters":null`, `"filters":{}`, "filters"},
		{v2, `"filters":null`, `"filters":null,"dimension_separator":"+"`, "dimension_separator"},
		{v2, `"order":"C",`, ``, "order"},
	} {
		doc := strings.Replace(c.doc, c.old, c.new, 1)
		if doc == c.doc {
			t.Fatalf("%s is not in the document", c.old)
		}
		key := meta.KeyV3
		if c.doc == v2 {
			key = meta.KeyV2Array
		}
		st := store.Memory()
		if err := st.Put(t.Context(), key, []byte(doc)); err != nil {
			t.Fatal(err)
		}
		_, err := Open(t.Context(), st, "")
		var fe *FormatError
		if !errors.As(err, &fe) || fe.Field != c.field || fe.Path != st.Location(key) {
			t.Errorf("%s: got %v, want field %s", c.new, err, c.field)
		}
	}
}

// The hand-made splitter and encoding/json see the same members.
func checkSplit(t *testing.T, raw []byte) {
	var want map[string]json.RawMessage
	if !utf8.Valid(raw) || json.Unmarshal(raw, &want) != nil || want == nil {
		if m, err := meta.ParseDocument(raw); err == nil {
			t.Fatalf("%q: split into %q", raw, m)
		}
		return
	}
	got, err := meta.ParseDocument(raw)
	if err != nil || len(got) != len(want) {
		t.Fatalf("%q: split into %q, %v, want %q", raw, got, err, want)
	}
	for k, v := range want {
		if !bytes.Equal(got[k], v) {
			t.Fatalf("%q: member %q is %q, want %q", raw, k, got[k], v)
		}
		var list []json.RawMessage
		l, ok := meta.ParseList(v)
		if isList := json.Unmarshal(v, &list) == nil && list != nil; ok != isList || len(l) != len(list) {
			t.Fatalf("%q: list %q, want %q", v, l, list)
		}
		for i := range l {
			if !bytes.Equal(l[i], list[i]) {
				t.Fatalf("%q: element %d is %q, want %q", v, i, l[i], list[i])
			}
		}
	}
}

func TestSplit(t *testing.T) {
	for _, s := range []string{`{}`, ` { } `, `{"a":1}`, "{\"a\" : [ 1 , \"x,]\\\"\" ,{\"b\":[]} ] ,\n\"c\":null }", `{"a":1,"a":2}`,
		`{"\u0061":"\\"}`, `{"a":-1.5e3,"b":true}`, `[]`, `null`, `1`, `{"a":1,}`, `{"a"}`, `{`, ``, `{"a":[[],[[]],{}]}`} {
		checkSplit(t, []byte(s))
	}
}

func TestPythonsNonFiniteNumbers(t *testing.T) {
	st := store.Memory()
	for key, doc := range map[string]string{
		"x/.zarray": `{"zarr_format":2,"shape":[2],"chunks":[2],"dtype":"<f4","compressor":null,"fill_value":NaN,"order":"C","filters":null}`,
		"x/.zattrs": `{"_FillValue": NaN, "range":[-Infinity,Infinity,-1e-3], "NaN":"NaN, \"Infinity\""}`,
		"y/.zgroup": `{"zarr_format":2}`,
		"y/.zattrs": `{"a": NaNs}`,
	} {
		if err := st.Put(t.Context(), key, []byte(doc)); err != nil {
			t.Fatal(err)
		}
	}
	a, err := OpenArray(t.Context(), st, "x")
	if err != nil {
		t.Fatal(err)
	}
	if attrs := a.Attributes(); string(attrs["_FillValue"]) != `"NaN"` || string(attrs["range"]) != `["-Infinity","Infinity",-1e-3]` ||
		string(attrs["NaN"]) != `"NaN, \"Infinity\""` {
		t.Errorf("attributes %s", attrs)
	}
	if got := meta.GetUint(a.Fill()); got != 0x7fc00000 {
		t.Errorf("fill value %#x", got)
	}
	if _, err := Open(t.Context(), st, "y"); err == nil || !strings.Contains(err.Error(), "y/.zattrs") {
		t.Errorf("got %v", err)
	}
}

func addCorpus(f *testing.F, names ...string) {
	for _, c := range corpus.Cases(f) {
		for _, name := range names {
			if b, err := os.ReadFile(filepath.Join(c.Dir(f), name)); err == nil && len(b) < 1<<16 {
				f.Add(b)
			}
		}
	}
}

// checkParsed is what must hold of any array that is opened: it can be read
// where nothing is stored, and what it says of itself is sound.
func checkParsed(t *testing.T, md *meta.Array) {
	a := newArray(store.Memory(), "", md, options{workers: 1})
	r := a.Bounds()
	n := md.DType.Size()
	for d := range r.Shape {
		r.Shape[d] = min(r.Shape[d], 3)
		n *= r.Shape[d]
		if a.Chunks()[d] < 1 || a.Shard() != nil && a.Shard()[d]%a.Chunks()[d] != 0 {
			t.Fatalf("chunks %v, shards %v", a.Chunks(), a.Shard())
		}
	}
	if n > 1<<16 {
		return
	}
	dst := make([]byte, n)
	if err := a.Read(t.Context(), r, dst); err != nil {
		t.Fatal(err)
	}
	if !box.IsFill(dst, md.Fill) && n > 0 {
		t.Fatalf("read %x, fill value %x", dst, md.Fill)
	}
}

func FuzzMetadataV3(f *testing.F) {
	addCorpus(f, meta.KeyV3)
	for _, codecs := range []string{`["scale_offset", "bytes"]`, `[{"name": "scale_offset", "configuration": {"offset": -10, "scale": "0x3f800000"}}, {"name": "cast_value",
		"configuration": {"data_type": "uint8", "rounding": "towards-zero", "out_of_range": "wrap", "scalar_map": {"decode": [[0, "NaN"]]}}}, "bytes"]`,
		`[{"name": "transpose", "configuration": {"order": [0]}}, {"name": "numcodecs.delta", "configuration": {"dtype": ">f4"}}, {"name": "bytes", "configuration": {"endian": "big"}}]`} {
		for _, grid := range []string{`{"name": "regular", "configuration": {"chunk_shape": [2]}}`, `{"name": "rectilinear", "configuration": {"kind": "inline", "chunk_shapes": [[2, [2, 3]]]}}`} {
			f.Add([]byte(`{"zarr_format": 3, "node_type": "array", "shape": [4], "data_type": "float32", "chunk_grid": ` + grid +
				`, "chunk_key_encoding": {"name": "default"}, "fill_value": 0, "codecs": ` + codecs + `}`))
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		checkSplit(t, b)
		n, err := parseNode(store.Memory(), "", b, options{workers: 1})
		if err != nil {
			return
		}
		switch n := n.(type) {
		case *Array:
			checkParsed(t, n.meta)
			again, err := meta.EncodeV3(n.meta)
			if err != nil {
				return // a codec without a form of its own
			}
			if _, err := parseNode(store.Memory(), "", again, options{}); err != nil {
				t.Fatalf("%s\nwas written as\n%s\n%v", b, again, err)
			}
		case *Group:
			for path, c := range n.consolidated {
				if !store.ValidKey(path) {
					t.Fatalf("key %q", path)
				}
				_, _ = n.fromConsolidated(path, c) // must not panic
			}
		}
	})
}

func FuzzMetadataV2(f *testing.F) {
	addCorpus(f, meta.KeyV2Array, meta.KeyV2Consolidated)
	f.Fuzz(func(t *testing.T, b []byte) {
		if md, err := meta.ParseV2Array(b, nil); err == nil {
			checkParsed(t, md)
		}
		nodes, err := meta.ParseConsolidatedV2(b)
		if err != nil {
			return
		}
		g := &Group{st: store.Memory(), format: 2, consolidated: nodes}
		for path, c := range nodes {
			if !store.ValidKey(path) {
				t.Fatalf("key %q", path)
			}
			_, _ = g.fromConsolidated(path, c) // must not panic
		}
	})
}

// FuzzShardIndex reads arbitrary bytes as a shard of a known layout.
func FuzzShardIndex(f *testing.F) {
	for _, c := range corpus.Cases(f) {
		if strings.HasPrefix(c.ID, "neg/shard") || strings.HasPrefix(c.ID, "v3/shard") {
			if b, err := os.ReadFile(filepath.Join(c.Dir(f), "c", "0", "0")); err == nil {
				f.Add(b, byte(0))
				f.Add(b, byte(3))
			}
		}
	}
	f.Fuzz(func(t *testing.T, b []byte, layout byte) {
		index := `{"name":"bytes","configuration":{"endian":"little"}}`
		codecs := index
		if layout&1 == 0 {
			index += `,{"name":"crc32c"}`
		}
		if layout&4 == 0 {
			codecs += `,{"name":"zstd","configuration":{"level":1,"checksum":false}}`
		}
		location := []string{"end", "start"}[layout>>1&1]
		st := store.Memory()
		doc := `{"zarr_format":3,"node_type":"array","shape":[8,6],"data_type":"int32","chunk_grid":{"name":"regular","configuration":{"chunk_shape":[4,6]}},` +
			`"chunk_key_encoding":"default","fill_value":7,"codecs":[{"name":"sharding_indexed","configuration":{"chunk_shape":[2,3],"codecs":[` + codecs +
			`],"index_codecs":[` + index + `],"index_location":"` + location + `"}}]}`
		for key, v := range map[string][]byte{meta.KeyV3: []byte(doc), "c/0/0": b} {
			if err := st.Put(t.Context(), key, v); err != nil {
				t.Fatal(err)
			}
		}
		a, err := OpenArray(t.Context(), st, "", Workers(1))
		if err != nil {
			t.Fatal(err)
		}
		whole, part := make([]byte, 96), make([]byte, 24)
		wholeErr := a.Read(t.Context(), Region{Start: []int{0, 0}, Shape: []int{4, 6}}, whole)
		partErr := a.Read(t.Context(), Region{Start: []int{2, 3}, Shape: []int{2, 3}}, part)
		if wholeErr == nil && partErr != nil {
			t.Fatalf("the shard can be read, a chunk of it cannot: %v", partErr)
		}
		if wholeErr == nil && (!bytes.Equal(part[:12], whole[60:72]) || !bytes.Equal(part[12:], whole[84:])) {
			t.Fatal("a chunk differs from the same part of the shard")
		}
	})
}
