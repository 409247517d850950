package view

import (
	"net/http"
	"testing"

	"strata/pkg/zarr/codec"
	"strata/pkg/zarr/store"
)

// A tile of a chunk whose checksum is wrong is an error, not a picture.
func TestDamagedChunk(t *testing.T) {
	const key = "0/c/0/0/0"
	for _, name := range []string{"raw", "zstd:1", "blosc-zstd:1"} {
		st := create(t, spec{axes: "zyx", shape: []int{4, 64, 64}, chunks: []int{4, 64, 64}, codec: name + codec.ChecksumSuffix}, func(i int) uint16 { return uint16(i * 7) })
		whole, err := st.Get(ctx, key, nil, -1)
		if err != nil {
			t.Fatal(err)
		}
		tile := func(damage ...int) int {
			t.Helper()
			b := append([]byte(nil), whole...)
			for _, at := range damage {
				b[at] ^= 1
			}
			if err := st.Put(ctx, key, b); err != nil {
				t.Fatal(err)
			}
			return get(t, viewer(t, 1<<20, store.Store(st)), "/api/images/0/tile?level=0&plane=xy&at=0&row=0&col=0").Code
		}
		if code := tile(); code != http.StatusOK {
			t.Fatalf("%s: a whole chunk is answered by %d", name, code)
		}
		for _, at := range []int{0, 20, len(whole) / 2, len(whole) - 1} {
			if code := tile(at); code < 400 {
				t.Errorf("%s: damage at byte %d of %d is answered by %d", name, at, len(whole), code)
			}
		}
	}
}
