//go:build !nocuda

package aip

import (
	"errors"
	"strings"
	"testing"

	"strata/pkg/filelayer"
	"strata/pkg/meter"
	"strata/pkg/ngff"
	"strata/pkg/oct"
	"strata/pkg/oct/resample"
	"strata/pkg/settings"
	"strata/pkg/zarr"
	"strata/pkg/zarr/codec"
	"strata/pkg/zarr/store"
	"strata/pkg/zarr/zarrgpu"
	"strata/tests/octtest"
)

// By whatever way chunks come to the device, a stage makes the same of them; all voxels
// come by that way, and straight from the files where it is cuFile's.
func TestWaysOnDevice(t *testing.T) {
	d := octtest.Device(t, 256<<20)
	s := settings.Default()
	s.Threshold = 0
	files, err := filelayer.NewPool(d, s, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := files.Close(); err != nil {
			t.Error(err)
		}
	})
	straight, why := files.Mode()
	for _, c := range []struct {
		name     string
		chain    codec.Chain
		shard    []int
		backends map[string]zarrgpu.Way
	}{
		{"raw", nil, nil, map[string]zarrgpu.Way{"auto": zarrgpu.GDS, "gds": zarrgpu.GDS, "bounce": zarrgpu.Bounce, "host": zarrgpu.Host}},
		{"raw shards", nil, []int{8, 20, 32}, map[string]zarrgpu.Way{"auto": zarrgpu.GDS, "bounce": zarrgpu.Bounce}},
		{"zstd", codec.Chain{codec.Zstd(1, false)}, nil, map[string]zarrgpu.Way{"auto": zarrgpu.NVComp, "nvcomp": zarrgpu.NVComp, "host": zarrgpu.Host}},
		{"lz4 shards", codec.Chain{codec.LZ4(1)}, []int{8, 20, 32}, map[string]zarrgpu.Way{"auto": zarrgpu.NVComp, "host": zarrgpu.Host}},
	} {
		in := folder(t, []int{11, 45, 70}, []int{4, 20, 32}, c.shard, c.chain)
		voxels, chunks := octtest.Stored(in.Levels[0].Array), int64(0)
		if err := in.Levels[0].Array.Located(octtest.Ctx, in.Levels[0].Array.Bounds(), func(_ *zarr.ChunkFile, list []zarr.Located) error {
			for _, c := range list {
				chunks += c.Size
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		for name, stage := range map[string]func(store.Writer, oct.Resources) (*ngff.Image, error){
			"aip": func(out store.Writer, res oct.Resources) (*ngff.Image, error) {
				return Run(octtest.Ctx, in, out, oct.Layout{}, nil, res)
			},
			"resample": func(out store.Writer, res oct.Resources) (*ngff.Image, error) {
				return resample.Run(octtest.Ctx, in, out, resample.Options{Resolution: [3]float64{10, 10, 10}, Prefetch: 8}, oct.Layout{}, res)
			},
		} {
			want, err := stage(store.Memory(), octtest.Small())
			if err != nil {
				t.Fatal(err)
			}
			for backend, way := range c.backends {
				t.Run(c.name+"/"+name+"/"+backend, func(t *testing.T) {
					if way == zarrgpu.GDS && !straight {
						t.Skip(why)
					}
					res := octtest.Small()
					res.Device, res.Files, res.Backend, res.Ways, res.Meter = d, files, backend, new(zarrgpu.Counts), new(meter.Meter)
					read := files.Stats().ReadStraight
					got, err := stage(store.Memory(), res)
					if err != nil {
						t.Fatal(err)
					}
					octtest.SameArrays(t, got, want)
					if n := res.Ways.Bytes(way); n != voxels || res.Ways.Fallbacks() != 0 {
						t.Errorf("%d of %d bytes by way of %v, %d regions read again: %v", n, voxels, way, res.Ways.Fallbacks(), res.Ways.Reasons())
					}
					// of chunks at the far edges what lies between their rows comes as well
					if n := files.Stats().ReadStraight - read; way == zarrgpu.GDS && (n < voxels || n > chunks) || way != zarrgpu.GDS && n != 0 {
						t.Errorf("%d bytes came straight, of %d of chunks with %d of voxels", n, chunks, voxels)
					}
				})
			}
			t.Run(c.name+"/"+name+"/refused", func(t *testing.T) {
				res := octtest.Small()
				res.Device, res.Files, res.Backend = d, files, "nvcomp"
				if c.chain != nil {
					res.Backend = "gds"
				}
				_, err := stage(store.Memory(), res)
				var backend *zarrgpu.BackendError
				if !errors.As(err, &backend) || errors.Is(err, oct.ErrLayout) || errors.Is(err, oct.ErrInput) || !strings.Contains(err.Error(), "--backend "+res.Backend+" cannot read ") {
					t.Error(err)
				}
			})
		}
	}
}

// folder is a mosaic in files.
func folder(t *testing.T, shape, chunks, shard []int, chain codec.Chain) *ngff.Image {
	t.Helper()
	in, _ := octtest.Made(t, shape, chunks, shard, chain, func(i int) uint16 { return uint16(i * 7919 >> 2) })
	out := store.Folder(t.TempDir())
	a := in.Levels[0].Array
	w, err := ngff.Create(octtest.Ctx, out, "", ngff.ImageSpec{Format: 3, Shape: shape, Chunks: chunks, Shard: shard, DType: a.DType(),
		Axes: in.Axes, Scale: in.Levels[0].Scale, Codecs: chain})
	if err != nil {
		t.Fatal(err)
	}
	v := make([]byte, octtest.Stored(a))
	if err := a.Read(octtest.Ctx, a.Bounds(), v); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(w.WriteTile(octtest.Ctx, []int{0, 0, 0}, shape, v), w.Close(octtest.Ctx)); err != nil {
		t.Fatal(err)
	}
	return octtest.Open(t, out)
}
