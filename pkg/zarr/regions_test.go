package zarr

import (
	"bytes"
	"context"
	"math/rand/v2"
	"sync/atomic"
	"testing"

	"strata/pkg/dtype"
	"strata/pkg/zarr/codec"
	"strata/pkg/zarr/store"
)

// counting counts what is read of chunks.
type counting struct {
	store.Store
	gets atomic.Int64
}

func (c *counting) Get(ctx context.Context, key string, dst []byte, limit int64) ([]byte, error) {
	if len(key) > 2 && key[:2] == "c/" {
		c.gets.Add(1)
	}
	return c.Store.Get(ctx, key, dst, limit)
}

// TestReadRegions compares many regions with the array, and counts chunks.
func TestReadRegions(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	shape := []int{50, 70}
	all := make([]byte, 2*50*70)
	for i := range all {
		all[i] = byte(r.Uint32())
	}
	for _, chain := range []codec.Chain{nil, {codec.Zstd(1, false)}} {
		st := store.Memory()
		a, err := CreateArray(t.Context(), st, "", Spec{Shape: shape, Chunks: []int{16, 32}, DType: dtype.Uint16, Codecs: chain})
		if err != nil {
			t.Fatal(err)
		}
		if err := a.Write(t.Context(), a.Bounds(), all); err != nil {
			t.Fatal(err)
		}
		counted := &counting{Store: st}
		if a, err = OpenArray(t.Context(), counted, "", Workers(3)); err != nil {
			t.Fatal(err)
		}
		var regions []Region
		var dst [][]byte
		for range 200 {
			s := Region{Start: []int{r.IntN(50), r.IntN(70)}, Shape: nil}
			s.Shape = []int{r.IntN(51 - s.Start[0]), r.IntN(71 - s.Start[1])}
			regions = append(regions, s)
			dst = append(dst, make([]byte, 2*s.Shape[0]*s.Shape[1]))
		}
		if err := a.ReadRegions(t.Context(), regions, dst); err != nil {
			t.Fatal(err)
		}
		for i, s := range regions {
			for y := range s.Shape[0] {
				at := 2 * ((s.Start[0]+y)*70 + s.Start[1])
				if row := 2 * s.Shape[1]; !bytes.Equal(dst[i][y*row:(y+1)*row], all[at:at+row]) {
					t.Fatalf("region %v: row %d differs", s, y)
				}
			}
		}
		if chain != nil && counted.gets.Load() != 12 {
			t.Errorf("%d reads of 12 chunks", counted.gets.Load())
		}
		if err := a.ReadRegions(t.Context(), []Region{{Start: []int{0, 60}, Shape: []int{1, 11}}}, [][]byte{make([]byte, 22)}); err == nil {
			t.Error("a region outside of the array was read")
		}
		if err := a.ReadRegions(t.Context(), regions[:2], dst[:1]); err == nil {
			t.Error("fewer buffers than regions")
		}
	}
}
