package stack

import (
	"context"
	"time"

	"strata/pkg/dtype"
	"strata/pkg/filter"
	"strata/pkg/mem"
	"strata/pkg/meter"
	"strata/pkg/oct"
	"strata/pkg/oct/machine"
	"strata/pkg/work"
	"strata/pkg/zarr"
)

// crew runs tasks on a fixed number of workers, each with memory of its own.
type crew struct {
	workers int
	own     []workMemory
}

// workMemory is the memory of a worker.
type workMemory struct{ growing }

func newCrew(workers int) *crew {
	return &crew{max(workers, 1), make([]workMemory, max(workers, 1))}
}

// close gives the workers' memory back.
func (c *crew) close() {
	for i := range c.own {
		c.own[i].free()
	}
}

// each calls f for 0 to n−1, in increasing order of their beginning, on at most
// limit workers, of which the caller is one.
func (c *crew) each(ctx context.Context, n, limit int, f func(w *workMemory, i int) error) error {
	return work.Each(ctx, min(c.workers, limit), n, func(worker, i int) error { return f(&c.own[worker], i) })
}

// growing is scratch memory outside the Go heap.
type growing struct{ b []byte }

// get returns n bytes of undefined content, valid until the next get.
func (g *growing) get(n int) ([]byte, error) {
	if len(g.b) < n {
		g.free()
		var err error
		if g.b, err = mem.Alloc(n); err != nil {
			return nil, err
		}
	}
	return g.b[:n], nil
}

func (g *growing) free() {
	mem.Free(g.b)
	g.b = nil
}

// read reads a box of a slice as float32, chunk column by chunk column, on at
// most limit workers: to says where voxels (z, y, x) of the slice and those after
// it in the row go. Where it is asked to, it counts the voxels that are not finite.
func (c *crew) read(ctx context.Context, s *stackSlice, start, shape [3]int, limit int, res *oct.Resources, count bool, to func(z, y, x int) []float32) error {
	cy, cx := s.chunk[1], s.chunk[2]
	y0, x0 := start[1]/cy, start[2]/cx
	y1, x1 := start[1]+shape[1], start[2]+shape[2]
	ny, nx := (y1+cy-1)/cy-y0, (x1+cx-1)/cx-x0
	return c.each(ctx, ny*nx, limit, func(w *workMemory, i int) error {
		lo := [3]int{start[0], max(start[1], (y0+i/nx)*cy), max(start[2], (x0+i%nx)*cx)}
		n := [3]int{shape[0], min(y1, (y0+i/nx+1)*cy) - lo[1], min(x1, (x0+i%nx+1)*cx) - lo[2]}
		row := n[2] * s.dtype.Size()
		return s.readPlanes(ctx, lo, n, &w.growing, func(first int, b []byte) error {
			begin := time.Now()
			if count {
				res.Meter.AddNonFinite(s.nonFinite(b))
			}
			for z := lo[0] + first; len(b) > 0; z++ {
				for y := range n[1] {
					v := to(z, lo[1]+y, lo[2])[:n[2]]
					if s.dtype == dtype.Float32 {
						copy(dtype.Bytes(v), b)
					} else {
						dtype.ConvertSlice(v, b[:row], s.dtype)
					}
					b = b[row:]
				}
			}
			res.Meter.Since(meter.Compute, begin)
			return nil
		})
	})
}

// nonFinite is how many voxels of those that b holds are NaN or infinite.
func (s *stackSlice) nonFinite(b []byte) int64 {
	switch s.dtype {
	case dtype.Float32:
		return filter.CountNonFinite(dtype.Slice[float32](b))
	case dtype.Float64:
		return filter.CountNonFinite(dtype.Slice[float64](b))
	}
	return 0
}

// piece is how many planes of a chunk column are read at a time, at most.
func (s *stackSlice) piece() int {
	n := s.chunk[0]
	if len(s.array.Codecs()) == 0 || s.blocks {
		n = min(n, max(1, machine.PlanesPiece/(s.chunk[1]*s.chunk[2]*s.dtype.Size())))
	}
	return n
}

// readerBytes is the memory that readPlanes takes: its buffer, and what decoding
// takes.
func (s *stackSlice) readerBytes() int64 {
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

// readPlanes hands over the planes of a box that lies in one column of chunks, in
// increasing order, one or more at a time, in C order as they are stored: the
// first of them with its number in the box. They are the taker's until it returns.
// Chunks that are decoded in blocks are handed over as they are decoded, while
// they are in the cache.
func (s *stackSlice) readPlanes(ctx context.Context, start, shape [3]int, scratch *growing, take func(first int, planes []byte) error) error {
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
			if err := unreadable(s.array.ReadPlanes(ctx, region, b, func(first int, planes []byte) error { return take(at+first, planes) })); err != nil {
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
		if err := unreadable(s.array.Read(ctx, region, b)); err != nil {
			return err
		}
		if err := take(at, b[skip*plane:]); err != nil {
			return err
		}
		at += n
	}
	return nil
}
