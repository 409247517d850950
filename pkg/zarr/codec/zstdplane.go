package codec

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"

	"github.com/klauspost/compress/huff0"
)

// Measured data are noise of some entropy in which nothing repeats but by
// chance: whole elements, and after a byte shuffle most byte planes, the
// exponents as well as the low bits of the mantissa. Searching them for matches
// costs most of the time of Zstandard and gains little or nothing over coding
// the bytes by their frequency alone. So the fastest level, and Blosc for each
// of its planes, try both on a part and take what suits. The result is a
// Zstandard frame like any other.

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
	if constant(src) {
		return append(appendBlockHeader(appendFrameHeader(dst, len(src)), zstdRLE, len(src), true), src[0]), nil
	}
	review := plane.seen%planeReview == 0
	plane.seen++
	if !review && plane.matches {
		return z.encode(set, dst, src)
	}
	if !review && set.level <= 1 && looksRandom(src) {
		return nil, nil
	}
	coded, err := z.code(src)
	if err != nil {
		return nil, err
	}
	entropy := len(src) // bytes that coding by frequency needs
	if coded != nil {
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
	if coded == nil {
		return nil, nil // does not shrink
	}
	return appendLiterals(appendFrameHeader(dst, len(src)), len(src), coded, true), nil
}

// encodeLiterals appends a frame that holds src without matches, if matches
// would gain less than an eighth on a sample of its blocks; else it returns nil.
func (z *zstdScratch) encodeLiterals(set zstdSetting, dst, src []byte) ([]byte, error) {
	blocks := (len(src) + zstdBlockMax - 1) / zstdBlockMax
	if len(src) < 4*planeMin || len(src) > math.MaxUint32 || set.checksum {
		return nil, nil
	}
	block := func(i int) []byte { return src[i*zstdBlockMax : min((i+1)*zstdBlockMax, len(src))] }
	step := max(1, min(blocks/4, 64))
	matched, entropy := 0, 0
	for i := step / 2; i < blocks; i += step {
		out, err := z.encode(set, z.trial, block(i))
		if err != nil {
			return nil, err
		}
		z.trial = out
		matched += len(out)
		coded, err := z.code(block(i))
		switch {
		case err != nil:
			return nil, err
		case constant(block(i)):
		case coded == nil:
			entropy += len(block(i))
		default:
			entropy += len(coded)
		}
	}
	if matched+matched/8 < entropy {
		return nil, nil
	}
	if blocks == 1 {
		dst = appendFrameHeader(dst, len(src))
	} else {
		dst = appendWindowHeader(dst, len(src))
	}
	for i := range blocks {
		b, last := block(i), i == blocks-1
		if constant(b) {
			dst = append(appendBlockHeader(dst, zstdRLE, len(b), last), b[0])
			continue
		}
		var coded []byte
		if !looksRandom(b) {
			var err error
			if coded, err = z.code(b); err != nil {
				return nil, err
			}
		}
		if coded == nil {
			dst = append(appendBlockHeader(dst, zstdRaw, len(b), last), b...)
			continue
		}
		dst = appendLiterals(dst, len(b), coded, last)
	}
	return dst, nil
}

// constant reports whether all bytes of b are the same.
func constant(b []byte) bool { return bytes.Equal(b[1:], b[:len(b)-1]) }

// code returns src coded by frequency, valid until the next call, or nil if
// that does not make it shorter.
func (z *zstdScratch) code(src []byte) ([]byte, error) {
	z.huffman.Reuse = huff0.ReusePolicyNone
	coded, _, err := huff0.Compress4X(src, &z.huffman)
	switch {
	case errors.Is(err, huff0.ErrIncompressible), errors.Is(err, huff0.ErrUseRLE):
		return nil, nil
	case err != nil:
		return nil, err
	}
	return coded, nil
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

// appendWindowHeader begins a frame that states its size and that one block is
// all that has to be remembered of it.
func appendWindowHeader(dst []byte, size int) []byte {
	const sizeIn4Bytes, window = 2 << 6, (17 - 10) << 3 // 2^17 bytes
	dst = append(dst, zstdMagic...)
	return binary.LittleEndian.AppendUint32(append(dst, sizeIn4Bytes, window), uint32(size))
}

// appendBlockHeader begins a block.
func appendBlockHeader(dst []byte, kind, size int, last bool) []byte {
	h := kind<<1 | size<<3
	if last {
		h |= 1
	}
	return append(dst, byte(h), byte(h>>8), byte(h>>16))
}

// appendLiterals appends a compressed block: literals in four Huffman streams,
// both sizes in 18 bits, then no sequences.
func appendLiterals(dst []byte, size int, coded []byte, last bool) []byte {
	dst = appendBlockHeader(dst, zstdCompressed, 5+len(coded)+1, last)
	h := 2 | 3<<2 | uint64(size)<<4 | uint64(len(coded))<<22
	dst = append(dst, byte(h), byte(h>>8), byte(h>>16), byte(h>>24), byte(h>>32))
	return append(append(dst, coded...), 0)
}

const zstdMagic = "\x28\xb5\x2f\xfd"
