package kernels

import (
	"strata/pkg/dtype"
	"strata/pkg/gpu"
)

// blockSize is the number of threads of a block.
const blockSize = 256

// shape is the grid of a launch, in blocks, and the threads of a block.
type shape struct{ grid, block gpu.Dim }

// queue queues a kernel of a file of this folder.
func queue(s *gpu.Stream, file, name string, g shape, args ...any) error {
	k, err := get(s.Device(), file, name)
	if err == nil {
		s.Launch(k, g.grid, g.block, args...)
	}
	return err
}

// queueTyped queues the kernel of an operator for elements of type t.
func queueTyped(s *gpu.Stream, file, operator string, t dtype.Type, g shape, args ...any) error {
	k, err := typed(s, file, operator, t)
	if err == nil {
		s.Launch(k, g.grid, g.block, args...)
	}
	return err
}

// bit returns a flag as kernels take it.
func bit(set bool) int32 {
	if set {
		return 1
	}
	return 0
}

// blocks returns a grid with a thread for each of n elements, and at least one block.
func blocks(n int64) shape {
	return shape{gpu.Dim{max(1, int((n+blockSize-1)/blockSize)), 1, 1}, gpu.Dim{blockSize, 1, 1}}
}

// few returns a grid for kernels whose threads process several elements each. Its blocks are small, so that few of them
// still spread over the device.
func few(n int64, each int) shape {
	const size = 64
	each *= size
	return shape{gpu.Dim{max(1, int((n+int64(each)-1)/int64(each))), 1, 1}, gpu.Dim{size, 1, 1}}
}

// countBlocks limits the number of blocks that count, since each adds its counts to the total at its end.
const countBlocks = 4096

// counting is [blocks] of a kernel that counts.
func counting(n int64) shape {
	g := blocks(n)
	g.grid[0] = min(g.grid[0], countBlocks)
	return g
}

// mostBlocks is the maximum number of blocks of a grid along y and along z. Kernels with such a grid continue
// with the rows and planes beyond its end.
const mostBlocks = 65535

// threads returns a grid of threads for the elements of a volume: blocks are as long as rows or blockSize,
// and span several rows if these are short.
func threads(nz, ny, nx int) shape {
	w := 1
	for w < nx && w < blockSize {
		w *= 2
	}
	h := blockSize / w
	return shape{gpu.Dim{max(1, (nx+w-1)/w), upTo((ny + h - 1) / h), upTo(nz)}, gpu.Dim{w, h, 1}}
}

// line returns a grid for a pass along the middle axis of an array (outer, n, inner): see line.cuh.
func line(outer int64, n int, inner int64) shape {
	if inner == 1 {
		return threads(1, int(outer), n)
	}
	return threads(int(outer), n, int(inner))
}

// upTo returns the number of blocks along y or z for n rows or planes of blocks, within the limits of a grid.
func upTo(n int) int { return max(1, min(n, mostBlocks)) }

// bring copies a table to the device of s and waits for the copy to end.
func bring(s *gpu.Stream, table []byte) (*gpu.Buffer, error) {
	host, err := s.Device().Host(len(table))
	if err != nil {
		return nil, err
	}
	defer host.Release()
	copy(host.B, table)
	buffer, err := s.Device().Memory().Get(int64(len(table)))
	if err != nil {
		return nil, err
	}
	s.Upload(buffer.Span, host.B)
	if err := s.Wait(); err != nil {
		buffer.Release()
		return nil, err
	}
	return buffer, nil
}
