package octtest

import (
	"math"
	"testing"

	"strata/pkg/dtype"
	"strata/pkg/ngff"
	"strata/pkg/zarr"
	"strata/pkg/zarr/store"
)

// Values returns all of an array as float64.
func Values(t *testing.T, a *zarr.Array) []float64 {
	t.Helper()
	n := a.DType().Size()
	for _, s := range a.Shape() {
		n *= s
	}
	b := make([]byte, n)
	if err := a.Read(Ctx, a.Bounds(), b); err != nil {
		t.Fatal(err)
	}
	var v []float64
	dtype.Each(b, a.DType(), func(f float64) { v = append(v, f) })
	return v
}

// MosaicOf returns a mosaic with the given values; the spec supplies the rest.
func MosaicOf[T dtype.Element](t *testing.T, spec ngff.ImageSpec, v []T) *ngff.Image {
	t.Helper()
	spec.DType = dtype.Of[T]()
	if spec.Axes == nil {
		spec.Axes = ngff.SpaceAxes("zyx", "micrometer")
	}
	if spec.Scale == nil {
		spec.Scale = []float64{3.5, 2, 2}
	}
	st := store.Memory()
	w, err := ngff.Create(Ctx, st, "", spec)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.WriteTile(Ctx, []int{0, 0, 0}, spec.Shape, dtype.Bytes(v)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(Ctx); err != nil {
		t.Fatal(err)
	}
	return Open(t, st)
}

// Made3 returns the values of a volume of the given shape, computed by index.
func Made3[T dtype.Element](shape []int, value func(i int) T) []T {
	v := make([]T, shape[0]*shape[1]*shape[2])
	for i := range v {
		v[i] = value(i)
	}
	return v
}

// CheckVoxels checks the voxel size of level 0, in µm, and that the levels below fill the same box. (Goldens have
// powers of two there: see the stages specification, "OME-Zarr output and pyramids".)
func CheckVoxels(t *testing.T, im *ngff.Image, golden []float64) {
	t.Helper()
	for k, level := range im.Levels {
		for d, v := range golden {
			um, _, _ := ngff.Micrometres(im.Axes[d].Unit)
			v *= float64(im.Levels[0].Array.Shape()[d]) / float64(level.Array.Shape()[d])
			if got := level.Scale[d] * um; math.Abs(got-v) > 1e-9*v {
				t.Errorf("level %d, axis %d: voxel size %v µm, want %v", k, d, got, v)
			}
		}
	}
}
