// Package octtest provides images, devices and comparisons for the tests of the stages.
package octtest

import (
	"context"
	"fmt"
	"io/fs"
	"math"
	"strings"
	"testing"

	"strata/pkg/dtype"
	"strata/pkg/ngff"
	"strata/pkg/oct"
	"strata/pkg/zarr"
	"strata/pkg/zarr/codec"
	"strata/pkg/zarr/store"
	"strata/tests/golden"
)

// Ctx is the context of all tests.
var Ctx = context.Background()

// Small returns resources of 2 workers and 64 MiB.
func Small() oct.Resources { return oct.Resources{Workers: 2, Mem: 64 << 20} }

// Open opens the image in a store.
func Open(t *testing.T, st store.Store) *ngff.Image {
	t.Helper()
	im, err := ngff.Open(Ctx, st, "")
	if err != nil {
		t.Fatal(err)
	}
	return im
}

// Read returns all of a float32 array.
func Read(t *testing.T, a *zarr.Array) []float32 {
	t.Helper()
	n := 1
	for _, s := range a.Shape() {
		n *= s
	}
	v := make([]float32, n)
	if err := zarr.ReadSlice(Ctx, a, a.Bounds(), v); err != nil {
		t.Fatal(err)
	}
	return v
}

// Made returns a mosaic of the given shape, and its projection computed by definition.
func Made[T dtype.Element](t *testing.T, shape, chunks, shard []int, chain codec.Chain, value func(i int) T) (*ngff.Image, []float32) {
	t.Helper()
	st := store.Memory()
	w, err := ngff.Create(Ctx, st, "", ngff.ImageSpec{Format: 3, Shape: shape, Chunks: chunks, Shard: shard, DType: dtype.Of[T](),
		Axes: ngff.SpaceAxes("zyx", "micrometer"), Scale: []float64{3.5, 2, 2}, Codecs: chain})
	if err != nil {
		t.Fatal(err)
	}
	v := make([]T, shape[0]*shape[1]*shape[2])
	for i := range v {
		v[i] = value(i)
	}
	if err := w.WriteTile(Ctx, []int{0, 0, 0}, shape, dtype.Bytes(v)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(Ctx); err != nil {
		t.Fatal(err)
	}
	plane := shape[1] * shape[2]
	want := make([]float32, plane)
	for i := range want {
		sum := 0.0
		for z := range shape[0] {
			sum += float64(v[z*plane+i])
		}
		want[i] = float32(sum / float64(shape[0]))
	}
	return Open(t, st), want
}

// SameBits fails the test unless both slices have the same bits, except for those of NaN.
func SameBits(t *testing.T, got, want []float32) {
	t.Helper()
	for i := range want {
		if math.Float32bits(got[i]) != math.Float32bits(want[i]) && !(got[i] != got[i] && want[i] != want[i]) {
			t.Fatalf("pixel %d: %v, want %v", i, got[i], want[i])
		}
	}
}

// Locked is a store whose chunks may not be read.
type Locked struct{ store.Store }

func (s Locked) Get(ctx context.Context, key string, dst []byte, limit int64) ([]byte, error) {
	if strings.Contains(key, "0/c/") {
		return nil, fmt.Errorf("%s: %w", s.Location(key), fs.ErrPermission)
	}
	return s.Store.Get(ctx, key, dst, limit)
}

func (s Locked) Open(ctx context.Context, key string) (store.Object, error) {
	if _, err := s.Get(ctx, key, nil, -1); err != nil {
		return nil, err
	}
	return s.Store.Open(ctx, key)
}

// Unwritable is a store to which nothing may be written.
type Unwritable struct{ store.Writer }

func (Unwritable) Put(context.Context, string, ...[]byte) error { return fs.ErrPermission }

func (Unwritable) Create(context.Context, string) (store.PendingObject, error) {
	return nil, fs.ErrPermission
}

// Numbers returns an expected array as float64.
func Numbers(a golden.Array) (all []float64) {
	dtype.Each(a.Data, a.Type, func(v float64) { all = append(all, v) })
	return all
}

// Uneven returns voxel i of a mosaic without any pattern. Some voxels of floating-point types are not finite.
func Uneven[T dtype.Element](i int) T {
	switch {
	case !dtype.Of[T]().IsFloat():
		return T(uint32(i)*2654435761>>7%251 + uint32(i/2000))
	case i%9001 == 77:
		return T(math.NaN())
	case i%7001 == 5:
		return T(math.Inf(-1))
	case i%6007 == 5 && dtype.Of[T]() == dtype.Float64:
		big := 1e200
		return T(big)
	}
	return T(float64(uint32(i)*2654435761>>7%1013)/3 - 20)
}
