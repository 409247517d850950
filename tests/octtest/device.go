package octtest

import (
	"bytes"
	"math"
	"slices"
	"testing"

	"strata/pkg/dtype"
	"strata/pkg/gpu"
	"strata/pkg/ngff"
	"strata/pkg/zarr"
	"strata/pkg/zarr/zarrgpu"
	"strata/tests/cudaemu"
	"strata/tests/gputest"
)

// Device returns the tests' software double of a GPU with the given memory for the stage.
func Device(t *testing.T, memory int64) *gpu.Device {
	t.Helper()
	cudaemu.Use(t)
	return gputest.Device(t, gpu.Limits{Memory: memory, Pinned: 256 << 20})
}

// oneNaN gives every NaN the same bits, since these depend on the processor.
func oneNaN(raw []byte, t dtype.Type) {
	switch t {
	case dtype.Float32:
		for i, v := range dtype.Slice[float32](raw) {
			if v != v {
				dtype.Slice[float32](raw)[i] = float32(math.NaN())
			}
		}
	case dtype.Float64:
		for i, v := range dtype.Slice[float64](raw) {
			if v != v {
				dtype.Slice[float64](raw)[i] = math.NaN()
			}
		}
	}
}

// SameArrays compares all levels of two images byte by byte, except for the bits of NaN.
func SameArrays(t *testing.T, got, want *ngff.Image) {
	t.Helper()
	if len(got.Levels) != len(want.Levels) {
		t.Fatalf("%d levels, want %d", len(got.Levels), len(want.Levels))
	}
	for k := range want.Levels {
		a, b := got.Levels[k].Array, want.Levels[k].Array
		if !slices.Equal(a.Shape(), b.Shape()) || a.DType() != b.DType() {
			t.Fatalf("level %d: %v %v, want %v %v", k, a.Shape(), a.DType(), b.Shape(), b.DType())
		}
		var raw [2][]byte
		for i, c := range []*zarr.Array{a, b} {
			n := c.DType().Size()
			for _, s := range c.Shape() {
				n *= s
			}
			raw[i] = make([]byte, n)
			if err := c.Read(Ctx, c.Bounds(), raw[i]); err != nil {
				t.Fatal(err)
			}
			oneNaN(raw[i], c.DType())
		}
		if !bytes.Equal(raw[0], raw[1]) {
			t.Errorf("level %d differs from the CPU's", k)
		}
	}
}

// Stored returns the size of an array's decoded voxels in bytes.
func Stored(a *zarr.Array) int64 {
	n := int64(a.DType().Size())
	for _, s := range a.Shape() {
		n *= int64(s)
	}
	return n
}

// Brought returns the number of bytes of an array that are uploaded: encoded if the device decodes them, otherwise
// decoded. chunks is the number of encoded chunks.
func Brought(t *testing.T, d *gpu.Device, a *zarr.Array) (n int64, chunks int) {
	t.Helper()
	r, err := zarrgpu.NewReader(a, d, zarrgpu.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if w, _ := r.Way(); w != zarrgpu.NVComp {
		return Stored(a), 0
	}
	err = a.Located(Ctx, a.Bounds(), func(_ *zarr.ChunkFile, list []zarr.Located) error {
		for _, c := range list {
			n += max(0, c.Size)
		}
		chunks += len(list)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return n, chunks
}
