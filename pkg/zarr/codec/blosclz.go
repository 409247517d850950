package codec

import (
	"context"
	"fmt"
)

// BloscLZ is the compressor that Blosc brings along, a descendant of FastLZ. A
// stream is a sequence of instructions, each beginning with a control byte c:
//
//	c < 32: c+1 literal bytes follow. The first instruction is always one of
//	        these; its upper three bits are ignored.
//	else:   a match. Its length is (c>>5)+2, and if c>>5 is 7, the bytes that
//	        follow are added up to and including the first that is not 255.
//	        Its distance is (c&31)<<8 plus the next byte, plus 1. If both are
//	        at their greatest (0x1fff), the distance is 0x2000 plus the next two
//	        bytes, most significant first.
const (
	bloscLZMaxLiteral = 32
	bloscLZFar        = 31<<8 | 255
)

// decodeBloscLZ decodes a stream to dst and returns its length. It gives up when ctx ends.
func decodeBloscLZ(ctx context.Context, dst, src []byte) (int, error) {
	if len(src) == 0 {
		return 0, errShort(0)
	}
	control := int(src[0]) & 31
	n, at, look := 0, 1, 0
	for {
		if n >= look {
			if err := ctx.Err(); err != nil {
				return 0, err
			}
			look = n + pieceElements
		}
		if control < bloscLZMaxLiteral {
			length := control + 1
			if length > len(src)-at {
				return 0, errShort(len(src))
			}
			if length > len(dst)-n {
				return 0, errTooLong(len(dst))
			}
			copy(dst[n:n+length], src[at:])
			n, at = n+length, at+length
		} else {
			length, distance := control>>5+2, control&31<<8
			if length == 9 {
				for more := byte(255); more == 255; at++ {
					if at == len(src) {
						return 0, errShort(at)
					}
					more = src[at]
					length += int(more)
				}
			}
			if at == len(src) {
				return 0, errShort(at)
			}
			distance |= int(src[at])
			at++
			if distance == bloscLZFar {
				if len(src)-at < 2 {
					return 0, errShort(len(src))
				}
				distance += int(src[at])<<8 | int(src[at+1])
				at += 2
			}
			distance++
			if distance > n {
				return 0, fmt.Errorf("match before byte %d of the stream reaches %d bytes back, there are %d", at, distance, n)
			}
			if length > len(dst)-n {
				return 0, errTooLong(len(dst))
			}
			copyMatch(dst[:n+length], n, distance)
			n += length
		}
		if at == len(src) {
			return n, nil
		}
		control = int(src[at])
		at++
	}
}

// copyMatch fills dst from byte n with the bytes that lie distance before. A match longer than its distance
// repeats itself; each copy doubles the amount that can be copied at once.
func copyMatch(dst []byte, n, distance int) {
	from := n - distance
	for n < len(dst) {
		n += copy(dst[n:], dst[from:n])
	}
}
