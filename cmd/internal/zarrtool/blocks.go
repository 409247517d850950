package zarrtool

import (
	"context"
	"fmt"
	"iter"
	"math"

	"strata/pkg/cli"
	"strata/pkg/dtype"
	"strata/pkg/mem"
	"strata/pkg/work"
	"strata/pkg/zarr"
)

// bytesOf returns the size of a region's elements, or an error if it exceeds the address space.
func bytesOf(shape []int, elem int) (int, error) {
	n := elem
	for _, s := range shape {
		if s > 0 && n > math.MaxInt/s {
			return 0, fmt.Errorf("shape %v is too large to read", shape)
		}
		n *= s
	}
	return n, nil
}

// eachBlock reads an array block by block in parallel and passes each to f, from several goroutines and in no
// order. Blocks are multiples of unit, enlarged to whole chunks of a if memory allows, so that chunks are decoded
// once. The elements of a block have the axes in the given order, the slowest first; nil stands for that of the array.
func eachBlock(ctx context.Context, a *zarr.Array, order, unit []int, threads int, budget int64, f func(ctx context.Context, r zarr.Region, data []byte) error) error {
	block := append([]int{}, unit...)
	chunks := a.Chunks()
	for d := len(block) - 1; d >= 0; d-- {
		was := block[d]
		if n := (chunks[d] + unit[d] - 1) / unit[d]; n > 1 {
			block[d] = n * unit[d]
		}
		if blockBytes(a, block) > budget/int64(threads) {
			block[d] = was
		}
	}
	a = a.With(zarr.Workers(1))
	return inBlocks(ctx, a, block, threads, budget, func(ctx context.Context, r zarr.Region, buf []byte) error {
		if order == nil {
			if err := a.Read(ctx, r, buf); err != nil {
				return err
			}
			return f(ctx, r, buf)
		}
		strides, n := make([]int, len(order)), a.DType().Size()
		for i := len(order) - 1; i >= 0; i-- {
			strides[order[i]] = n
			n *= r.Shape[order[i]]
		}
		if err := a.ReadStrided(ctx, r, buf, strides); err != nil {
			return err
		}
		return f(ctx, r, buf)
	})
}

// eachRegion calls f for each chunk's region, with a buffer to read it into.
func eachRegion(ctx context.Context, a *zarr.Array, threads int, budget int64, f func(ctx context.Context, r zarr.Region, buf []byte) error) error {
	return inBlocks(ctx, a, a.Chunks(), threads, budget, f)
}

// blockBytes returns the size of a block of an array, clipped to its shape.
func blockBytes(a *zarr.Array, block []int) int64 {
	n := int64(a.DType().Size())
	for d, s := range a.Shape() {
		n = satMul(n, int64(min(block[d], max(s, 1))))
	}
	return n
}

// mostBlocks is the number of blocks above which a shape is considered corrupt: visiting them alone would take a
// day.
const mostBlocks = 1 << 36

// inBlocks divides an array into blocks and processes as many of them in parallel as threads and memory allow.
func inBlocks(ctx context.Context, a *zarr.Array, block []int, threads int, budget int64, f func(ctx context.Context, r zarr.Region, buf []byte) error) error {
	shape, size := a.Shape(), blockBytes(a, block)
	if size > budget {
		return cli.MemoryError("%s: blocks of %v elements need %d MiB of buffers, --mem grants %d MiB", a.Location(), block, size>>20+1, budget>>20)
	}
	grid, total := make([]int, len(block)), int64(1)
	for d := range grid {
		if shape[d] > 0 {
			grid[d] = 1 + (shape[d]-1)/block[d]
		}
		total = satMul(total, int64(grid[d]))
	}
	if total > mostBlocks {
		return cli.BadInputf("%s: shape %v has %.3g blocks of %v: at most %.3g can be read", a.Location(), shape, float64(total), block, float64(mostBlocks))
	}
	workers := int(min(int64(threads), budget/max(size+a.ScratchBytes(false), 1)))
	return work.Share(ctx, workers, int(total), func(ctx context.Context, _ int, blocks iter.Seq[int]) error {
		buf, err := mem.Alloc(int(size))
		if err != nil {
			return err
		}
		defer mem.Free(buf)
		for i := range blocks {
			r := zarr.Region{Start: make([]int, len(block)), Shape: make([]int, len(block))}
			n := a.DType().Size()
			for d := len(block) - 1; d >= 0; d-- {
				r.Start[d] = i % grid[d] * block[d]
				r.Shape[d] = min(block[d], shape[d]-r.Start[d])
				i /= grid[d]
				n *= r.Shape[d]
			}
			if err := f(ctx, r, buf[:n]); err != nil {
				return err
			}
		}
		return nil
	})
}

// converted returns data of an array as elements of type t, in new memory if the type differs.
func converted(data []byte, a *zarr.Array, t dtype.Type) ([]byte, error) {
	if t == a.DType() {
		return data, nil
	}
	out := make([]byte, len(data)/a.DType().Size()*t.Size())
	if err := dtype.Convert(out, t, data, a.DType()); err != nil {
		return nil, fmt.Errorf("%s: %w", a.Location(), err)
	}
	return out, nil
}

func satMul(a, b int64) int64 {
	if b > 0 && a > math.MaxInt64/b {
		return math.MaxInt64
	}
	return a * b
}
