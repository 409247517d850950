package stage

import (
	"context"
	"testing"

	"strata/pkg/dtype"
	"strata/pkg/gpu"
	"strata/pkg/gpu/cost"
	"strata/pkg/gpu/kernels"
	"strata/pkg/zarr"
	"strata/pkg/zarr/codec"
	"strata/pkg/zarr/store"
)

// TestCoded: the model gets the streams that a region's chunks have, and hears what the device cannot do.
func TestCoded(t *testing.T) {
	const mib = 1 << 20
	for name, c := range map[string]struct {
		chunk  int64
		auto   bool
		want   cost.Array
		blocks bool // as many streams as Blosc makes, more than one a chunk
	}{
		"raw":          {mib, true, cost.Array{Codec: cost.Raw, Streams: 8, Region: 8 * mib, Device: true}, false},
		"zstd:3":       {mib, true, cost.Array{Codec: cost.Zstd, Streams: 8, Region: 8 * mib, Device: true}, false},
		"zstd:1":       {50 * mib, true, cost.Array{Codec: cost.Zstd, Streams: 1, Region: 50 * mib, Device: true}, false},
		"lz4":          {3 * mib, true, cost.Array{Codec: cost.LZ4, Streams: 2, Region: 6 * mib, Device: true}, false},
		"gzip:5":       {8 * mib, false, cost.Array{Codec: cost.Deflate, Streams: 1, Region: 8 * mib}, false},
		"blosc-zstd:1": {50 * mib, true, cost.Array{Codec: cost.Blosc, Region: 50 * mib, Device: true}, true},
		"blosc-lz4":    {mib, true, cost.Array{Codec: cost.Blosc, Region: 8 * mib, Device: true}, true},
	} {
		chain, err := codec.FromFlag(name, dtype.Float32, 2)
		if err != nil {
			t.Fatal(err)
		}
		got := coded(chain, c.chunk, c.auto)
		if c.blocks && got.Streams > got.Region/c.chunk {
			c.want.Streams = got.Streams
		}
		if got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

// TestStored: some chunks say how well an array is compressed; what they say of a server is not asked.
func TestStored(t *testing.T) {
	chain, err := codec.FromFlag("zstd:1", dtype.Uint16, 3)
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	spec := zarr.Spec{Format: 3, Shape: []int{8, 64, 64}, Chunks: []int{1, 32, 32}, DType: dtype.Uint16, Codecs: chain}
	st := store.Memory()
	half, err := zarr.CreateArray(ctx, st, "half", spec)
	if err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 8*64*64*2) // noise in the low bytes, nothing in the high ones
	x := uint32(1)
	for i := 0; i < len(b); i += 2 {
		x = x*1664525 + 1013904223
		b[i] = byte(x >> 24)
	}
	if err := half.Write(ctx, half.Bounds(), b); err != nil {
		t.Fatal(err)
	}
	if got := stored(ctx, half); got < 0.5 || got > 0.75 {
		t.Errorf("half of the bytes are noise, and %v are stored", got)
	}
	if got := stored(ctx, half.With(zarr.NoteMissing(&zarr.Missing{Refuse: true}))); got > 0.75 {
		t.Errorf("%v", got)
	}
	empty, err := zarr.CreateArray(ctx, st, "empty", spec)
	if err != nil {
		t.Fatal(err)
	}
	missing := &zarr.Missing{Refuse: true}
	if got := stored(ctx, empty.With(zarr.NoteMissing(missing))); got != 1 || len(missing.List()) != 0 {
		t.Errorf("%v of an array of which nothing is stored, noted %v", got, missing.List())
	}
}

// TestModelDevice: no more workers than there are regions, and as much page-locked memory as they take.
func TestModelDevice(t *testing.T) {
	m := model{gpu: cost.Figures{"init": 3}, host: cost.HostFigures(), pinned: mostPinned}
	j := cost.Job{In: cost.Array{Bytes: 3 << 20, Region: 1 << 20}}
	d := m.device(gpu.Info{Name: "NVIDIA H100 NVL", Compute: 90, Driver: 12040}, j, 16)
	if d.Model != "H100" || d.Workers != 3 || d.Pinned != 18<<20 || !d.Cubins || d.Figures["init"] != 3 {
		t.Errorf("%+v", d)
	}
	j.In.Bytes = 0 // an array of no elements
	if d := m.device(gpu.Info{Name: "none", Compute: 110}, j, 16); d.Workers != 1 || d.Cubins {
		t.Errorf("%+v", d)
	}
}

// TestKnown: each model's GPU has the compute capability whose figures are its own, and machine code ships for it.
func TestKnown(t *testing.T) {
	list := known()
	if len(list) != len(cost.Models()) {
		t.Errorf("%d GPUs of %d models", len(list), len(cost.Models()))
	}
	for _, i := range list {
		if m, _ := cost.ForGPU("", i.Compute); m != i.Name || !kernels.Precompiled(i) {
			t.Errorf("%s: compute capability %d is that of %s; machine code ships: %v", i.Name, i.Compute, m, kernels.Precompiled(i))
		}
	}
}

// TestAt: the share of the input that an output has of other voxels.
func TestAt(t *testing.T) {
	w := Work{voxel: []float64{1, 4, 2, 2}}
	if w.At([3]float64{8, 4, 4}); w.Out != 0.125 {
		t.Error(w.Out)
	}
	flat := Work{voxel: []float64{2, 2}}
	if flat.At([3]float64{8, 4, 4}); flat.Out != 0 {
		t.Error(flat.Out)
	}
}
