package kernels

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	"strata/pkg/gpu"
)

// Blocks locates the filtered blocks of decompressed Blosc containers: Count containers of Size bytes, Stride
// bytes apart, each in blocks of Block bytes, of which the last may be shorter.
type Blocks struct {
	Size, Block, Stride int64
	Count               int
}

// Shuffle queues shuffle.Shuffle of every block, for elements of typesize bytes. dst and
// src are not the same.
func Shuffle(s *gpu.Stream, dst, src gpu.Span, b Blocks, typesize int) error {
	return byBlocks(s, dst, src, b, typesize, "reshuffle", "shuffle_", []int{2, 4, 8}, 4)
}

// Unshuffle queues shuffle.Unshuffle of every block, for elements of typesize bytes.
// dst and src are not the same.
func Unshuffle(s *gpu.Stream, dst, src gpu.Span, b Blocks, typesize int) error {
	return byBlocks(s, dst, src, b, typesize, "shuffle", "unshuffle_", []int{2, 4, 8}, 4)
}

// BitUnshuffle queues shuffle.BitUnshuffle of every block, for elements of typesize
// bytes. dst and src are not the same.
func BitUnshuffle(s *gpu.Stream, dst, src gpu.Span, b Blocks, typesize int) error {
	return byBlocks(s, dst, src, b, typesize, "shuffle", "bit_unshuffle_", []int{1, 2, 4, 8}, 8)
}

// byBlocks queues the kernel for the element size, or the general kernel if the size has none.
func byBlocks(s *gpu.Stream, dst, src gpu.Span, b Blocks, typesize int, file, name string, sizes []int, each int64) error {
	if typesize < 1 || b.Block < 1 || b.Block > math.MaxInt32 || b.Size < 0 || b.Count < 0 {
		return fmt.Errorf("blocks of %d bytes of %d, of elements of %d bytes", b.Block, b.Size, typesize)
	}
	if b.Size == 0 || b.Count == 0 {
		return nil
	}
	which := "any"
	if slices.Contains(sizes, typesize) {
		which = strconv.Itoa(typesize)
	}
	g := blocks(max(1, min(b.Block, b.Size)/(each*int64(typesize))))
	g.grid[1] = int(min((b.Size+b.Block-1)/b.Block, mostBlocks))
	g.grid[2] = upTo(b.Count)
	return queue(s, file, name+which, g, src, dst, b.Size, b.Block, int32(typesize), int32(b.Count), b.Stride)
}
