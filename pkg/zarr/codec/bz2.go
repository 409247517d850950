package codec

import (
	"bytes"
	"compress/bzip2"
	"errors"
	"fmt"

	"strata/pkg/dtype"
	"strata/pkg/mem"
	"strata/pkg/zarr/codec/internal/fill"
)

// bz2Codec reads bzip2 streams. There is no encoder: nothing about bzip2
// recommends it for new arrays.
type bz2Codec struct{ described }

func parseBZ2(c *config, _ dtype.Type) Codec {
	return &bz2Codec{described{"bz2", map[string]any{"level": c.setting("level", 1, 9, 1)}}}
}

// EncodedSize: bzip2's manual promises at most 1 % and 600 bytes more.
func (b *bz2Codec) EncodedSize(n int) (lo, hi int) { return 14, mem.Sum(n, n/64, 4096) }

// Decode reads one or several streams and verifies their checksums. A stream
// needs 4 MiB to work in, whatever it claims.
func (b *bz2Codec) Decode(s *Scratch, dst, src []byte) (int, error) {
	n, err := fill.From(s.context(), dst, bzip2.NewReader(bytes.NewReader(src)))
	if errors.Is(err, fill.ErrTooLong) {
		return 0, errTooLong(len(dst))
	}
	if err != nil {
		return 0, fmt.Errorf("after %d bytes of output: %w", n, err)
	}
	return n, nil
}

func (b *bz2Codec) readOnly() error {
	return fmt.Errorf("bz2 %w (zstd is faster and smaller)", ErrReadOnly)
}

func (b *bz2Codec) Encode(*Scratch, []byte, []byte) ([]byte, error) { return nil, b.readOnly() }
