package volume

import (
	"context"
	"sync/atomic"

	"strata/pkg/dtype"
	"strata/pkg/oct"
	"strata/pkg/oct/compute/transfer"
	"strata/pkg/zarr"
)

// A Source is a volume (z, y, x) from which boxes are read.
type Source struct {
	path   string
	array  *zarr.Array
	shape  [3]int
	chunk  [3]int
	dtype  dtype.Type
	blocks bool // chunks can be decoded block by block

	told atomic.Int64 // bytes reported as progress, or more
}

// NewSource returns a source for an array of three axes. Messages call it path.
func NewSource(a *zarr.Array, path string) *Source {
	s := &Source{path: path, array: a, dtype: a.DType(), blocks: a.InBlocks()}
	shape, chunk := a.Shape(), a.Chunks()
	for d := range s.shape {
		s.shape[d], s.chunk[d] = shape[d], min(chunk[d], shape[d])
	}
	return s
}

// progress reports n bytes of the source as done, in total at most its size even if some are read twice.
func (s *Source) progress(res *oct.Resources, n int64) {
	before := s.told.Add(n) - n
	if n = min(n, s.bytes()-before); n > 0 {
		res.Done(n)
	}
}

// Finished reports the whole source as done, including planes and rows that were not needed.
func (s *Source) Finished(res *oct.Resources) { s.progress(res, s.bytes()) }

// bytes returns the size of the source's voxels.
func (s *Source) bytes() int64 {
	return int64(s.shape[0]) * int64(s.shape[1]) * int64(s.shape[2]) * int64(s.dtype.Size())
}

// piece returns the maximum number of planes of a chunk column read at a time.
func (s *Source) piece() int {
	n := s.chunk[0]
	if len(s.array.Codecs()) == 0 || s.blocks {
		n = min(n, max(1, transfer.PlanesPiece/(s.chunk[1]*s.chunk[2]*s.dtype.Size())))
	}
	return n
}

// ReaderBytes returns the host memory that one goroutine takes to read the source: its buffer and the decoder's
// memory.
func (s *Source) ReaderBytes() int64 {
	plane := int64(s.chunk[1]) * int64(s.chunk[2]) * int64(s.dtype.Size())
	chunk := int64(s.chunk[0]) * plane
	switch {
	case len(s.array.Codecs()) == 0:
		return int64(s.piece())*plane + 256<<10
	case s.blocks: // half a chunk, or pieces of it; and that encoded, and two blocks
		return max(int64(s.piece())*plane, chunk/2) + chunk + chunk/64 + 2*min(chunk, 2<<20)
	}
	return 3*chunk + chunk/64
}

// readPlanes passes the planes of a box within one column of chunks to take: one or more at a time, in increasing
// order, in C order and stored type, with the index of the first of them in the box. They are valid until take
// returns. Chunks that can be decoded in blocks are passed on as they are decoded, while they are in the cache.
func (s *Source) readPlanes(ctx context.Context, start, shape [3]int, scratch *growing, take func(first int, planes []byte) error) error {
	plane := shape[1] * shape[2] * s.dtype.Size()
	for at := 0; at < shape[0]; {
		z, depth := start[0]+at, s.chunk[0]
		n := min(shape[0]-at, depth-z%depth) // of this chunk
		region := zarr.Region{Start: []int{z, start[1], start[2]}, Shape: []int{n, shape[1], shape[2]}}
		if s.blocks && n > depth/2 {
			b, err := scratch.get(s.piece() * plane)
			if err != nil {
				return err
			}
			if err := oct.Readable(s.array.ReadPlanes(ctx, region, b, func(first int, planes []byte) error { return take(at+first, planes) })); err != nil {
				return err
			}
			at += n
			continue
		}
		skip := 0 // planes that are decoded with others, in place, and not used
		if len(s.array.Codecs()) == 0 {
			n = min(n, s.piece())
		} else if first := z % depth; first > 0 && first <= depth/4 && first+n == min(depth, s.shape[0]-z+first) && shape[1] == s.chunk[1] && shape[2] == s.chunk[2] {
			skip = first
		}
		region.Start[0], region.Shape[0] = z-skip, n+skip
		b, err := scratch.get((n + skip) * plane)
		if err != nil {
			return err
		}
		if err := oct.Readable(s.array.Read(ctx, region, b)); err != nil {
			return err
		}
		if err := take(at, b[skip*plane:]); err != nil {
			return err
		}
		at += n
	}
	return nil
}
