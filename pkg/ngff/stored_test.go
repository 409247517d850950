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
	"strata/tests/race"
)

// chunksOf encodes and halves the chunks of a tile: what a caller of StoreTile does.
func chunksOf(t testing.TB, w *Writer, spec *ImageSpec, start, shape []int, tile []byte) (chunks []StoredChunk) {
	t.Helper()
	o, n, unit := padded(start, 0), padded(shape, 1), padded(spec.Chunks, 1)
	var grid point
	for d := range rank {
		grid[d] = (n[d] + unit[d] - 1) / unit[d]
	}
	size := spec.DType.Size()
	src := memory{data: tile, origin: o, stride: contiguous(n)}
	for i := range grid.volume() {
		var b box
		var index point
		for d, r := rank-1, i; d >= 0; d-- {
			b.lo[d] = o[d] + r%grid[d]*unit[d]
			b.hi[d] = min(b.lo[d]+unit[d], o[d]+n[d])
			index[d] = b.lo[d] / unit[d]
			r /= grid[d]
		}
		raw := make([]byte, unit.volume()*size)
		copyBox(memory{data: raw, origin: b.lo, stride: contiguous(unit)}, src, b, size)
		enc, err := spec.Codecs.Encode(new(codec.Scratch), nil, raw)
		if err != nil {
			t.Fatal(err)
		}
		c := StoredChunk{Stored: zarr.Stored{Bytes: enc}}
		p := w.Part(index[rank-len(start):])
		if p.Made.Shape != nil {
			lo, n := padded(p.Made.Start, 0), padded(p.Made.Shape, 1)
			c.Made = make([]byte, n.volume()*size)
			made := box{lo: lo}
			for d := range rank {
				made.hi[d] = lo[d] + n[d]
			}
			if len(c.Made) > 0 {
				w.pyramid.shrink(w.pyramid.levels[0].lattice, memory{data: c.Made, origin: lo, stride: contiguous(n)}, src, made)
			}
			checkTaps(t, p, b)
		}
		for _, r := range p.Strips {
			s := make([]int, len(r.Start))
			for d := range s {
				s[d] = r.Start[d] - start[d]
			}
			c.Strips = append(c.Strips, crop(tile, size, shape, s, r.Shape))
		}
		chunks = append(chunks, c)
	}
	return chunks
}

// checkTaps: those of a part take samples of its chunk only.
func checkTaps(t testing.TB, p Part, chunk box) {
	t.Helper()
	for d, taps := range p.Taps {
		if n := p.Made.Shape[d]; taps.Lo != nil && (len(taps.Lo) != n || len(taps.Hi) != n || len(taps.W0) != n || len(taps.W1) != n) {
			t.Errorf("axis %d: %d taps for %d samples", d, len(taps.Lo), n)
		}
		d5 := rank - len(p.Taps) + d
		for i := range taps.Lo {
			if int(taps.Lo[i]) < chunk.lo[d5] || int(taps.Hi[i]) >= chunk.hi[d5] {
				t.Errorf("axis %d: taps %d and %d, the chunk has %d to %d", d, taps.Lo[i], taps.Hi[i], chunk.lo[d5], chunk.hi[d5])
			}
		}
	}
}

// Tiles whose chunks come encoded and halved make the same image as others, among which
// they may be.
func TestStoredTilesEqualModel(t *testing.T) {
	trials := 500
	if race.Enabled() || testing.Short() {
		trials = 100
	}
	for seed := range trials {
		rng := rand.New(rand.NewPCG(uint64(seed), 23))
		c := randomTrial(rng)
		if seed%2 == 0 {
			c.spec.Codecs = codec.Chain{codec.LZ4(1)}
		}
		if seed%4 == 1 { // no seams
			for d := range c.spec.Shape {
				c.spec.Shape[d] += c.spec.Shape[d] % 2
				c.spec.Chunks[d] += c.spec.Chunks[d] % 2
				c.tile[d] = c.spec.Chunks[d]
				if c.spec.Shard != nil {
					c.spec.Shard[d] = 2 * c.spec.Chunks[d]
				}
			}
		}
		var turn atomic.Int64
		c.write = func(w *Writer, start, shape []int, tile []byte) error {
			if seed%3 == 0 && turn.Add(1)%2 == 0 {
				return w.WriteTile(t.Context(), start, shape, tile)
			}
			chunks := chunksOf(t, w, &c.spec, start, shape, tile)
			for _, k := range chunks {
				if seed%4 == 1 && len(k.Strips) > 0 {
					t.Error("strips, though there are no seams")
				}
			}
			return w.StoreTile(t.Context(), start, shape, chunks)
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
}

func TestStoredTilesAreChecked(t *testing.T) {
	spec := smallSpec()
	start, shape := []int{4, 0, 0}, []int{4, 8, 16}
	tile := make([]byte, 4*8*16*2)
	write := func(f func(w *Writer, chunks []StoredChunk) error) error {
		w, err := Create(t.Context(), store.Memory(), "", spec)
		if err != nil {
			t.Fatal(err)
		}
		defer w.Abort()
		return f(w, chunksOf(t, w, &spec, start, shape, tile))
	}
	store1 := func(w *Writer, chunks []StoredChunk) error { return w.StoreTile(t.Context(), start, shape, chunks) }
	if err := write(store1); err != nil {
		t.Fatal(err)
	}
	for what, f := range map[string]func(w *Writer, c []StoredChunk) error{
		"chunks": func(w *Writer, c []StoredChunk) error { return store1(w, c[1:]) },
		"level 1": func(w *Writer, c []StoredChunk) error {
			c[1].Made = c[1].Made[1:]
			return store1(w, c)
		},
		"strips": func(w *Writer, c []StoredChunk) error {
			c[1].Strips = nil
			return store1(w, c)
		},
		"strip": func(w *Writer, c []StoredChunk) error {
			c[1].Strips[0] = c[1].Strips[0][1:]
			return store1(w, c)
		},
		"twice": func(w *Writer, c []StoredChunk) error {
			if err := store1(w, c); err != nil {
				return nil
			}
			return store1(w, c)
		},
		"whole chunks": func(w *Writer, c []StoredChunk) error {
			return w.StoreTile(t.Context(), start, []int{4, 8, 14}, c)
		},
		"stored form": func(w *Writer, c []StoredChunk) error {
			c[0].Stored = zarr.Stored{Bytes: tile[:100]}
			return store1(w, c)
		},
	} {
		if err := write(f); err == nil {
			t.Errorf("%s: no error", what)
		}
	}
	// one that fails ends the writing
	bad := errors.New("bad")
	err := write(func(w *Writer, c []StoredChunk) error {
		c[0].Stored = zarr.Stored{Size: 512, Write: func(store.PendingObject, int64) error { return bad }}
		if err := store1(w, c); !errors.Is(err, bad) {
			t.Errorf("a chunk that could not be written: %v", err)
		}
		return store1(w, c)
	})
	if err == nil || !strings.Contains(err.Error(), "earlier") {
		t.Errorf("a tile after one that failed: %v", err)
	}
}
