package kernels

import (
	"fmt"

	"strata/pkg/gpu"
)

// Brick locates planes of rows in device memory: row y of plane z begins z·Stride + y·Pitch bytes behind the
// beginning of At.
type Brick struct {
	At            gpu.Span
	Pitch, Stride int64
}

// CopyBox queues the copy of planes of rows of the given number of bytes from src to dst, which must not
// overlap.
func CopyBox(s *gpu.Stream, dst, src Brick, planes, rows int, bytes int64) error {
	// elements as large as all of it divides into
	n := int64(16)
	for (bytes|dst.Pitch|dst.Stride|src.Pitch|src.Stride|int64(dst.At.Address()|src.At.Address()))%n != 0 {
		n /= 2
	}
	nx := int(bytes / n)
	return queue(s, "box", fmt.Sprintf("copy_box_%d", n), threads(planes, rows, nx),
		src.At, dst.At, int32(planes), int32(rows), int32(nx), src.Pitch/n, src.Stride/n, dst.Pitch/n, dst.Stride/n)
}
