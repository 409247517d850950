package zarr_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"strata/pkg/dtype"
	"strata/pkg/zarr"
	"strata/pkg/zarr/codec"
	"strata/pkg/zarr/store"
)

// readers reads an array, or little of it, in each way there is; all touch the chunk at [1, 0, 0].
var readers = map[string]func(a *zarr.Array) error{
	"whole": func(a *zarr.Array) error { return readRegion(a, a.Bounds()) },
	"plane": func(a *zarr.Array) error {
		return readRegion(a, zarr.Region{Start: []int{32, 0, 0}, Shape: []int{1, 64, 64}})
	},
	"row": func(a *zarr.Array) error {
		return readRegion(a, zarr.Region{Start: []int{63, 30, 20}, Shape: []int{1, 1, 2}})
	},
	"column across chunks": func(a *zarr.Array) error {
		return readRegion(a, zarr.Region{Start: []int{0, 5, 63}, Shape: []int{64, 1, 1}})
	},
	"strided": func(a *zarr.Array) error {
		return a.ReadStrided(context.Background(), zarr.Region{Start: []int{40, 0, 9}, Shape: []int{2, 8, 8}}, make([]byte, 4*2*8*9), []int{4 * 8 * 9, 4 * 9, 4})
	},
	"planes in blocks": func(a *zarr.Array) error {
		if !a.InBlocks() {
			return readRegion(a, zarr.Region{Start: []int{32, 0, 0}, Shape: []int{32, 64, 64}})
		}
		r := zarr.Region{Start: []int{32, 0, 0}, Shape: []int{1, 64, 64}}
		return a.ReadPlanes(context.Background(), r, make([]byte, 4*64*64), func(int, []byte) error { return nil })
	},
	"part that is written": func(a *zarr.Array) error {
		return a.Write(context.Background(), zarr.Region{Start: []int{33, 1, 1}, Shape: []int{1, 1, 1}}, make([]byte, 4))
	},
}

func readRegion(a *zarr.Array, r zarr.Region) error {
	n := 4
	for _, k := range r.Shape {
		n *= k
	}
	return a.Read(context.Background(), r, make([]byte, n))
}

// Every read of a chunk with a checksum, also of little of it, notices a flipped bit wherever it lies, in the checksum
// too, and names the file and, in a shard, the chunk.
func TestChecksumFindsEveryBit(t *testing.T) {
	for _, name := range []string{"raw", "lz4", "zstd:1", "gzip:1", "blosc-lz4", "blosc-zstd:1", "blosc-zlib:1", "own of zstd"} {
		for _, shard := range [][]int{nil, {64, 64, 64}} {
			t.Run(fmt.Sprint(name, shard), func(t *testing.T) {
				t.Parallel()
				a := checked(t, name, shard)
				file, at, n := chunkOf(t, a, []int{1, 0, 0})
				whole, err := os.ReadFile(file)
				if err != nil {
					t.Fatal(err)
				}
				for i := range 25 {
					bit := 8*at + i*(8*n-1)/24
					damaged := append([]byte(nil), whole...)
					damaged[bit/8] ^= 1 << (bit % 8)
					if err := os.WriteFile(file, damaged, 0o666); err != nil {
						t.Fatal(err)
					}
					for how, read := range readers {
						a.Close()
						err := read(a)
						var fe *zarr.FormatError
						if !errors.As(err, &fe) || !strings.Contains(err.Error(), file) || shard != nil && how != "part that is written" && !strings.Contains(err.Error(), "[1 0 0]") {
							t.Errorf("bit %d of byte %d of %d, read %s: %v", bit%8, bit/8-at, n, how, err)
						}
					}
				}
				if err := os.WriteFile(file, whole, 0o666); err != nil {
					t.Fatal(err)
				}
				a.Close()
				for how, read := range readers {
					if err := read(a); err != nil {
						t.Errorf("whole again, read %s: %v", how, err)
					}
				}
			})
		}
	}
}

// checked returns an array of float32 that is stored with a checksum.
func checked(t *testing.T, name string, shard []int) *zarr.Array {
	t.Helper()
	chain, err := codec.FromFlag(name+codec.ChecksumSuffix, dtype.Float32, 3)
	if name == "own of zstd" {
		chain, err = codec.FromFlag("zstd"+codec.ChecksumSuffix, dtype.Float32, 2)
	}
	if err != nil {
		t.Fatal(err)
	}
	spec := zarr.Spec{Shape: []int{64, 64, 64}, Chunks: []int{32, 64, 64}, Shard: shard, DType: dtype.Float32, Codecs: chain}
	a, err := zarr.CreateArray(context.Background(), store.Folder(t.TempDir()), "a", spec)
	if err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 4*64*64*64)
	noise12(b)
	if err := a.Write(context.Background(), a.Bounds(), b); err != nil {
		t.Fatal(err)
	}
	return a
}

// chunkOf returns the file that holds the stored form of a chunk, and where.
func chunkOf(t *testing.T, a *zarr.Array, index []int) (file string, at, n int) {
	t.Helper()
	r, err := a.ChunkRegion(index)
	if err == nil {
		err = a.Located(context.Background(), r, func(f *zarr.ChunkFile, chunks []zarr.Located) error {
			file, at, n = f.Location(), int(chunks[0].Offset), int(chunks[0].Size)
			return nil
		})
	}
	if err != nil {
		t.Fatal(err)
	}
	return file, at, n
}
