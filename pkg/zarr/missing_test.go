package zarr_test

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"strata/pkg/dtype"
	"strata/pkg/meter"
	"strata/pkg/zarr"
	"strata/pkg/zarr/codec"
	"strata/pkg/zarr/store"
)

// missingSpecs are arrays of 8 × 8 × 8 elements in 64 chunks.
var missingSpecs = map[string]zarr.Spec{
	"raw":    {Chunks: []int{2, 2, 2}},
	"blosc":  {Chunks: []int{2, 2, 2}, Codecs: codec.Chain{mustBlosc()}},
	"v2":     {Format: 2, Chunks: []int{2, 2, 2}, Order: 'F', Codecs: codec.Chain{codec.Zstd(1, false)}},
	"shards": {Chunks: []int{2, 2, 2}, Shard: []int{4, 4, 4}, Codecs: codec.Chain{codec.Zstd(1, false)}},
}

func mustBlosc() codec.Codec {
	c, err := codec.Blosc("lz4", 1, codec.ByteShuffle, 1, 0)
	if err != nil {
		panic(err)
	}
	return c
}

// incomplete writes an array to a folder, with all its chunks or without one of nothing but 0, and removes
// chunk files.
func incomplete(t *testing.T, spec zarr.Spec, omit bool, remove ...[]int) string {
	t.Helper()
	ctx, dir := t.Context(), t.TempDir()
	spec.Shape, spec.DType, spec.Complete = []int{8, 8, 8}, dtype.Uint8, !omit
	src := bytes.Repeat([]byte{7}, 512)
	var opts []zarr.Option
	if omit { // one chunk of zeros, at [2 1 0]
		opts = append(opts, zarr.OmitFill())
		for _, at := range []int{4, 5} {
			for _, y := range []int{2, 3} {
				copy(src[at*64+y*8:], []byte{0, 0})
			}
		}
	}
	a, err := zarr.CreateArray(ctx, store.Folder(dir), "", spec, opts...)
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Write(ctx, a.Bounds(), src); err != nil {
		t.Fatal(err)
	}
	if omit {
		if err := a.WriteAccount(ctx); err != nil {
			t.Fatal(err)
		}
	}
	for _, file := range remove {
		if err := os.Remove(dir + "/" + a.ChunkKey(file)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// Every chunk that is not stored counts once, whatever way and store it is read by and however often.
func TestMissing(t *testing.T) {
	ctx := t.Context()
	for name, spec := range missingSpecs {
		for _, omit := range []bool{false, true} {
			dir := incomplete(t, spec, omit, []int{0, 0, 1}, []int{1, 1, 1})
			lost, each := int64(2), int64(1)
			if spec.Shard != nil {
				lost, each = 16, 8
			}
			found := lost
			if omit {
				found++
			}
			server := httptest.NewServer(http.FileServer(http.Dir(dir)))
			defer server.Close()
			zip, err := store.Zip(zipFolder(t, dir))
			if err != nil {
				t.Fatal(err)
			}
			for _, st := range []store.Store{store.Folder(dir), zip, store.HTTP(server.URL)} {
				for way, read := range map[string]func(a *zarr.Array, r zarr.Region) error{
					"read": func(a *zarr.Array, r zarr.Region) error { return a.Read(ctx, r, make([]byte, regionBytes(r, 1))) },
					"located": func(a *zarr.Array, r zarr.Region) error {
						return a.Located(ctx, r, func(*zarr.ChunkFile, []zarr.Located) error { return nil })
					},
					"planes": func(a *zarr.Array, r zarr.Region) error {
						for z := range 4 {
							for y := range 4 {
								for x := range 4 {
									chunk := zarr.Region{Start: []int{2 * z, 2 * y, 2 * x}, Shape: []int{2, 2, 2}}
									if err := a.ReadPlanes(ctx, chunk, make([]byte, 8), func(int, []byte) error { return nil }); err != nil {
										return err
									}
								}
							}
						}
						return nil
					},
				} {
					m, count := new(zarr.Missing), new(meter.Meter)
					a, err := zarr.OpenArray(ctx, st, "", zarr.NoteMissing(m), zarr.Meter(count))
					if err != nil {
						t.Fatal(err)
					}
					if way == "planes" && !a.InBlocks() || way == "located" && a.Elementary() != nil {
						continue
					}
					for range 2 {
						if err := read(a.With(zarr.Workers(3)), a.Bounds()); err != nil {
							t.Fatal(err)
						}
					}
					list := m.List()
					if len(list) != 1 || list[0].Chunks != found || count.Missing() != found || list[0].More {
						t.Fatalf("%s, %s of %s, omit %v: %+v, metered %d, want %d", name, way, st.Location(""), omit, list, count.Missing(), found)
					}
					if n, ok := list[0].Lost(); n != lost || !ok {
						t.Errorf("%s, omit %v: %d lost, want %d", name, omit, n, lost)
					}
					if text := list[0].String(); !strings.Contains(text, st.Location("")) || !strings.Contains(text, fmt.Sprint(lost)) {
						t.Errorf("%q", text)
					}
					// a part of the array: only what is read
					m = new(zarr.Missing)
					a = a.With(zarr.NoteMissing(m))
					if err := a.Read(ctx, zarr.Region{Start: []int{0, 0, 0}, Shape: []int{2, 2, 8}}, make([]byte, 32)); err != nil {
						t.Fatal(err)
					}
					if list := m.List(); len(list) != 1 || spec.Shard == nil && list[0].Chunks != each || spec.Shard != nil && list[0].Chunks != 2 {
						t.Errorf("%s: of a part: %+v", name, list)
					}
					a.Close()
				}
			}
			if err := zip.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

// Refused, a missing chunk is an error that names it; where the writer left some out, nobody can tell.
func TestMissingRefused(t *testing.T) {
	ctx := t.Context()
	for name, spec := range missingSpecs {
		for _, omit := range []bool{false, true} {
			m := &zarr.Missing{Refuse: true}
			dir := incomplete(t, spec, omit, []int{0, 1, 1})
			a, err := zarr.OpenArray(ctx, store.Folder(dir), "", zarr.NoteMissing(m))
			if err != nil {
				t.Fatal(err)
			}
			err = a.Read(ctx, a.Bounds(), make([]byte, 512))
			located := error(zarr.ErrMissing)
			if a.Elementary() == nil {
				located = a.Located(ctx, a.Bounds(), func(*zarr.ChunkFile, []zarr.Located) error { return nil })
			}
			if omit {
				if err != nil || m.List()[0].Chunks < 2 {
					t.Errorf("%s: %v", name, err)
				}
				continue
			}
			var format *zarr.FormatError
			if !errors.As(err, &format) || !errors.Is(err, zarr.ErrMissing) || !strings.Contains(err.Error(), a.ChunkKey([]int{0, 1, 1})) {
				t.Errorf("%s: %v", name, err)
			}
			if !errors.Is(located, zarr.ErrMissing) {
				t.Errorf("%s: located: %v", name, located)
			}
		}
	}
}

// Inner chunks that a shard's index says are not stored count too; shards in shards and shards that are encoded
// as a whole are read by other code.
func TestMissingInShards(t *testing.T) {
	ctx := t.Context()
	plain := `{"name":"bytes"}`
	shard := func(chunk, codecs string) string {
		return `{"name":"sharding_indexed","configuration":{"chunk_shape":` + chunk + `,"codecs":[` + codecs + `],"index_codecs":[{"name":"bytes","configuration":{"endian":"little"}}]}}`
	}
	for name, codecs := range map[string]string{
		"encoded": shard("[2,2,2]", plain) + `,{"name":"zstd","configuration":{"level":1,"checksum":false}}`,
		"turned":  `{"name":"transpose","configuration":{"order":[2,0,1]}},` + shard("[2,2,2]", plain),
		"nested":  shard("[2,2,2]", shard("[1,1,1]", plain)),
	} {
		st := store.Memory()
		document := `{"zarr_format":3,"node_type":"array","shape":[8,8,8],"data_type":"uint8","chunk_grid":{"name":"regular","configuration":{"chunk_shape":[4,4,4]}},` +
			`"chunk_key_encoding":{"name":"default"},"fill_value":0,"attributes":{},"codecs":[` + codecs + `]}`
		if err := st.Put(ctx, "zarr.json", []byte(document)); err != nil {
			t.Fatal(err)
		}
		m := new(zarr.Missing)
		a, err := zarr.OpenArray(ctx, st, "", zarr.OmitFill(), zarr.NoteMissing(m))
		if err != nil {
			t.Fatal(err)
		}
		src := bytes.Repeat([]byte{7}, 512)
		for z := range 2 { // chunk [1 0 2] is left out of its shard
			for y := range 2 {
				copy(src[(2+z)*64+y*8+4:], []byte{0, 0})
			}
		}
		if err := a.Write(ctx, a.Bounds(), src); err != nil {
			t.Fatal(err)
		}
		if err := st.Delete(ctx, a.ChunkKey([]int{1, 1, 0})); err != nil {
			t.Fatal(err)
		}
		if list := m.List(); len(list) > 0 {
			t.Errorf("%s: writing read what is missing: %v", name, list)
		}
		if err := a.Read(ctx, a.Bounds(), make([]byte, 512)); err != nil {
			t.Fatal(err)
		}
		if list := m.List(); len(list) != 1 || list[0].Chunks != 9 || fmt.Sprint(list[0].First) != "[1 0 2]" {
			t.Errorf("%s: %+v, want 9 chunks from [1 0 2] on", name, list)
		}
	}
}

// What an array says of its chunks holds as long as it has them.
func TestAccount(t *testing.T) {
	ctx := t.Context()
	for _, format := range []int{2, 3} {
		st := store.Memory()
		a, err := zarr.CreateArray(ctx, st, "", zarr.Spec{Format: format, Shape: []int{7, 9}, Chunks: []int{2, 4}, DType: dtype.Uint8,
			Attributes: map[string]any{"unit": "mm"}, Complete: true})
		if err != nil {
			t.Fatal(err)
		}
		if acc, ok := a.Account(); !ok || acc != (zarr.Account{Chunks: 12, Stored: 12}) || string(a.Attributes()["unit"]) != `"mm"` {
			t.Errorf("%+v, %v, %s", acc, ok, a.Attributes())
		}
		for text, want := range map[string]bool{
			`{"chunks": 12, "stored_chunks": 3}`: true, `{"chunks": 13, "stored_chunks": 13}`: false, `{"chunks": 12, "stored_chunks": 13}`: false,
			`{"chunks": 12, "stored_chunks": -1}`: false, `"x"`: false, `{"chunks": "many"}`: false, `null`: false, `{}`: false,
		} {
			if err := a.SetAttributes(ctx, map[string]any{zarr.AccountKey: raw(text)}); err != nil {
				t.Fatal(err)
			}
			if acc, ok := a.Account(); ok != want {
				t.Errorf("%s: %+v, %v", text, acc, ok)
			}
		}
	}
}

type raw string

func (r raw) MarshalJSON() ([]byte, error) { return []byte(r), nil }

// How many chunks are missing is counted as far as memory for the account goes: the number is a header's.
func TestMissingIsBounded(t *testing.T) {
	ctx := t.Context()
	m := new(zarr.Missing)
	a, err := zarr.CreateArray(ctx, store.Memory(), "", zarr.Spec{Shape: []int{1 << 40}, Chunks: []int{1}, DType: dtype.Uint8}, zarr.NoteMissing(m))
	if err != nil {
		t.Fatal(err)
	}
	for i := range 2100 {
		if err := a.Read(ctx, zarr.Region{Start: []int{i << 15}, Shape: []int{1}}, make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
	}
	if list := m.List(); list[0].Chunks != 2048 || !list[0].More || !strings.Contains(list[0].String(), "more than 2048") {
		t.Errorf("%+v", list)
	}
}
