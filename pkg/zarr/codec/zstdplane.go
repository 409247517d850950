package codec

import (
	"bytes"
	"encoding/binary"
	"math"

	"github.com/klauspost/compress/huff0"
)

// Byte planes. After a byte shuffle, a stream holds one byte of every element:
// the exponents, or the low bits of the mantissa. Most planes of measured data
// are noise of some entropy in which nothing repeats but by chance. Searching
// them for matches costs most of the time of Zstandard and gains nothing over
// coding the bytes by their frequency alone, so here each plane gets the
// cheaper of both where it does as well. The result is a Zstandard frame like
// any other.

const (
	zstdBlockMax = 128 << 10 // the most that a block decodes to (RFC 8878, 3.1.1.2)

	// planeReview is after how many blocks a plane is tried both ways again.
	planeReview = 8
	// planeMin is the length below which a plane is not worth the trial.
	planeMin = 1 << 10
)

// planeState remembers, while one chunk is encoded, what suits a plane.
type planeState struct {
	seen    int  // blocks since the start
	matches bool // matches pay
}

// encodePlane appends a frame that holds src, at most zstdBlockMax bytes, to dst.
func (z *zstdScratch) encodePlane(plane *planeState, set zstdSetting, dst, src []byte) ([]byte, error) {
	if len(src) < planeMin || len(src) > zstdBlockMax {
		return z.encode(set, dst, src)
	}
	if bytes.Equal(src[1:], src[:len(src)-1]) {
		return appendBlockHeader(appendFrameHeader(dst, len(src)), zstdRLE, len(src), src[0]), nil
	}
	review := plane.seen%planeReview == 0
	plane.seen++
	if !review && plane.matches {
		return z.encode(set, dst, src)
	}
	if !review && set.level <= 1 && looksRandom(src) {
		return nil, nil
	}
	entropy := len(src) // bytes that coding by frequency needs
	z.huffman.Reuse = huff0.ReusePolicyNone
	coded, _, err := huff0.Compress4X(src, &z.huffman)
	if err == nil {
		entropy = len(coded)
	}
	if review {
		out, err := z.encode(set, dst, src)
		if err != nil {
			return nil, err
		}
		// the fastest level gives up a little size for much speed
		worth := 0
		if set.level <= 1 {
			worth = len(src) / 64
		}
		plane.matches = len(out)+worth < entropy
		if plane.matches || len(out) < entropy {
			return out, nil
		}
	}
	if entropy >= len(src) {
		return nil, nil // does not shrink
	}
	dst = appendFrameHeader(dst, len(src))
	// a compressed block: literals in four Huffman streams, both sizes in 18
	// bits, then no sequences
	literals := 2 | 3<<2 | uint64(len(src))<<4 | uint64(len(coded))<<22
	dst = appendBlockHeader(dst, zstdCompressed, 5+len(coded)+1)
	dst = append(dst, byte(literals), byte(literals>>8), byte(literals>>16), byte(literals>>24), byte(literals>>32))
	return append(append(dst, coded...), 0), nil
}

// looksRandom reports whether the frequencies of a sample of src's bytes leave
// less than about one hundredth to gain.
func looksRandom(src []byte) bool {
	const piece, pieces = 128, 64
	stride := len(src) / pieces
	if stride < 2*piece {
		return false
	}
	var count [2][256]uint16 // two, so that equal neighbours do not wait for each other
	for k := range pieces {
		p := src[k*stride : k*stride+piece]
		for i := 0; i < piece; i += 2 {
			count[0][p[i]]++
			count[1][p[i+1]]++
		}
	}
	const n = piece * pieces
	bits := 0.0
	for i := range 256 {
		if c := float64(count[0][i] + count[1][i]); c > 0 {
			bits += c * math.Log2(n/c)
		}
	}
	// a sample of random bytes is missing about 255/(2n ln 2) bits a byte
	return (bits+184)/n > 7.92
}

// block types of Zstandard
const (
	zstdRaw = iota
	zstdRLE
	zstdCompressed
)

// appendFrameHeader begins a frame of one segment that states its size.
func appendFrameHeader(dst []byte, size int) []byte {
	const sizeIn4Bytes, singleSegment = 2 << 6, 1 << 5
	dst = append(dst, zstdMagic...)
	return binary.LittleEndian.AppendUint32(append(dst, sizeIn4Bytes|singleSegment), uint32(size))
}

// appendBlockHeader begins the last block of a frame.
func appendBlockHeader(dst []byte, kind, size int, content ...byte) []byte {
	h := 1 | kind<<1 | size<<3
	return append(append(dst, byte(h), byte(h>>8), byte(h>>16)), content...)
}

const zstdMagic = "\x28\xb5\x2f\xfd"
