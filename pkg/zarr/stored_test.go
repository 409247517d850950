package zarr_test

import (
	"bytes"
	"errors"
	"io/fs"
	"strings"
	"testing"

	"strata/pkg/dtype"
	"strata/pkg/meter"
	"strata/pkg/zarr"
	"strata/pkg/zarr/codec"
	"strata/pkg/zarr/store"
)

// Chunks as one array stores them, put into another one, are that array's.
func TestPutChunk(t *testing.T) {
	ctx := t.Context()
	const nz, ny, nx = 9, 30, 35 // the last chunk of each axis is cut
	shape, chunks := []int{nz, ny, nx}, []int{4, 16, 16}
	data := make([]byte, 2*nz*ny*nx)
	for i := range data {
		data[i] = byte(i / 5 * 7)
	}
	for _, format := range []int{2, 3} {
		for _, name := range []string{"raw", "zstd", "lz4", "gzip", "blosc-zstd", "blosc-lz4"} {
			chain, err := codec.FromFlag(name, dtype.Uint16, format)
			if err != nil {
				t.Fatal(err)
			}
			for _, shard := range [][]int{nil, {8, 32, 32}} {
				if shard != nil && format == 2 {
					continue
				}
				t.Run(strings.Join([]string{name, map[bool]string{true: "shards", false: "chunks"}[shard != nil], string(rune('0' + format))}, "/"), func(t *testing.T) {
					spec := zarr.Spec{Format: format, Shape: shape, Chunks: chunks, DType: dtype.Uint16, Codecs: chain, Fill: 7}
					from, err := zarr.CreateArray(ctx, store.Memory(), "", spec)
					if err != nil {
						t.Fatal(err)
					}
					if err := from.Write(ctx, from.Bounds(), data); err != nil {
						t.Fatal(err)
					}
					spec.Shard = shard
					var m meter.Meter
					to, err := zarr.CreateArray(ctx, store.Folder(t.TempDir()), "", spec, zarr.Meter(&m))
					if err != nil {
						t.Fatal(err)
					}
					bytesPut := putAll(t, to, from, shard)
					if got := m.BytesWritten(); got < bytesPut {
						t.Errorf("%d bytes were counted, %d were put", got, bytesPut)
					}
					got := make([]byte, len(data))
					if err := to.Read(ctx, to.Bounds(), got); err != nil {
						t.Fatal(err)
					}
					if !bytes.Equal(got, data) {
						t.Error("other elements than were put")
					}
				})
			}
		}
	}
}

// putAll puts the stored chunks of an array into another, some of them by a function,
// and says how many bytes they are.
func putAll(t *testing.T, to, from *zarr.Array, shard []int) (n int64) {
	t.Helper()
	ctx := t.Context()
	var shards = map[[3]int]*zarr.ShardWriter{}
	for z := range 3 {
		for y := range 2 {
			for x := range 3 {
				index := []int{z, y, x}
				b, err := from.Store().Get(ctx, from.ChunkKey(index), nil, -1)
				if err != nil {
					t.Fatal(err)
				}
				n += int64(len(b))
				c := zarr.Stored{Bytes: b}
				if x == 1 {
					c = zarr.Stored{Size: int64(len(b)), Write: func(o store.PendingObject, off int64) error {
						_, err := o.WriteAt(b, off)
						return err
					}}
				}
				if shard == nil {
					if err := to.PutChunk(ctx, index, c); err != nil {
						t.Fatal(err)
					}
					continue
				}
				at := [3]int{z / 2, y / 2, x / 2}
				w := shards[at]
				if w == nil {
					if w, err = to.NewShard(ctx, at[:]); err != nil {
						t.Fatal(err)
					}
					shards[at] = w
				}
				if err := w.PutChunk(ctx, index, c); err != nil {
					t.Fatal(err)
				}
				if err := w.PutChunk(ctx, index, c); err == nil || !strings.Contains(err.Error(), "twice") {
					t.Errorf("put a second time: %v", err)
				}
			}
		}
	}
	for _, w := range shards {
		if err := w.Commit(ctx); err != nil {
			t.Fatal(err)
		}
	}
	return n
}

func TestPutChunkRefuses(t *testing.T) {
	ctx := t.Context()
	array := func(name string, shard []int) *zarr.Array {
		chain, err := codec.FromFlag(name, dtype.Uint16, 3)
		if err != nil {
			t.Fatal(err)
		}
		a, err := zarr.CreateArray(ctx, store.Memory(), name, zarr.Spec{Shape: []int{30, 30}, Chunks: []int{8, 8}, Shard: shard, DType: dtype.Uint16, Codecs: chain})
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	stored := func(name string, n int) zarr.Stored {
		chain, err := codec.FromFlag(name, dtype.Uint16, 3)
		if err != nil {
			t.Fatal(err)
		}
		b, err := chain.Encode(new(codec.Scratch), nil, make([]byte, n))
		if err != nil {
			t.Fatal(err)
		}
		return zarr.Stored{Bytes: b}
	}
	for _, name := range []string{"raw", "zstd", "lz4", "blosc-zstd", "blosc-lz4"} {
		a := array(name, nil)
		for what, c := range map[string]zarr.Stored{
			"longer":  stored(name, 256),
			"nothing": {Bytes: []byte{}},
			"other":   {Bytes: make([]byte, 100)},
			"huge":    {Size: 1 << 40, Write: func(store.PendingObject, int64) error { t.Error("written"); return nil }},
		} {
			if err := a.PutChunk(ctx, []int{1, 1}, c); err == nil {
				t.Errorf("%s: a chunk that is %s was put", name, what)
			}
		}
		if err := a.PutChunk(ctx, []int{4, 0}, stored(name, 128)); err == nil {
			t.Errorf("%s: put outside of the grid", name)
		}
		if _, err := a.Store().Get(ctx, a.ChunkKey([]int{1, 1}), nil, -1); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: a chunk that was refused: %v", name, err)
		}
		bad := errors.New("bad")
		err := a.PutChunk(ctx, []int{1, 1}, zarr.Stored{Size: int64(len(stored(name, 128).Bytes)), Write: func(o store.PendingObject, off int64) error {
			if _, err := o.WriteAt([]byte("half"), off); err != nil {
				return err
			}
			return bad
		}})
		if !errors.Is(err, bad) {
			t.Errorf("%s: a write that failed: %v", name, err)
		}
		if _, err := a.Store().Get(ctx, a.ChunkKey([]int{1, 1}), nil, -1); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: half a chunk: %v", name, err)
		}
	}
	sharded := array("zstd", []int{16, 16})
	if err := sharded.PutChunk(ctx, []int{0, 0}, stored("zstd", 128)); err == nil {
		t.Error("a chunk of a shard was put without the shard")
	}
	w, err := sharded.NewShard(ctx, []int{0, 0})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Abort()
	if err := w.PutChunk(ctx, []int{3, 0}, stored("zstd", 128)); err == nil {
		t.Error("a chunk of another shard was put")
	}
	if err := w.PutChunk(ctx, []int{0, 0}, stored("zstd", 256)); err == nil {
		t.Error("a chunk of another size was put")
	}
}
