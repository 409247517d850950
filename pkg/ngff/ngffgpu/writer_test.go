//go:build !nocuda

package ngffgpu

import (
	"bytes"
	"context"
	"fmt"
	"testing"

	"strata/pkg/dtype"
	"strata/pkg/gpu"
	"strata/pkg/ngff"
	"strata/pkg/zarr"
	"strata/pkg/zarr/store"
	"strata/tests/cudaemu"
)

func TestMain(m *testing.M) { cudaemu.Main(m) }

var ctx = context.Background()

// device is the tests' double of a GPU.
func device(t *testing.T) *gpu.Device {
	t.Helper()
	cudaemu.Use(t)
	list, err := gpu.Devices()
	if err != nil {
		t.Fatal(err)
	}
	d, err := gpu.Open(list[0], gpu.Limits{Memory: 64 << 20, Pinned: 64 << 20})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

func volume(shape []int) int {
	n := 1
	for _, s := range shape {
		n *= s
	}
	return n
}

// fill makes the elements of a tile: each says where in the image it lies.
func fill(start, shape, full []int) []uint16 {
	v := make([]uint16, volume(shape))
	for i := range v {
		at, r := 0, i
		p := make([]int, len(shape))
		for d := len(shape) - 1; d >= 0; d-- {
			p[d] = start[d] + r%shape[d]
			r /= shape[d]
		}
		for d := range full {
			at = at*full[d] + p[d]
		}
		v[i] = uint16(at * 7919)
	}
	return v
}

// tiles calls f for all chunks of an image.
func tiles(spec ngff.ImageSpec, f func(start, shape []int)) {
	for start := range ngff.TileOrder(spec.Shape, spec.Chunks, spec.Axes) {
		shape := make([]int, len(start))
		for d := range shape {
			shape[d] = min(spec.Chunks[d], spec.Shape[d]-start[d])
		}
		f(start, shape)
	}
}

// onHost and onDevice write the image of a spec, whose levels they return.
func onHost(t *testing.T, spec ngff.ImageSpec) [][]byte {
	t.Helper()
	w, err := ngff.Create(ctx, store.Memory(), "", spec)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Abort()
	tiles(spec, func(start, shape []int) {
		if err := w.WriteTile(ctx, start, shape, dtype.Bytes(fill(start, shape, spec.Shape))); err != nil {
			t.Fatal(err)
		}
	})
	if err := w.Close(ctx); err != nil {
		t.Fatal(err)
	}
	return levels(t, w)
}

func onDevice(t *testing.T, d *gpu.Device, st store.Writer, spec ngff.ImageSpec) ([][]byte, error) {
	t.Helper()
	out, err := ngff.Create(ctx, st, "", spec)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Abort()
	w := NewWriter(out, d, Options{})
	s, err := d.Stream()
	if err != nil {
		return nil, err
	}
	defer func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	buffer, err := d.Memory().Get(int64(volume(spec.Chunks) * spec.DType.Size()))
	if err != nil {
		return nil, err
	}
	defer buffer.Release()
	host, err := d.Host(int(buffer.Bytes()))
	if err != nil {
		return nil, err
	}
	defer host.Release()
	var failed error
	tiles(spec, func(start, shape []int) {
		if failed != nil {
			return
		}
		n := copy(host.B, dtype.Bytes(fill(start, shape, spec.Shape)))
		s.Upload(buffer.Span, host.B[:n])
		failed = w.WriteTile(ctx, s, start, shape, buffer.Span)
	})
	if failed != nil {
		return nil, failed
	}
	if err := out.Close(ctx); err != nil {
		return nil, err
	}
	return levels(t, out), nil
}

func levels(t *testing.T, w *ngff.Writer) (all [][]byte) {
	t.Helper()
	for k := range w.Levels() {
		a := w.Array(k)
		b := make([]byte, volume(a.Shape())*a.DType().Size())
		if err := a.Read(ctx, zarr.Region{Start: make([]int, len(a.Shape())), Shape: a.Shape()}, b); err != nil {
			t.Fatal(err)
		}
		all = append(all, b)
	}
	return all
}

// image is a spec of space axes, as many as shape has.
func image(shape, chunks []int) ngff.ImageSpec {
	scale := make([]float64, len(shape))
	for d := range scale {
		scale[d] = 1
	}
	return ngff.ImageSpec{
		Shape: shape, Chunks: chunks, DType: dtype.Uint16, Scale: scale, Levels: 3, Workers: 1,
		Axes: ngff.SpaceAxes("tczyx"[5-len(shape):], "micrometer"),
	}
}

func TestWriteTile(t *testing.T) {
	d := device(t)
	for _, spec := range []ngff.ImageSpec{
		image([]int{33, 50}, []int{16, 16}),
		image([]int{8, 32, 48}, []int{4, 16, 16}),
		image([]int{9, 31, 45}, []int{4, 16, 16}),
	} {
		t.Run(fmt.Sprint(spec.Shape, spec.Chunks), func(t *testing.T) {
			want := onHost(t, spec)
			got, err := onDevice(t, d, store.Memory(), spec)
			if err != nil {
				t.Fatal(err)
			}
			for k := range want {
				if !bytes.Equal(got[k], want[k]) {
					t.Errorf("level %d differs from the host's", k)
				}
			}
		})
	}
}
