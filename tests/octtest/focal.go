package octtest

import (
	"testing"

	"strata/pkg/dtype"
	"strata/pkg/ngff"
	"strata/pkg/phantom"
	"strata/pkg/zarr/codec"
	"strata/pkg/zarr/store"
)

// Plane returns a float32 plane as an image.
func Plane(t *testing.T, v []float32, ny, nx int) *ngff.Image {
	t.Helper()
	st := store.Memory()
	w, err := ngff.Create(Ctx, st, "", ngff.ImageSpec{Format: 3, Shape: []int{ny, nx}, Chunks: []int{ny, nx}, DType: dtype.Float32,
		Axes: ngff.SpaceAxes("yx", "micrometer"), Scale: []float64{2, 2}})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.WriteTile(Ctx, []int{0, 0}, []int{ny, nx}, dtype.Bytes(v)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(Ctx); err != nil {
		t.Fatal(err)
	}
	return Open(t, st)
}

// Specimen returns a phantom and the mosaic of its first slice.
func Specimen(t *testing.T, c phantom.Config, chunks, shard []int, chain codec.Chain) (*phantom.Specimen, *ngff.Image) {
	t.Helper()
	s, err := phantom.New(c)
	if err != nil {
		t.Fatal(err)
	}
	st := store.Memory()
	if err := s.WriteMosaic(Ctx, st, 0, phantom.Storage{Format: 3, Chunks: chunks, Shard: shard, Codecs: chain, Unit: "micrometer", Workers: 2, Mem: 256 << 20}); err != nil {
		t.Fatal(err)
	}
	return s, Open(t, st)
}
