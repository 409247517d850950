package zarr

import (
	"bytes"
	"context"
	"math/rand/v2"
	"testing"

	"strata/pkg/dtype"
	"strata/pkg/meter"
	"strata/pkg/zarr/codec"
	"strata/pkg/zarr/store"
)

// Of a Blosc chunk in a file, only the blocks of the planes that are read are fetched, also in a shard; the rest may be
// damaged.
func TestPartOfChunk(t *testing.T) {
	ctx := context.Background()
	shape := []int{40, 128, 128}
	v := make([]byte, 4*40*128*128)
	r := rand.New(rand.NewPCG(1, 2))
	for i := range v {
		v[i] = byte(r.IntN(100))
	}
	blosc, err := codec.Blosc("zstd", 1, codec.ByteShuffle, 4, 64<<10)
	if err != nil {
		t.Fatal(err)
	}
	for name, shard := range map[string][]int{"chunk": nil, "shard": {40, 128, 256}} {
		st := store.Folder(t.TempDir())
		spec := Spec{Format: 3, Shape: []int{40, 128, 256}, Chunks: shape, Shard: shard, DType: dtype.Float32, Codecs: codec.Chain{blosc}, Fill: 7}
		a, err := CreateArray(ctx, st, "", spec)
		if err != nil {
			t.Fatal(err)
		}
		left := Region{Start: []int{0, 0, 0}, Shape: shape}
		if err := a.Write(ctx, left, v); err != nil { // the chunk on the right is not stored
			t.Fatal(err)
		}
		var m meter.Meter
		a, err = OpenArray(ctx, st, "", Meter(&m))
		if err != nil {
			t.Fatal(err)
		}
		const plane = 4 * 128 * 128
		for _, part := range [][2]int{{0, 1}, {17, 1}, {38, 2}, {3, 20}, {0, 21}} {
			before := m.BytesRead()
			got := make([]byte, part[1]*plane)
			if err := a.Read(ctx, Region{Start: []int{part[0], 0, 0}, Shape: []int{part[1], 128, 128}}, got); err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got, v[part[0]*plane:][:len(got)]) {
				t.Errorf("%s: planes %v differ", name, part)
			}
			if n, most := m.BytesRead()-before, int64(len(got)+2*64<<10+8<<10); part[1] <= 20 && n > most {
				t.Errorf("%s: %d bytes were read for planes %v, want at most %d", name, n, part, most)
			}
		}
		got := make([]float32, 128*128)
		if err := a.Read(ctx, Region{Start: []int{5, 0, 128}, Shape: []int{1, 128, 128}}, dtype.Bytes(got)); err != nil {
			t.Fatal(err)
		}
		for i, f := range got {
			if f != 7 {
				t.Fatalf("%s: element %d of a chunk that is not stored is %v", name, i, f)
			}
		}
	}
}
