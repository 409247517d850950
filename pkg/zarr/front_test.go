package zarr

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	"strata/pkg/dtype"
	"strata/pkg/zarr/codec"
	"strata/pkg/zarr/store"
)

// ReadFront gives what Read does, with room for the chunk and without, of chunks
// that are whole, cut off by the edge, and missing, and it leaves alone what is
// behind the chunk.
func TestReadFrontIsRead(t *testing.T) {
	ctx := context.Background()
	for _, flag := range []string{"raw", "zstd:3", "gzip:1", "lz4", "blosc-zstd:1"} {
		for _, shard := range [][]int{nil, {32, 120, 90}} {
			if flag == "lz4" && shard != nil {
				continue
			}
			format := 2
			if shard != nil {
				format = 3
			}
			chain, err := codec.FromFlag(flag, dtype.Float32, format)
			if err != nil {
				t.Fatal(err)
			}
			shape, chunk := []int{50, 200, 130}, []int{32, 60, 45} // a chunk is more than a block of zstd
			a, err := CreateArray(ctx, store.Memory(), "", Spec{Format: format, Shape: shape, Chunks: chunk, Shard: shard, DType: dtype.Float32, Codecs: chain, Fill: 7, BigEndian: format == 2})
			if err != nil {
				t.Fatal(err)
			}
			part := Region{Start: []int{0, 0, 0}, Shape: []int{50, 200, 90}} // the last column is missing
			v := make([]float32, volumeOf(part.Shape))
			for i := range v {
				v[i] = float32(i*i%10007) * 1.7
			}
			if err := a.Write(ctx, part, dtype.Bytes(v)); err != nil {
				t.Fatal(err)
			}
			for _, at := range [][]int{{0, 0, 0}, {0, 60, 45}, {32, 60, 0}, {0, 180, 45}, {0, 120, 90}} {
				for _, planes := range []int{1, 5, 17, min(32, 50-at[0])} {
					r := Region{Start: at, Shape: []int{planes, min(60, 200-at[1]), min(45, 130-at[2])}}
					planes = min(planes, 50-at[0])
					r.Shape[0] = planes
					size, room := 4*volumeOf(r.Shape), 4*volumeOf(chunk)
					want := make([]byte, size)
					if err := a.Read(ctx, r, want); err != nil {
						t.Fatal(err)
					}
					for _, n := range []int{size, room, room + 100} {
						buf := bytes.Repeat([]byte{0xa5}, max(n, size))
						if err := a.ReadFront(ctx, r, buf); err != nil {
							t.Fatal(err)
						}
						if !bytes.Equal(buf[:size], want) {
							t.Fatalf("%s, shard %v: region %v into %d bytes is not what Read gives", flag, shard, r, n)
						}
						if n > room && bytes.Count(buf[room:], []byte{0xa5}) != len(buf)-room {
							t.Fatalf("%s, shard %v: region %v: written behind the chunk", flag, shard, r)
						}
					}
				}
			}
		}
	}
}

func volumeOf(shape []int) int {
	n := 1
	for _, s := range shape {
		n *= s
	}
	return n
}

func TestReadFrontRefuses(t *testing.T) {
	ctx := context.Background()
	st := store.Memory()
	chain, err := codec.FromFlag("zstd:1", dtype.Uint8, 2)
	if err != nil {
		t.Fatal(err)
	}
	a, err := CreateArray(ctx, st, "a", Spec{Format: 2, Shape: []int{8, 8}, Chunks: []int{4, 8}, DType: dtype.Uint8, Codecs: chain})
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Write(ctx, a.Bounds(), bytes.Repeat([]byte{1, 2, 3, 4}, 16)); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		r    Region
		size int
		want string
	}{
		"two chunks":     {Region{Start: []int{0, 0}, Shape: []int{8, 8}}, 64, "not the front of a chunk"},
		"in the middle":  {Region{Start: []int{1, 0}, Shape: []int{2, 8}}, 64, "not the front of a chunk"},
		"small buffer":   {Region{Start: []int{0, 0}, Shape: []int{2, 8}}, 15, "the buffer 15"},
		"out of bounds":  {Region{Start: []int{8, 0}, Shape: []int{1, 8}}, 64, "region"},
		"nothing to get": {Region{Start: []int{0, 0}, Shape: []int{0, 8}}, 0, ""},
	} {
		if err := a.ReadFront(ctx, c.r, make([]byte, c.size)); (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := st.Put(ctx, "a/0.0", []byte("no zstd frame, and long enough for one")); err != nil {
		t.Fatal(err)
	}
	var fe *FormatError
	if err := a.With().ReadFront(ctx, Region{Start: []int{0, 0}, Shape: []int{2, 8}}, make([]byte, 32)); !errors.As(err, &fe) {
		t.Errorf("a damaged chunk: %v", err)
	}
}
