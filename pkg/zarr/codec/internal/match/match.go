// Package match holds what the match finders of several encoders share.
package match

import (
	"encoding/binary"
	"math/bits"
)

// Load32 returns the 4 bytes at i.
func Load32(b []byte, i int) uint32 { return binary.LittleEndian.Uint32(b[i : i+4]) }

// Load64 returns the 8 bytes at i.
func Load64(b []byte, i int) uint64 { return binary.LittleEndian.Uint64(b[i : i+8]) }

// Length returns how many bytes from i and from the earlier position j are equal, up to end.
func Length(src []byte, i, j, end int) int {
	start := i
	for i+8 <= end {
		if x := Load64(src, i) ^ Load64(src, j); x != 0 {
			return i - start + bits.TrailingZeros64(x)>>3
		}
		i += 8
		j += 8
	}
	for i < end && src[i] == src[j] {
		i++
		j++
	}
	return i - start
}
