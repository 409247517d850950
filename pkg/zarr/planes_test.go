package zarr

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"strata/pkg/dtype"
	"strata/pkg/meter"
	"strata/pkg/zarr/codec"
	"strata/pkg/zarr/store"
)

// ReadPlanes gives what Read does, whatever the blocks, the box and the buffer.
func TestReadPlanesIsRead(t *testing.T) {
	ctx := context.Background()
	r := rand.New(rand.NewPCG(31, 32))
	for _, c := range []struct {
		shape, chunk, shard []int
		block               int
	}{
		{[]int{20, 12, 10}, []int{20, 12, 10}, nil, 0},             // one block
		{[]int{20, 12, 10}, []int{20, 12, 10}, nil, 480},           // a plane is a block
		{[]int{20, 12, 10}, []int{20, 12, 10}, nil, 4 * 480},       // several are
		{[]int{20, 12, 10}, []int{20, 12, 10}, nil, 1000},          // a plane lies in two or three
		{[]int{20, 12, 10}, []int{20, 12, 10}, nil, 132},           // in many
		{[]int{20, 30, 35}, []int{9, 12, 10}, nil, 700},            // partial chunks
		{[]int{20, 30, 35}, []int{5, 6, 7}, []int{20, 12, 14}, 92}, // shards
		{[]int{50}, []int{50}, nil, 32},
	} {
		blosc, err := codec.Blosc("lz4", 5, codec.ByteShuffle, 4, c.block)
		if err != nil {
			t.Fatal(err)
		}
		spec := Spec{Format: 3, Shape: c.shape, Chunks: c.chunk, Shard: c.shard, DType: dtype.Int32, Codecs: codec.Chain{blosc}, Fill: 7}
		a, err := CreateArray(ctx, store.Memory(), "", spec)
		if err != nil {
			t.Fatal(err)
		}
		if !a.InBlocks() {
			t.Fatal("Blosc is not read in blocks")
		}
		n := 1
		for _, s := range c.shape {
			n *= s
		}
		v := make([]int32, n)
		for i := range v {
			v[i] = int32(r.IntN(1000))
		}
		// chunk 0 stays missing where there are others
		whole := a.Bounds()
		if len(c.shape) == 3 && c.shape[1] > c.chunk[1] {
			whole.Start = []int{0, c.shape[1] / 2 / 12 * 12, 0}
			whole.Shape = []int{c.shape[0], c.shape[1] - whole.Start[1], c.shape[2]}
			v = v[:whole.Shape[0]*whole.Shape[1]*whole.Shape[2]]
		}
		if err := a.Write(ctx, whole, dtype.Bytes(v)); err != nil {
			t.Fatal(err)
		}
		for range 200 {
			box := Region{Start: make([]int, len(c.shape)), Shape: make([]int, len(c.shape))}
			size := 4
			for d, s := range c.shape {
				k := r.IntN((s + c.chunk[d] - 1) / c.chunk[d])
				lo, hi := k*c.chunk[d], min((k+1)*c.chunk[d], s)
				if r.IntN(2) == 0 { // else all of it
					lo += r.IntN(hi - lo)
					hi -= r.IntN(hi - lo)
				}
				box.Start[d], box.Shape[d] = lo, hi-lo
				size *= hi - lo
			}
			want := make([]byte, size)
			if err := a.Read(ctx, box, want); err != nil {
				t.Fatal(err)
			}
			plane := size / box.Shape[0]
			var got []byte
			err := a.ReadPlanes(ctx, box, make([]byte, plane*(1+r.IntN(4))+r.IntN(plane)), func(first int, b []byte) error {
				if first*plane != len(got) || len(b) == 0 || len(b)%plane != 0 {
					t.Fatalf("plane %d with %d bytes after %d", first, len(b), len(got))
				}
				got = append(got, b...)
				clear(b) // the taker may do as it likes
				return nil
			})
			if err != nil || !bytes.Equal(got, want) {
				t.Fatalf("chunks %v of %v in blocks of %d, box %v: %v", c.chunk, c.shape, c.block, box, err)
			}
		}
	}
}

func TestReadPlanesRefuses(t *testing.T) {
	ctx := context.Background()
	blosc, err := codec.FromFlag("blosc-lz4", dtype.Uint8, 3)
	if err != nil {
		t.Fatal(err)
	}
	st := store.Memory()
	a, err := CreateArray(ctx, st, "a", Spec{Format: 3, Shape: []int{8, 8}, Chunks: []int{4, 8}, DType: dtype.Uint8, Codecs: blosc})
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Write(ctx, a.Bounds(), make([]byte, 64)); err != nil {
		t.Fatal(err)
	}
	none := func(int, []byte) error { return nil }
	chunk := Region{Start: []int{4, 0}, Shape: []int{4, 8}}
	if err := a.ReadPlanes(ctx, a.Bounds(), make([]byte, 64), none); err == nil {
		t.Error("two chunks: no error")
	}
	if err := a.ReadPlanes(ctx, chunk, make([]byte, 7), none); err == nil {
		t.Error("less than a plane of memory: no error")
	}
	stop := &FormatError{Err: errors.New("enough")}
	calls := 0
	if err := a.ReadPlanes(ctx, chunk, make([]byte, 8), func(int, []byte) error { calls++; return stop }); err != stop || calls != 1 || stop.Path != "" {
		t.Errorf("take's error: %v after %d calls", err, calls)
	}
	// what read before is not taken by the planes of a call that failed
	got := make([]byte, 64)
	got[0] = 1
	if err := a.Read(ctx, a.Bounds(), got); err != nil || got[0] != 0 {
		t.Errorf("reading afterwards: %v, %v", got[0], err)
	}
	if err := st.Put(ctx, "a/c/1/0", []byte("not a chunk, but some bytes of text")); err != nil {
		t.Fatal(err)
	}
	var fe *FormatError
	if err := a.ReadPlanes(ctx, chunk, make([]byte, 8), none); !errors.As(err, &fe) || fe.Path == "" {
		t.Errorf("a damaged chunk: %v", err)
	}
	raw, err := CreateArray(ctx, st, "raw", Spec{Format: 3, Shape: []int{8, 8}, Chunks: []int{4, 8}, DType: dtype.Uint8})
	if err != nil {
		t.Fatal(err)
	}
	if err := raw.ReadPlanes(ctx, chunk, make([]byte, 8), none); raw.InBlocks() || err == nil {
		t.Error("an array that is not decoded in blocks: no error")
	}
}

// What take does is not decoding.
func TestReadPlanesCountsDecodingOnly(t *testing.T) {
	ctx := context.Background()
	blosc, err := codec.FromFlag("blosc-lz4", dtype.Uint8, 3)
	if err != nil {
		t.Fatal(err)
	}
	m := &meter.Meter{}
	a, err := CreateArray(ctx, store.Memory(), "", Spec{Format: 3, Shape: []int{64, 64}, Chunks: []int{64, 64}, DType: dtype.Uint8, Codecs: blosc}, Meter(m))
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Write(ctx, a.Bounds(), make([]byte, 4096)); err != nil {
		t.Fatal(err)
	}
	inside := &meter.Meter{}
	if err := a.ReadPlanes(ctx, a.Bounds(), make([]byte, 64), func(int, []byte) error {
		start := time.Now()
		for time.Since(start) < 20*time.Millisecond {
		}
		inside.Since(meter.Compute, start)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if d := m.Busy(meter.Decode); d < 0 || d > inside.Busy(meter.Compute)/2 {
		t.Errorf("%v of decoding beside %v of work", d, inside.Busy(meter.Compute))
	}
}
