package zarr_test

import (
	"context"
	"fmt"
	"log"

	"strata/pkg/dtype"
	"strata/pkg/zarr"
	"strata/pkg/zarr/codec"
	"strata/pkg/zarr/store"
)

// An array is made, written as a whole, and a row of it is read.
func Example() {
	ctx := context.Background()
	st := store.Memory() // or store.Folder("out.zarr")
	codecs, err := codec.FromFlag("blosc-zstd:1", dtype.Uint16, 3)
	if err != nil {
		log.Fatal(err)
	}
	a, err := zarr.CreateArray(ctx, st, "", zarr.Spec{
		Shape:      []int{4, 6},
		Chunks:     []int{2, 3},
		DType:      dtype.Uint16,
		Codecs:     codecs,
		Attributes: map[string]any{"unit": "counts"},
	})
	if err != nil {
		log.Fatal(err)
	}
	voxels := make([]uint16, 4*6)
	for i := range voxels {
		voxels[i] = uint16(i)
	}
	if err := zarr.WriteSlice(ctx, a, a.Bounds(), voxels); err != nil {
		log.Fatal(err)
	}

	row := make([]uint16, 6)
	if err := zarr.ReadSlice(ctx, a, zarr.Region{Start: []int{2, 0}, Shape: []int{1, 6}}, row); err != nil {
		log.Fatal(err)
	}
	fmt.Println(row)
	// Output: [12 13 14 15 16 17]
}

// A shard larger than memory should hold is written chunk by chunk.
func ExampleArray_NewShard() {
	ctx := context.Background()
	a, err := zarr.CreateArray(ctx, store.Memory(), "", zarr.Spec{
		Shape: []int{4, 8}, Chunks: []int{2, 4}, Shard: []int{4, 8}, DType: dtype.Uint8, Fill: 9,
	})
	if err != nil {
		log.Fatal(err)
	}
	s, err := a.NewShard(ctx, []int{0, 0})
	if err != nil {
		log.Fatal(err)
	}
	defer s.Abort()
	if err := s.WriteChunk(ctx, []int{1, 0}, []byte{1, 2, 3, 4, 5, 6, 7, 8}); err != nil {
		log.Fatal(err)
	}
	if err := s.Commit(ctx); err != nil {
		log.Fatal(err)
	}
	all := make([]byte, 32)
	if err := a.Read(ctx, a.Bounds(), all); err != nil {
		log.Fatal(err)
	}
	fmt.Println(all[16:24])
	// Output: [1 2 3 4 9 9 9 9]
}
