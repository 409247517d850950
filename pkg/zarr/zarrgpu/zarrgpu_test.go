//go:build !nocuda

package zarrgpu

import (
	"bytes"
	"context"
	"errors"
	"testing"

	"strata/pkg/dtype"
	"strata/pkg/gpu"
	"strata/pkg/zarr"
	"strata/pkg/zarr/codec"
	"strata/pkg/zarr/store"
	"strata/tests/cudaemu"
	"strata/tests/gputest"
)

func TestMain(m *testing.M) { cudaemu.Main(m) }

var ctx = context.Background()

func open(t *testing.T, l gpu.Limits) (*gpu.Device, *gpu.Stream) {
	t.Helper()
	d := gputest.Device(t, l)
	return d, gputest.Stream(t, d)
}

// array makes one whose elements are all different.
func array(t *testing.T, st store.Writer, spec zarr.Spec) *zarr.Array {
	t.Helper()
	a, err := zarr.CreateArray(ctx, st, "a", spec)
	if err != nil {
		t.Fatal(err)
	}
	b := make([]byte, a.DType().Size()*elements(spec.Shape))
	for i := range b {
		b[i] = byte(i * 2654435761 >> 7)
	}
	if err := a.Write(ctx, a.Bounds(), b); err != nil {
		t.Fatal(err)
	}
	return a
}

func elements(shape []int) int {
	n := 1
	for _, s := range shape {
		n *= s
	}
	return n
}

// same reads a region both ways.
func same(t *testing.T, r *Reader, s *gpu.Stream, a *zarr.Array, region zarr.Region) {
	t.Helper()
	n := a.DType().Size() * elements(region.Shape)
	want := make([]byte, n)
	if err := a.Read(ctx, region, want); err != nil {
		t.Fatal(err)
	}
	dst, err := s.Device().Memory().Get(int64(n))
	if err != nil {
		t.Fatal(err)
	}
	defer dst.Release()
	out, err := s.Device().Host(n)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Release()
	if err := r.Read(ctx, s, region, dst.Span); err != nil {
		t.Fatal(err)
	}
	s.Download(out.B, dst.Span)
	if err := s.Wait(); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(out.B, want) {
		t.Errorf("%v differs", region)
	}
}

func TestHost(t *testing.T) {
	d, s := open(t, gpu.Limits{Memory: 8 << 20, Pinned: 8 << 20})
	a := array(t, store.Memory(), zarr.Spec{Shape: []int{7, 21, 30}, Chunks: []int{3, 8, 10}, DType: dtype.Uint16, Codecs: codec.Chain{codec.Zstd(1, false)}})
	r, err := NewReader(a, d, Options{Backend: "host"})
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range []zarr.Region{a.Bounds(), {Start: []int{3, 8, 10}, Shape: []int{3, 8, 10}}, {Start: []int{2, 7, 5}, Shape: []int{4, 9, 21}}, {Start: []int{1, 1, 1}, Shape: []int{0, 1, 1}}} {
		up, _, _ := d.Traffic()
		same(t, r, s, a, g)
		if now, _, _ := d.Traffic(); now-up != r.Bytes(g.Shape) {
			t.Errorf("%d bytes went up for a region of %d", now-up, r.Bytes(g.Shape))
		}
	}
}

// A slot takes what Memory says, and where that is not there it is an error of memory.
func TestMemory(t *testing.T) {
	d, _ := open(t, gpu.Limits{Memory: 1 << 20, Pinned: 40 << 10})
	a := array(t, store.Memory(), zarr.Spec{Shape: []int{4, 40, 100}, Chunks: []int{1, 40, 100}, DType: dtype.Uint16})
	r, err := NewReader(a, d, Options{})
	if err != nil {
		t.Fatal(err)
	}
	slot, err := r.Slot([]int{2, 40, 100})
	if err != nil {
		t.Fatal(err)
	}
	defer slot.Release()
	pinned, device := r.Memory([]int{2, 40, 100})
	if p, m := d.Pinned().Peak(), d.Memory().Peak(); p != pinned || m != device {
		t.Errorf("took %d and %d bytes, said %d and %d", p, m, pinned, device)
	}
	if err := slot.Fetch(ctx, a.Bounds()); err == nil {
		t.Error("a region that is larger than its slot was fetched")
	}
	if _, err := r.Slot(a.Shape()); !errors.Is(err, gpu.ErrMemory) {
		t.Errorf("no memory: %v", err)
	}
}
