package codec

import (
	"errors"
	"fmt"

	"strata/pkg/dtype"
)

// packBits is numcodecs' filter that packs eight booleans into a byte, the
// first in the most significant bit, behind a byte with the number of unused
// bits at the end.
type packBits struct{ described }

func parsePackBits(c *config, elem dtype.Type) Codec {
	if elem.Size() != 1 {
		c.fail("elements are %s (must be bool)", elem)
	}
	return &packBits{described{"packbits", map[string]any{}}}
}

// Types returns bool and uint8.
func (*packBits) Types() (decoded, encoded dtype.Type) { return dtype.Bool, dtype.Uint8 }

func (*packBits) EncodedSize(n int) (lo, hi int) {
	n = 1 + n/8 + (n%8+7)/8
	return n, n
}

func (*packBits) Decode(s *Scratch, dst, src []byte) (int, error) {
	if len(src) == 0 {
		return 0, errShort(0)
	}
	unused, packed := int(src[0]), src[1:]
	if unused > 7 || unused > 8*len(packed) {
		return 0, fmt.Errorf("%d unused bits at byte 0 (must be 0 to 7, and not more than there are)", unused)
	}
	n := 8*len(packed) - unused
	if n > len(dst) {
		return 0, errTooLong(len(dst))
	}
	for i := range dst[:n] {
		if err := s.pause(i); err != nil {
			return 0, err
		}
		dst[i] = packed[i/8] >> (7 - i%8) & 1
	}
	return n, nil
}

func (*packBits) Encode(_ *Scratch, dst, src []byte) ([]byte, error) {
	n := (len(src) + 7) / 8
	dst = room(&dst, 1+n)
	clear(dst)
	dst[0] = byte(8*n - len(src))
	for i, v := range src {
		if v > 1 {
			return nil, errors.New("elements must be booleans (0 or 1)")
		}
		dst[1+i/8] |= v << (7 - i%8)
	}
	return dst, nil
}
