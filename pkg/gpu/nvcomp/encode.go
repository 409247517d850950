package nvcomp

import (
	"fmt"

	"strata/pkg/gpu"
)

// Encode queues the encoding of a batch. The result of a piece lies at the beginning of its Dst, which must
// have room for [Library.Bound] of the longest Src; once the stream has been waited for, lengths holds the
// encoded lengths. Src must be aligned ([Library.EncodeAlignment]). It takes memory like [Library.Decode].
func (l *Library) Encode(s *gpu.Stream, f Format, batch []Piece, lengths []int64) error {
	_, most := f.most()
	var largest, total int64
	for _, p := range batch {
		if err := fits(p, f, l.EncodeAlignment(f), p.Src.Bytes(), most); err != nil {
			return err
		}
		largest = max(largest, p.Src.Bytes())
		total += p.Src.Bytes()
	}
	bound, err := l.Bound(f, largest)
	if err != nil {
		return err
	}
	for _, p := range batch {
		if p.Dst.Bytes() < bound {
			return &PieceError{p.Name, f, fmt.Errorf("room for %d bytes, needed is %d", p.Dst.Bytes(), bound)}
		}
	}
	run := func(t *table, from, n int, temp gpu.Span) {
		s.Queue(func(handle uintptr) error {
			return check("nvcompBatched"+f.String()+"CompressAsync", l.encode[f].Encode(
				t.column(srcAddress, from), t.column(srcBytes, from), uint64(largest), uint64(n), temp.Address(), uint64(temp.Bytes()),
				t.column(dstAddress, from), t.column(gotBytes, from), encodeOptions, t.column(statuses, from), handle))
		})
	}
	temp := func(n int) (int64, error) { return l.EncodeTemp(s.Device(), f, n, largest, total) }
	return queue(s, batch, temp, run, func(i int, got int64) error {
		if p := batch[i]; got <= 0 || got > p.Dst.Bytes() {
			return fmt.Errorf("encodes to %d bytes, there is room for %d", got, p.Dst.Bytes())
		}
		lengths[i] = got
		return nil
	}, f)
}

// EncodeTemp returns the device memory that Encode needs, like [Library.DecodeTemp].
func (l *Library) EncodeTemp(d *gpu.Device, f Format, n int, largest, total int64) (int64, error) {
	return temp(d, "nvcompBatched"+f.String()+"CompressGetTempSize", n, largest, total, func(n, largest, total uint64, b *uint64) status {
		return l.encode[f].TempSize(n, largest, encodeOptions, b, total, 0)
	})
}

// Bound returns the maximum length of n encoded bytes. n is at most 16 MiB.
func (l *Library) Bound(f Format, n int64) (int64, error) {
	if _, most := f.most(); n > most {
		return 0, fmt.Errorf("%s: %d bytes, nvCOMP takes at most %d", f, n, most)
	}
	var b uint64
	err := check("nvcompBatched"+f.String()+"CompressGetMaxOutputChunkSize", l.encode[f].Bound(uint64(n), encodeOptions, &b))
	return int64(b), err
}
