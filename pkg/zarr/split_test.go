package zarr_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"strata/pkg/dtype"
	"strata/pkg/work"
	"strata/pkg/zarr"
	"strata/pkg/zarr/codec"
	"strata/pkg/zarr/store"
)

// With idle processors, an array of one worker reads and writes as without: also where the pieces of plain chunks do
// not divide them, so that nobody knows how many there are before they are walked.
func TestIdleProcessorsReadAndWrite(t *testing.T) {
	for _, name := range []string{"raw", "zstd:1", "blosc-lz4"} {
		for _, shard := range [][]int{nil, {14, 400, 500}} {
			t.Run(fmt.Sprint(name, shard), func(t *testing.T) {
				codecs, err := codec.FromFlag(name, dtype.Uint16, 3)
				if err != nil {
					t.Fatal(err)
				}
				shape := []int{29, 400, 500}
				spec := zarr.Spec{Format: 3, Shape: shape, Chunks: []int{7, 400, 500}, Shard: shard, DType: dtype.Uint16, Codecs: codecs}
				want := make([]byte, 2*29*400*500)
				fill := rand.NewChaCha8([32]byte{1})
				_, _ = fill.Read(want)
				idle := work.NewHands(8, 1, 1<<30, nil)
				for hands, ctx := range map[string]context.Context{"none": t.Context(), "idle": work.WithHands(t.Context(), idle)} {
					st := store.Folder(t.TempDir())
					a, err := zarr.CreateArray(ctx, st, "a", spec, zarr.Workers(1))
					if err != nil {
						t.Fatal(err)
					}
					if err := a.Write(ctx, zarr.Region{Start: []int{0, 0, 0}, Shape: shape}, want); err != nil {
						t.Fatal(err)
					}
					for _, r := range []zarr.Region{{Start: []int{0, 0, 0}, Shape: shape}, {Start: []int{3, 0, 0}, Shape: []int{23, 400, 500}}} {
						got := make([]byte, 2*r.Shape[0]*400*500)
						if err := a.Read(ctx, r, got); err != nil {
							t.Fatal(err)
						}
						if from := 2 * r.Start[0] * 400 * 500; !bytes.Equal(got, want[from:from+len(got)]) {
							t.Errorf("%s: %v reads as something else", hands, r)
						}
					}
				}
				if idle.Most() < 2 {
					t.Error("nobody helped")
				}
			})
		}
	}
}
