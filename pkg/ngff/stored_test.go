package ngff

import (
	"errors"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"

	"strata/pkg/zarr"
	"strata/pkg/zarr/codec"
	"strata/pkg/zarr/store"
)

// chunksOf encodes the chunks of a tile: what a caller of StoreTile does.
func chunksOf(t testing.TB, spec *ImageSpec, shape []int, tile []byte) (chunks []zarr.Stored) {
	t.Helper()
	n, unit := padded(shape, 1), padded(spec.Chunks, 1)
	var grid point
	for d := range rank {
		grid[d] = (n[d] + unit[d] - 1) / unit[d]
	}
	size := spec.DType.Size()
	for i := range grid.volume() {
		var b box
		for d, r := rank-1, i; d >= 0; d-- {
			b.lo[d] = r % grid[d] * unit[d]
			b.hi[d] = min(b.lo[d]+unit[d], n[d])
			r /= grid[d]
		}
		raw := make([]byte, unit.volume()*size)
		copyBox(memory{data: raw, origin: b.lo, stride: contiguous(unit)}, memory{data: tile, stride: contiguous(n)}, b, size)
		enc, err := spec.Codecs.Encode(new(codec.Scratch), nil, raw)
		if err != nil {
			t.Fatal(err)
		}
		chunks = append(chunks, zarr.Stored{Bytes: enc})
	}
	return chunks
}

// storeTile writes a tile as one that the caller has encoded, if that can be.
func storeTile(t testing.TB, w *Writer, spec *ImageSpec, start, shape []int, tile []byte) (stored bool, err error) {
	t.Helper()
	r, alone := w.Below(start, shape)
	if !alone {
		return false, w.WriteTile(t.Context(), start, shape, tile)
	}
	var below []byte
	if r.Shape != nil {
		var n []int
		if below, n, err = Downsample(spec.DType, tile, shape, spec.Axes); err != nil {
			t.Fatal(err)
		}
		if padded(n, 1) != padded(r.Shape, 1) {
			t.Fatalf("a part of level 1 of shape %v, it has %v", r.Shape, n)
		}
	}
	return true, w.StoreTile(t.Context(), start, shape, chunksOf(t, spec, shape, tile), below)
}

// Tiles that come encoded, with what is made of them of level 1, make the same image as
// others, among which they may be.
func TestStoredTilesEqualModel(t *testing.T) {
	trials := 500
	if raceEnabled || testing.Short() {
		trials = 100
	}
	var stored, other atomic.Int64
	for seed := range trials {
		rng := rand.New(rand.NewPCG(uint64(seed), 23))
		c := randomTrial(rng)
		for d := range c.spec.Shape { // most of even lengths
			if c.spec.Axes[d].Type != TypeSpace || rng.IntN(8) == 0 {
				continue
			}
			if rng.IntN(4) == 0 { // or in one chunk
				c.spec.Chunks[d] = c.spec.Shape[d]
			} else {
				c.spec.Shape[d] += c.spec.Shape[d] % 2
				c.spec.Chunks[d] += c.spec.Chunks[d] % 2
			}
			c.tile[d] = c.spec.Chunks[d] * (1 + rng.IntN(3))
			if c.spec.Shard != nil {
				c.spec.Shard[d] = c.spec.Chunks[d] * (1 + rng.IntN(3))
			}
		}
		if seed%2 == 0 {
			c.spec.Codecs = codec.Chain{codec.LZ4(1)}
		}
		mixed := seed%3 == 0
		var turn atomic.Int64
		c.write = func(w *Writer, start, shape []int, tile []byte) error {
			if mixed && turn.Add(1)%2 == 0 {
				return w.WriteTile(t.Context(), start, shape, tile)
			}
			alone, err := storeTile(t, w, &c.spec, start, shape, tile)
			if alone {
				stored.Add(1)
			} else {
				other.Add(1)
			}
			return err
		}
		level0 := bytesOf(c.spec.DType, padded(c.spec.Shape, 1).volume(), rng)
		st := store.Memory()
		w := c.run(t, st, level0, rng)
		compareLevels(t, st, "im", model(t, &c.spec, level0))
		if c.spec.Budget > 0 && w.pyramid.peak() > c.spec.Budget {
			t.Errorf("peak %d of a budget of %d", w.pyramid.peak(), c.spec.Budget)
		}
		if t.Failed() {
			t.Fatalf("seed %d: %s", seed, c)
		}
	}
	if stored.Load() < int64(trials) || other.Load() < int64(trials)/10 {
		t.Errorf("%d tiles were stored as they came, %d were not", stored.Load(), other.Load())
	}
}

func TestStoredTilesAreChecked(t *testing.T) {
	spec := smallSpec()
	spec.Shape = []int{8, 20, 30}
	start, shape := []int{0, 0, 0}, []int{4, 8, 16}
	tile := make([]byte, 4*8*16*2)
	chunks := chunksOf(t, &spec, shape, tile)
	below := make([]byte, 2*4*8*2)
	write := func(f func(w *Writer) error) error {
		w, err := Create(t.Context(), store.Memory(), "", spec)
		if err != nil {
			t.Fatal(err)
		}
		defer w.Abort()
		return f(w)
	}
	if err := write(func(w *Writer) error { return w.StoreTile(t.Context(), start, shape, chunks, below) }); err != nil {
		t.Fatal(err)
	}
	for what, f := range map[string]func(w *Writer) error{
		"chunks": func(w *Writer) error { return w.StoreTile(t.Context(), start, shape, chunks[1:], below) },
		"level 1": func(w *Writer) error {
			return w.StoreTile(t.Context(), start, shape, chunks, below[1:])
		},
		"twice": func(w *Writer) error {
			if err := w.StoreTile(t.Context(), start, shape, chunks, below); err != nil {
				return nil
			}
			return w.StoreTile(t.Context(), start, shape, chunks, below)
		},
		"whole chunks": func(w *Writer) error {
			return w.StoreTile(t.Context(), start, []int{4, 8, 14}, chunks, below)
		},
		"stored form": func(w *Writer) error {
			c := append([]zarr.Stored{{Bytes: tile[:100]}}, chunks[1:]...)
			return w.StoreTile(t.Context(), start, shape, c, below)
		},
	} {
		if err := write(f); err == nil {
			t.Errorf("%s: no error", what)
		}
	}
	// one that fails ends the writing
	bad := errors.New("bad")
	err := write(func(w *Writer) error {
		c := append([]zarr.Stored{{Size: 512, Write: func(store.PendingObject, int64) error { return bad }}}, chunks[1:]...)
		if err := w.StoreTile(t.Context(), start, shape, c, below); !errors.Is(err, bad) {
			t.Errorf("a chunk that could not be written: %v", err)
		}
		return w.StoreTile(t.Context(), []int{4, 0, 0}, shape, chunks, below)
	})
	if err == nil || !strings.Contains(err.Error(), "earlier") {
		t.Errorf("a tile after one that failed: %v", err)
	}
	spec.Shape = []int{9, 20, 30}
	if err := write(func(w *Writer) error { return w.StoreTile(t.Context(), start, shape, chunks, below) }); err == nil {
		t.Error("a tile that does not make its part of level 1 alone was stored")
	}
}
