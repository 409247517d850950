package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"strata/pkg/dtype"
	"strata/pkg/gpu"
	"strata/pkg/gpu/nvcomp"
	"strata/pkg/zarr"
	"strata/pkg/zarr/codec"
	"strata/pkg/zarr/zarrgpu/pack"
	"strata/tests/cudaemu"
)

// device writes arrays whose chunks are encoded on a GPU or its software double.
func (w *writer) device(ctx context.Context) (err error) {
	if err := cudaemu.Find(); err != nil {
		return err
	}
	list, err := gpu.Devices()
	if err != nil {
		return err
	}
	d, err := gpu.Open(list[0], gpu.Limits{Memory: 64 << 20, Pinned: 64 << 20})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	s, err := d.Stream()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	lib, err := nvcomp.Open(d)
	if err != nil {
		return err
	}
	for _, format := range []int{2, 3} {
		for _, t := range []dtype.Type{dtype.Uint8, dtype.Uint16, dtype.Float32, dtype.Float64} {
			for _, chain := range []codec.Chain{{codec.Zstd(1, false)}, {codec.LZ4(1)}, {codec.Zstd(1, false), codec.CRC32C()},
				{blosc("lz4", 5, codec.ByteShuffle, t, 0)}, {blosc("lz4", 1, codec.NoShuffle, t, 4096)}, {blosc("zstd", 1, codec.ByteShuffle, t, 0)}, {blosc("zstd", 5, codec.ByteShuffle, t, 3000)}} {
				if !has(chain, format) {
					continue
				}
				for i := range 2 * (format - 1) {
					spec := zarr.Spec{Format: format, Shape: []int{2, 6, 24, 40}, Chunks: []int{1, 3, 24, 40}, DType: t, Codecs: chain}
					what := "chunks"
					if i >= 2 && chain[0].Name() == "lz4" {
						break // only zarr-python has it in format 3
					}
					if i >= 2 {
						spec.Shard, what = []int{1, 6, 24, 40}, "shards"
					}
					if err := w.add(ctx, fmt.Sprintf("v%d %s encoded on a GPU", format, what), spec, i%2 == 0, whole); err != nil {
						return err
					}
					if err := w.encode(ctx, lib, s, spec, w.list.Arrays[len(w.list.Arrays)-1].Path); err != nil {
						return err
					}
				}
			}
		}
	}
	return nil
}

// encode stores the chunks of an array again, encoded by the device.
func (w *writer) encode(ctx context.Context, lib *nvcomp.Library, s *gpu.Stream, spec zarr.Spec, path string) error {
	a, err := zarr.OpenArray(ctx, w.st, path)
	if err != nil {
		return err
	}
	defer a.Close()
	all := make([]byte, spec.DType.Size()*2*6*24*40)
	if err := a.Read(ctx, a.Bounds(), all); err != nil {
		return err
	}
	size := len(all) / 4
	e, err := pack.New(lib, spec.Codecs, size)
	if err != nil {
		return err
	}
	host, err := s.Device().Host(len(all))
	if err != nil {
		return err
	}
	defer host.Release()
	copy(host.B, all)
	memory, err := s.Device().Memory().Get(int64(len(all)))
	if err != nil {
		return err
	}
	defer memory.Release()
	s.Upload(memory.Span, host.B)
	var chunks []gpu.Span
	for i := range 4 {
		chunks = append(chunks, memory.From(int64(i*size), int64(size)))
	}
	out, err := e.Encode(s, chunks)
	if err != nil {
		return err
	}
	defer out.Release()
	if err := put(ctx, a, out.Chunks); err != nil {
		return err
	}
	again := make([]byte, len(all))
	if err := a.Read(ctx, a.Bounds(), again); err != nil || !bytes.Equal(all, again) {
		return fmt.Errorf("%s: reads back differently once a device has encoded it: %w", path, err)
	}
	return nil
}

// put stores the four chunks of an array.
func put(ctx context.Context, a *zarr.Array, chunks [][]byte) error {
	for i := range 2 {
		put, commit := a.PutChunk, func(context.Context) error { return nil }
		if a.Shard() != nil {
			s, err := a.NewShard(ctx, []int{i, 0, 0, 0})
			if err != nil {
				return err
			}
			defer s.Abort()
			put, commit = s.PutChunk, s.Commit
		}
		for j := range 2 {
			if err := put(ctx, []int{i, j, 0, 0}, zarr.Stored{Bytes: chunks[2*i+j]}); err != nil {
				return err
			}
		}
		if err := commit(ctx); err != nil {
			return err
		}
	}
	return nil
}
