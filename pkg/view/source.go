package view

import (
	"context"
	"encoding/binary"
	"fmt"

	"strata/pkg/dtype"
	"strata/pkg/ngff"
	"strata/pkg/ngff/spatial"
	"strata/pkg/work"
	"strata/pkg/zarr"
)

// source reads boxes of voxels from an open image.
type source struct {
	image  *ngff.Image
	levels []spatial.Level
	sizes  []int // of the dimensions besides z, y, x
	stored dtype.Type
	served dtype.Type
	number int // distinguishes the keys of several images
	blocks *blocks
	whole  int64 // maximum bytes of a cached chunk
	budget int64 // memory for decoding besides the chunk

	objects *objects
}

// box is a box of voxels of a level.
type box struct {
	level        int
	start, shape [3]int
	others       []int // index along each of the other dimensions
}

// servedType returns the type in which a browser gets elements of type t: one for which JavaScript has typed
// arrays.
func servedType(t dtype.Type) dtype.Type {
	switch t {
	case dtype.Bool:
		return dtype.Uint8
	case dtype.Uint8, dtype.Int8, dtype.Uint16, dtype.Int16, dtype.Uint32, dtype.Int32, dtype.Float32:
		return t
	}
	return dtype.Float32
}

func newSource(im *ngff.Image, number int, b *blocks, whole, budget int64) (*source, error) {
	levels, err := spatial.Levels(im)
	if err != nil {
		return nil, err
	}
	s := &source{image: im, levels: levels, stored: im.DType(), served: servedType(im.DType()), number: number, blocks: b, whole: whole, budget: budget}
	for _, d := range levels[0].Others {
		s.sizes = append(s.sizes, levels[0].Array.Shape()[d])
	}
	return s, nil
}

// read fills dst with the voxels of a box in stored form, strides[d] bytes apart along z, y and x.
func (s *source) read(ctx context.Context, b box, dst []byte, strides [3]int) error {
	l := &s.levels[b.level]
	var lo, hi [3]int // chunks
	for d := range 3 {
		lo[d], hi[d] = b.start[d]/l.Chunk[d], (b.start[d]+b.shape[d]-1)/l.Chunk[d]
	}
	if s.chunkBytes(l) > s.whole {
		return s.direct(ctx, b, dst, strides)
	}
	for z := lo[0]; z <= hi[0]; z++ {
		for y := lo[1]; y <= hi[1]; y++ {
			for x := lo[2]; x <= hi[2]; x++ {
				if err := s.part(ctx, b, [3]int{z, y, x}, dst, strides); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// chunkBytes returns the size of a decoded chunk; beyond s.whole it may be too small.
func (s *source) chunkBytes(l *spatial.Level) int64 {
	n := int64(s.stored.Size())
	for _, c := range l.Array.Chunks() {
		if n *= int64(c); n > s.whole {
			return n
		}
	}
	return n
}

// direct reads a box of an array whose chunks are too large to be cached.
func (s *source) direct(ctx context.Context, b box, dst []byte, strides [3]int) error {
	l := &s.levels[b.level]
	all := make([]int, len(l.Array.Shape()))
	for i, d := range l.Axes {
		if d >= 0 {
			all[d] = strides[i]
		}
	}
	a := l.Array.With(zarr.Workers(1), zarr.Budget(s.budget))
	return work.Guard(func() error { return a.ReadStrided(ctx, l.Region(b.start, b.shape, b.others), dst, all) })
}

// part copies the part of a box that lies in one chunk.
func (s *source) part(ctx context.Context, b box, chunk [3]int, dst []byte, strides [3]int) error {
	l := &s.levels[b.level]
	r, size := s.chunk(l, chunk, b.others)
	elem := s.stored.Size()
	k, err := s.blocks.get(ctx, s.key(b.level, r), size*elem, elem, func(ctx context.Context, buf []byte) error {
		a := l.Array.With(zarr.Workers(1), zarr.Budget(s.budget))
		return a.ReadStrided(ctx, r, buf, blockStrides(l, r, elem))
	})
	if err != nil {
		return err
	}
	defer s.blocks.put(k)
	from := blockStrides(l, r, elem)
	if k.single {
		clear(from)
	}
	var src [3]int
	at := 0
	for i, d := range l.Others {
		at += (b.others[i] - r.Start[d]) * from[d]
	}
	to := 0
	n := [3]int{1, 1, 1}
	for i, d := range l.Axes {
		if d < 0 {
			continue
		}
		src[i] = from[d]
		first := max(b.start[i], r.Start[d])
		n[i] = min(b.start[i]+b.shape[i], r.Start[d]+r.Shape[d]) - first
		at += (first - r.Start[d]) * from[d]
		to += (first - b.start[i]) * strides[i]
	}
	copyBox(dst[to:], strides, k.data[at:], src, n, elem)
	return nil
}

// chunk returns the region of a chunk and its number of elements.
func (s *source) chunk(l *spatial.Level, chunk [3]int, others []int) (r zarr.Region, size int) {
	shape, chunks := l.Array.Shape(), l.Array.Chunks()
	r = zarr.Region{Start: make([]int, len(shape)), Shape: make([]int, len(shape))}
	for i, d := range l.Axes {
		if d >= 0 {
			r.Start[d] = chunk[i] * chunks[d]
		}
	}
	for i, d := range l.Others {
		r.Start[d] = others[i] / chunks[d] * chunks[d]
	}
	size = 1
	for d := range shape {
		r.Shape[d] = min(chunks[d], shape[d]-r.Start[d])
		size *= r.Shape[d]
	}
	return r, size
}

// key returns the cache key of a chunk.
func (s *source) key(level int, r zarr.Region) string {
	k := binary.AppendUvarint(nil, uint64(s.number))
	k = binary.AppendUvarint(k, uint64(level))
	for _, i := range r.Start {
		k = binary.AppendUvarint(k, uint64(i))
	}
	return string(k)
}

// blockStrides returns the strides of a block in memory: the other dimensions slowest, then z, y, x.
func blockStrides(l *spatial.Level, r zarr.Region, elem int) []int {
	strides := make([]int, len(r.Shape))
	step := elem
	for i := 2; i >= 0; i-- {
		if d := l.Axes[i]; d >= 0 {
			strides[d] = step
			step *= r.Shape[d]
		}
	}
	for _, d := range l.Others {
		strides[d] = step
		step *= r.Shape[d]
	}
	return strides
}

// copyBox copies n elements along each axis; strides are in bytes.
func copyBox(dst []byte, to [3]int, src []byte, from, n [3]int, elem int) {
	for z := range n[0] {
		for y := range n[1] {
			d, s := z*to[0]+y*to[1], z*from[0]+y*from[1]
			if to[2] == elem && from[2] == elem {
				copy(dst[d:d+n[2]*elem], src[s:])
				continue
			}
			for range n[2] {
				copy(dst[d:d+elem], src[s:])
				d, s = d+to[2], s+from[2]
			}
		}
	}
}

// convert converts stored elements to the served type.
func (s *source) convert(b []byte) ([]byte, error) {
	if s.stored == s.served || s.stored == dtype.Bool {
		return b, nil
	}
	out := make([]byte, len(b)/s.stored.Size()*s.served.Size())
	return out, dtype.Convert(out, s.served, b, s.stored)
}

// checkOthers returns an error for invalid indices along the other dimensions.
func (s *source) checkOthers(others []int) error {
	if len(others) != len(s.sizes) {
		return badRequest("other has %d indices, the image has %d dimensions besides z, y, x", len(others), len(s.sizes))
	}
	for i, n := range s.sizes {
		if others[i] < 0 || others[i] >= n {
			return badRequest("other: index %d along %s: want 0 to %d", others[i], s.image.Axes[s.levels[0].Others[i]].Name, n-1)
		}
	}
	return nil
}

// checkLevel returns an error for a level that the image does not have.
func (s *source) checkLevel(n int) error {
	if n < 0 || n >= len(s.levels) {
		return badRequest("level %d: want 0 to %d", n, len(s.levels)-1)
	}
	return nil
}

// requestError is an error caused by an invalid request.
type requestError struct{ error }

func badRequest(format string, args ...any) error { return requestError{fmt.Errorf(format, args...)} }
