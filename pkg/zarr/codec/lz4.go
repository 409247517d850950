package codec

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/pierrec/lz4/v4"

	"strata/pkg/dtype"
	"strata/pkg/mem"
	"strata/pkg/zarr/codec/enlz4"
)

// lz4Codec is numcodecs' LZ4: the decoded size in 4 bytes, little-endian, then
// one block of the LZ4 block format.
type lz4Codec struct {
	described
	acceleration int
}

// lz4MaxSize is the most that an LZ4 block can hold (LZ4_MAX_INPUT_SIZE).
const lz4MaxSize = 0x7e000000

// LZ4 returns a codec that compresses to an LZ4 block preceded by its size. Acceleration starts at 1; each
// step is faster and makes larger blocks.
func LZ4(acceleration int) Codec {
	return &lz4Codec{described{"lz4", map[string]any{"acceleration": acceleration}}, acceleration}
}

func parseLZ4(c *config, _ dtype.Type) Codec {
	return LZ4(c.setting("acceleration", math.MinInt32, math.MaxInt32, 1))
}

// EncodedSize: the bound of an LZ4 block (LZ4_COMPRESSBOUND), behind 4 bytes.
func (l *lz4Codec) EncodedSize(n int) (lo, hi int) { return 5, mem.Sum(n, n/255, 16+4) }

func (l *lz4Codec) Decode(s *Scratch, dst, src []byte) (int, error) {
	if len(src) < 5 {
		return 0, errShort(len(src))
	}
	n := int(int32(binary.LittleEndian.Uint32(src)))
	if n < 0 {
		return 0, fmt.Errorf("size %d at byte 0: %w", n, errNegative)
	}
	if n > len(dst) {
		return 0, fmt.Errorf("size %d at byte 0: %w", n, errTooLong(len(dst)))
	}
	if err := lz4Block(s.context(), dst[:n], src[4:]); err != nil {
		return 0, fmt.Errorf("block at byte 4: %w", err)
	}
	return n, nil
}

func (l *lz4Codec) Encode(s *Scratch, dst, src []byte) ([]byte, error) {
	if len(src) > lz4MaxSize {
		return nil, fmt.Errorf("chunk of %d bytes (LZ4 holds at most %d)", len(src), lz4MaxSize)
	}
	_, hi := l.EncodedSize(len(src))
	if cap(dst) < hi {
		dst = make([]byte, hi)
	}
	dst = dst[:hi]
	binary.LittleEndian.PutUint32(dst, uint32(len(src)))
	return dst[:4+s.lz4.fast.Encode(dst[4:], src, l.acceleration)], nil
}

// lz4Long is the length from which a block is decoded by a loop that looks at the context.
const lz4Long = 16 << 20

// lz4Block decodes a block that fills dst exactly. It gives up when ctx ends.
func lz4Block(ctx context.Context, dst, src []byte) error {
	if len(dst) == 0 {
		// an empty block is one token without literals
		if len(src) != 1 || src[0] != 0 {
			return errTooLong(0)
		}
		return nil
	}
	n, err := 0, errors.ErrUnsupported
	if len(dst) < lz4Long {
		n, err = lz4.UncompressBlock(src, dst)
	}
	if err != nil { // the other decoder refuses a block whose last token has the length of a match, as nvCOMP writes it
		n, err = decodeLZ4(ctx, dst, src)
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		return fmt.Errorf("malformed, or more than the expected %d bytes", len(dst))
	}
	if n != len(dst) {
		return fmt.Errorf("decodes to %d bytes, want %d", n, len(dst))
	}
	return nil
}

// decodeLZ4 decodes a block to dst and returns its length: sequences of a token with two lengths, literals, and the
// distance of a match. The last ends behind its literals, whatever match its token has, or with its match.
func decodeLZ4(ctx context.Context, dst, src []byte) (int, error) {
	n, at, look := 0, 0, 0
	// length is one of the token, continued in the bytes that follow if it is 15
	length := func(l int) (int, error) {
		for more := byte(255); l >= 15 && more == 255; at++ {
			if at == len(src) {
				return 0, errShort(at)
			}
			more = src[at]
			l += int(more)
		}
		return l, nil
	}
	for {
		if n >= look {
			if err := ctx.Err(); err != nil {
				return 0, err
			}
			look = n + pieceElements
		}
		if at == len(src) {
			if at == 0 {
				return 0, errShort(0)
			}
			return n, nil
		}
		token := int(src[at])
		at++
		literals, err := length(token >> 4)
		if err != nil || literals > len(src)-at {
			return 0, errShort(len(src))
		}
		if literals > len(dst)-n {
			return 0, errTooLong(len(dst))
		}
		n += copy(dst[n:], src[at:at+literals])
		if at += literals; at == len(src) {
			return n, nil
		}
		if len(src)-at < 2 {
			return 0, errShort(len(src))
		}
		distance := int(binary.LittleEndian.Uint16(src[at:]))
		at += 2
		match, err := length(token & 15)
		if match += 4; err != nil || distance == 0 || distance > n {
			return 0, fmt.Errorf("match before byte %d reaches %d bytes back, there are %d", at, distance, n)
		}
		if match > len(dst)-n {
			return 0, errTooLong(len(dst))
		}
		copyMatch(dst[:n+match], n, distance)
		n += match
	}
}

// lz4Scratch has the hash tables of the encoders.
type lz4Scratch struct {
	fast enlz4.Encoder
	hc   *lz4.CompressorHC
}

// encodeHC compresses src to dst by the high compression encoder, at level 1 to 9. It returns 0 when that
// does not fit.
func (l *lz4Scratch) encodeHC(dst, src []byte, level int) (int, error) {
	if l.hc == nil {
		l.hc = new(lz4.CompressorHC)
	}
	l.hc.Level = lz4.CompressionLevel(1 << (8 + level)) // lz4.Level1 … Level9
	n, err := l.hc.CompressBlock(src, dst)
	if errors.Is(err, lz4.ErrInvalidSourceShortBuffer) {
		return 0, nil
	}
	return n, err
}
