package ngff_test

import (
	"context"
	"fmt"
	"log"

	"strata/pkg/dtype"
	"strata/pkg/ngff"
	"strata/pkg/zarr/store"
)

// An image is written tile by tile and appears with its pyramid when the writer is closed.
func Example() {
	ctx := context.Background()
	st := store.Memory() // or store.Folder("volume.ome.zarr")
	w, err := ngff.Create(ctx, st, "", ngff.ImageSpec{
		Shape: []int{8, 64, 64}, Chunks: []int{8, 32, 32}, DType: dtype.Uint16,
		Axes: ngff.SpaceAxes("zyx", "micrometer"), Scale: []float64{3.5, 2, 2}, Levels: 1,
	})
	if err != nil {
		log.Fatal(err)
	}
	defer w.Abort() // does nothing after Close
	voxels := make([]uint16, 8*64*64)
	if err := w.WriteTile(ctx, []int{0, 0, 0}, []int{8, 64, 64}, dtype.Bytes(voxels)); err != nil {
		log.Fatal(err)
	}
	if err := w.Close(ctx); err != nil {
		log.Fatal(err)
	}

	im, err := ngff.Open(ctx, st, "")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("voxel size", im.VoxelSize, "µm")
	for _, level := range im.Levels {
		fmt.Println("level", level.Path, level.Array.Shape())
	}
	// Output:
	// voxel size [3.5 2 2] µm
	// level 0 [8 64 64]
	// level 1 [4 32 32]
}
