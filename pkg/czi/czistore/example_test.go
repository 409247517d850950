package czistore_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"strata/pkg/czi"
	"strata/pkg/czi/czistore"
	"strata/pkg/ngff"
	"strata/pkg/zarr/store"
)

// A mosaic of two tiles is written and read as an OME-Zarr image.
func Example() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	f, err := os.Create(filepath.Join(dir, "scan.czi"))
	if err != nil {
		log.Fatal(err)
	}
	w, err := czi.NewWriter(f, czi.Spec{Metadata: czi.Metadata{VoxelUM: [3]float64{1, 0.5, 0.5}}, Compression: czi.Zstd1})
	if err != nil {
		log.Fatal(err)
	}
	err = w.Add(ctx, 1, 2, func(i int, t *czi.Tile) error {
		t.M, t.X, t.Width, t.Height, t.Pixels = i, 3*i, 4, 2, czi.Gray8
		t.Grow(8)
		for k := range t.Data {
			t.Data[k] = byte(10 * (i + 1))
		}
		return nil
	})
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		log.Fatal(err)
	}

	o, err := store.Folder(dir).Open(ctx, "scan.czi")
	if err != nil {
		log.Fatal(err)
	}
	st, err := czistore.Open(ctx, o, "scan.czi")
	if err != nil {
		log.Fatal(err)
	}
	defer st.Close()
	im, err := ngff.Open(ctx, st, "")
	if err != nil {
		log.Fatal(err)
	}
	a := im.Levels[0].Array
	pixels := make([]byte, 2*7)
	if err := a.Read(ctx, a.Bounds(), pixels); err != nil {
		log.Fatal(err)
	}
	fmt.Println(a.Shape(), im.VoxelSize, pixels[:7])
	// Output: [2 7] [0.5 0.5] [10 10 10 20 20 20 20]
}
