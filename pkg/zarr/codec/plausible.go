package codec

import (
	"encoding/binary"
	"fmt"

	"github.com/klauspost/compress/zstd"
)

// Plausible inspects the beginning of src, a chunk encoded elsewhere, and returns an error if it cannot
// decode to n bytes. It does not decode, so that damage further on goes unnoticed.
func (c Chain) Plausible(src []byte, n int) error {
	if len(c) == 0 {
		if len(src) != n {
			return fmt.Errorf("%d bytes, want %d", len(src), n)
		}
		return nil
	}
	p, ok := c[len(c)-1].(interface{ plausible(src []byte, n int) error })
	if !ok || len(c) > 1 {
		return nil
	}
	if err := p.plausible(src, n); err != nil {
		return fmt.Errorf("%s: %w", c[0].Name(), err)
	}
	return nil
}

func (b *bloscCodec) plausible(src []byte, n int) error {
	f, err := openBlosc(src, n)
	if err == nil && len(f.src) != len(src) {
		err = fmt.Errorf("encoded size %d at byte 12, there are %d bytes", len(f.src), len(src))
	}
	return err
}

func (l *lz4Codec) plausible(src []byte, n int) error {
	if len(src) < 5 {
		return errShort(len(src))
	}
	if got := int64(binary.LittleEndian.Uint32(src)); got != int64(n) {
		return fmt.Errorf("size %d at byte 0, want %d", got, n)
	}
	return nil
}

// plausible checks the first of possibly several frames.
func (z *zstdCodec) plausible(src []byte, n int) error {
	var h zstd.Header
	if err := h.Decode(src); err != nil {
		return fmt.Errorf("at byte 0: %w", err)
	}
	if h.HasFCS && h.FrameContentSize > uint64(n) {
		return fmt.Errorf("a frame of %d bytes, want %d", h.FrameContentSize, n)
	}
	return nil
}
