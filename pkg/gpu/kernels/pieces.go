package kernels

import (
	"encoding/binary"
	"fmt"

	"strata/pkg/gpu"
)

// Range is a range of device memory to copy: from Src to Dst, of the same length.
type Range struct{ Dst, Src gpu.Span }

// CopyPieces queues the copying of ranges, which do not overlap, in one call. Until the stream has been
// waited for it holds page-locked and device memory of 24 bytes per range.
func CopyPieces(s *gpu.Stream, ranges []Range) error {
	if len(ranges) == 0 {
		return nil
	}
	host, err := s.Device().Host(24 * len(ranges))
	if err != nil {
		return err
	}
	s.After(host.Release)
	table, err := s.Device().Memory().Get(int64(24 * len(ranges)))
	if err != nil {
		return err
	}
	s.Release(table)
	var longest, total int64
	for i, r := range ranges {
		if r.Src.Bytes() != r.Dst.Bytes() {
			return fmt.Errorf("%d bytes to be copied to %d", r.Src.Bytes(), r.Dst.Bytes())
		}
		row := host.B[24*i:]
		binary.LittleEndian.PutUint64(row, r.Src.Address()-table.Address())
		binary.LittleEndian.PutUint64(row[8:], r.Dst.Address()-table.Address())
		binary.LittleEndian.PutUint64(row[16:], uint64(r.Src.Bytes()))
		longest = max(longest, r.Src.Bytes())
		total += r.Src.Bytes()
	}
	s.Upload(table.Span, host.B)
	g := blocks(max(1, min(longest/16, 2*total/int64(16*len(ranges)))))
	g.grid[1] = upTo(len(ranges))
	return queue(s, "pieces", "copy_pieces", g, table, table, int64(len(ranges)))
}
