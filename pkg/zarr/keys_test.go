package zarr_test

import (
	"testing"

	"strata/pkg/dtype"
	"strata/pkg/zarr"
	"strata/pkg/zarr/store"
)

// Keys of chunks are those that the array's metadata give, whatever its format, separator and shards.
func TestIsKey(t *testing.T) {
	for name, c := range map[string]struct {
		document, file string
		yes, no        []string
	}{
		"v3": {`{"zarr_format":3,"node_type":"array","shape":[5,4],"data_type":"uint8","chunk_grid":{"name":"regular","configuration":{"chunk_shape":[2,4]}},` +
			`"chunk_key_encoding":{"name":"default"},"fill_value":0,"codecs":[{"name":"bytes"}]}`, "zarr.json",
			[]string{"c/0/0", "c/2/0"}, []string{"c/3/0", "c/0/1", "c.0.0", "0/0", "c/0", "c/-1/0", "c/0/0/", "c", "", "c/99999999999999999999/0"}},
		"v3, dots": {`{"zarr_format":3,"node_type":"array","shape":[5],"data_type":"uint8","chunk_grid":{"name":"regular","configuration":{"chunk_shape":[2]}},` +
			`"chunk_key_encoding":{"name":"default","configuration":{"separator":"."}},"fill_value":0,"codecs":[{"name":"bytes"}]}`, "zarr.json",
			[]string{"c.0", "c.2"}, []string{"c/0", "c.3", "0"}},
		"v3, shards": {`{"zarr_format":3,"node_type":"array","shape":[8],"data_type":"uint8","chunk_grid":{"name":"regular","configuration":{"chunk_shape":[4]}},` +
			`"chunk_key_encoding":{"name":"v2"},"fill_value":0,"codecs":[{"name":"sharding_indexed","configuration":{"chunk_shape":[2],"codecs":[{"name":"bytes"}],` +
			`"index_codecs":[{"name":"bytes","configuration":{"endian":"little"}},{"name":"crc32c"}]}}]}`, "zarr.json",
			[]string{"0", "1"}, []string{"2", "3", "c/0"}},
		"v3, no dimensions": {`{"zarr_format":3,"node_type":"array","shape":[],"data_type":"uint8","chunk_grid":{"name":"regular","configuration":{"chunk_shape":[]}},` +
			`"chunk_key_encoding":{"name":"default"},"fill_value":0,"codecs":[{"name":"bytes"}]}`, "zarr.json", []string{"c"}, []string{"0", "c/0", ""}},
		"v2": {`{"zarr_format":2,"shape":[5,4],"chunks":[2,4],"dtype":"|u1","compressor":null,"filters":null,"order":"C","fill_value":0}`, ".zarray",
			[]string{"0.0", "2.0"}, []string{"0/0", "c.0.0", "3.0", "0.1", "00.0"}},
		"v2, folders": {`{"zarr_format":2,"shape":[5,4],"chunks":[2,4],"dtype":"|u1","compressor":null,"filters":null,"order":"C","fill_value":0,"dimension_separator":"/"}`, ".zarray",
			[]string{"0/0", "2/0"}, []string{"0.0", "c/0/0"}},
		"v2, empty": {`{"zarr_format":2,"shape":[0],"chunks":[2],"dtype":"|u1","compressor":null,"filters":null,"order":"C","fill_value":0}`, ".zarray", nil, []string{"0"}},
	} {
		st := store.Memory()
		if err := st.Put(bg, "a/"+c.file, []byte(c.document)); err != nil {
			t.Fatal(err)
		}
		a, err := zarr.OpenArray(bg, st, "a")
		if err != nil {
			t.Fatal(err)
		}
		for want, keys := range map[bool][]string{true: c.yes, false: c.no} {
			for _, key := range keys {
				if a.IsKey(key, false) != want {
					t.Errorf("%s: %q is a key: %v, want %v", name, key, !want, want)
				}
			}
		}
	}
	for _, c := range []struct {
		separator string
		format    int
		yes, no   []string
	}{
		{"/", 3, []string{"c", "c/1"}, []string{"0", "c/0/0", "c/9", "c/00", "zarr.json", "photos"}},
		{".", 3, nil, []string{"c", "c.0", "0"}},
		{"/", 2, []string{"0"}, []string{"c", "0/0", "9", ".zarray", "2024"}},
	} {
		a, err := zarr.CreateArray(bg, store.Memory(), "", zarr.Spec{Format: c.format, Separator: c.separator, Shape: []int{4, 4}, Chunks: []int{2, 2}, DType: dtype.Uint8})
		if err != nil {
			t.Fatal(err)
		}
		for want, keys := range map[bool][]string{true: c.yes, false: c.no} {
			for _, key := range keys {
				if a.IsKey(key, true) != want {
					t.Errorf("format %d, %q: folder %q holds chunks: %v, want %v", c.format, c.separator, key, !want, want)
				}
			}
		}
	}
}
