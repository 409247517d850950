package zarr_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"

	"strata/pkg/dtype"
	"strata/pkg/zarr"
	"strata/pkg/zarr/codec"
	"strata/pkg/zarr/store"
)

var bg = context.Background()

// The stored form of every chunk, found, read and decoded, is the chunk.
func TestLocated(t *testing.T) {
	for name, spec := range map[string]zarr.Spec{
		"files":  {Chunks: []int{3, 8, 5}, Codecs: codec.Chain{codec.Zstd(1, false)}},
		"raw":    {Chunks: []int{3, 8, 5}, Format: 2},
		"shards": {Chunks: []int{2, 4, 5}, Shard: []int{4, 8, 10}, Codecs: codec.Chain{codec.LZ4(1)}},
	} {
		t.Run(name, func(t *testing.T) {
			spec.Shape, spec.DType, spec.Fill = []int{7, 21, 18}, dtype.Uint16, 513
			a, err := zarr.CreateArray(bg, store.Memory(), "a", spec, zarr.OmitFill())
			if err != nil {
				t.Fatal(err)
			}
			b := make([]byte, 2*7*21*18)
			for i := range b {
				if b[i] = byte(i * 7919 >> 3); i < len(b)/2 {
					b[i] = [2]byte{1, 2}[i%2]
				}
			}
			if err := a.Write(bg, a.Bounds(), b); err != nil {
				t.Fatal(err)
			}
			var scratch codec.Scratch
			seen, missing := map[string]bool{}, 0
			region := zarr.Region{Start: []int{1, 3, 2}, Shape: []int{6, 17, 16}}
			err = a.Located(bg, region, func(f *zarr.ChunkFile, chunks []zarr.Located) error {
				for _, c := range chunks {
					if seen[fmt.Sprint(c.Start)] {
						t.Errorf("chunk at %v comes twice", c.Start)
					}
					seen[fmt.Sprint(c.Start)] = true
					n, valid := 2, make([]int, 3)
					for d, s := range a.Chunks() {
						n *= s
						valid[d] = min(s, a.Shape()[d]-c.Start[d])
					}
					want := make([]byte, 2*valid[0]*valid[1]*valid[2])
					if err := a.Read(bg, zarr.Region{Start: c.Start, Shape: valid}, want); err != nil {
						return err
					}
					if c.Size < 0 {
						missing++
						if !bytes.Equal(want, bytes.Repeat([]byte{1, 2}, len(want)/2)) {
							t.Errorf("chunk at %v is missing", c.Start)
						}
						continue
					}
					stored, chunk := make([]byte, c.Size), make([]byte, n)
					if err := f.ReadAt(bg, stored, c.Offset); err != nil {
						return err
					}
					if err := a.Codecs().Decode(&scratch, chunk, stored); err != nil {
						return fmt.Errorf("%s: %w", f.Location(), err)
					}
					var got []byte
					for z := range valid[0] {
						for y := range valid[1] {
							i := (z*a.Chunks()[1] + y) * a.Chunks()[2] * 2
							got = append(got, chunk[i:i+2*valid[2]]...)
						}
					}
					if !bytes.Equal(got, want) {
						t.Errorf("chunk at %v differs", c.Start)
					}
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			want := 1
			for d, s := range a.Chunks() {
				want *= (region.Start[d]+region.Shape[d]-1)/s - region.Start[d]/s + 1
			}
			if len(seen) != want || missing == 0 || missing == want {
				t.Errorf("%d chunks, %d of them missing; the region touches %d", len(seen), missing, want)
			}
		})
	}
}

func TestElementary(t *testing.T) {
	for want, spec := range map[string]zarr.Spec{
		"":                       {DType: dtype.Uint8, BigEndian: true},
		"C order":                {DType: dtype.Uint16, Order: 'F'},
		"most significant":       {DType: dtype.Uint16, BigEndian: true},
		"chunks are not stored ": {DType: dtype.Uint16, Order: 'F', Shard: []int{4, 4}},
	} {
		spec.Shape, spec.Chunks = []int{4, 4}, []int{2, 2}
		a, err := zarr.CreateArray(bg, store.Memory(), "a", spec)
		if err != nil {
			t.Fatal(err)
		}
		err = a.Elementary()
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%v, want %q", err, want)
		}
		if located := a.Located(bg, a.Bounds(), func(*zarr.ChunkFile, []zarr.Located) error { return nil }); (located == nil) != (err == nil) {
			t.Errorf("located: %v, elementary: %v", located, err)
		}
	}
}

// An index that cannot be read is the store's failure, not the shard's.
func TestLocatedFaults(t *testing.T) {
	f := &faulty{Writer: store.Memory(), err: syscall.EIO, only: "readat"}
	f.left.Store(100)
	a := faultArray(t, f, zarr.Spec{Chunks: []int{4, 4}, Shard: []int{16, 16}})
	if err := a.Write(t.Context(), a.Bounds(), make([]byte, 30*30*2)); err != nil {
		t.Fatal(err)
	}
	a.Close()
	f.left.Store(0)
	err := a.Located(t.Context(), a.Bounds(), func(*zarr.ChunkFile, []zarr.Located) error { return nil })
	var format *zarr.FormatError
	if !errors.Is(err, syscall.EIO) || errors.As(err, &format) {
		t.Errorf("%v", err)
	}
}
