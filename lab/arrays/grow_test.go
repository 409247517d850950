package main

import (
	"context"
	"path/filepath"
	"slices"
	"testing"

	"strata/pkg/dtype"
	"strata/pkg/zarr"
	"strata/pkg/zarr/store"
)

// A mosaic that grew repeats the tiles of the small one.
func TestGrow(t *testing.T) {
	ctx, dir := context.Background(), t.TempDir()
	small, large := filepath.Join(dir, "small"), filepath.Join(dir, "large")
	b := &bench{path: "noise", threads: 1}
	if err := b.mosaic(ctx, "3,8,10", []string{"-chunks", "3,4,5", "-codec", "zstd:3", "-out", small, "-threads", "1"}); err != nil {
		t.Fatal(err)
	}
	if err := grow(small, "3,5", large); err != nil {
		t.Fatal(err)
	}
	read := func(path string) (*zarr.Array, []float32) {
		a, err := zarr.OpenArray(ctx, store.Folder(filepath.Join(path, "0")), "")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { a.Close() })
		v := make([]float32, volume(a.Shape()))
		if err := zarr.ReadSlice(ctx, a, a.Bounds(), v); err != nil {
			t.Fatal(err)
		}
		return a, v
	}
	a, got := read(large)
	if want := []int{3, 12, 25}; !slices.Equal(a.Shape(), want) || a.DType() != dtype.Float32 {
		t.Fatalf("shape %v of %v, want %v of float32", a.Shape(), a.DType(), want)
	}
	_, tiles := read(small)
	for i, v := range got {
		z, y, x := i/300, i/25%12, i%25
		if want := tiles[z*80+y%8*10+x%10]; v != want {
			t.Fatalf("voxel %d,%d,%d is %v, want %v", z, y, x, v, want)
		}
	}
	if err := grow(small, "3", filepath.Join(dir, "x")); err == nil {
		t.Error("a mosaic of tiles along one axis only is made")
	}
}
