package codec

import "encoding/binary"

// fletcher32Sum returns the Fletcher checksum that HDF5 and numcodecs append: two sums of big-endian words of
// 16 bits, each folded to one's complement, so that only data without a bit set has the sum 0. A last odd
// byte is the high half of a word.
func fletcher32Sum(b []byte) uint32 {
	const most = 360 // words until the second sum could overflow
	fold := func(s uint32) uint32 { return s&0xffff + s>>16 }
	var one, two uint32
	for len(b) > 1 {
		block := b[:min(len(b)&^1, 2*most)]
		b = b[len(block):]
		for ; len(block) > 0; block = block[2:] {
			one += uint32(binary.BigEndian.Uint16(block))
			two += one
		}
		one, two = fold(one), fold(two)
	}
	if len(b) == 1 {
		one += uint32(b[0]) << 8
		two += one
		one, two = fold(one), fold(two)
	}
	return fold(two)<<16 | fold(one)
}

// Fletcher32 returns numcodecs' filter that appends HDF5's Fletcher checksum.
func Fletcher32() Codec { return &checksumCodec{"fletcher32", fletcher32Sum, nil, false} }
