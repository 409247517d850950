package tilecodec

import (
	"encoding/binary"

	"strata/pkg/dtype"
	"strata/pkg/zarr/codec/shuffle"
)

// Values of Format.Predictor (tag 317).
const (
	PredictorNone       = 1
	PredictorHorizontal = 2 // TIFF 6.0, section 14: each sample is stored as its difference from that of the pixel before it
	PredictorFloat      = 3 // TIFF Technical Note 3: bytes of a row by significance, then differences of these
)

// sumMasks are the shuffles of the kernels that make running sums over elements of a size and a stride, both in bytes.
type sumMasks struct {
	order [16]byte    // to native byte order
	steps [4][16]byte // by 1, 2, 4 and 8 strides towards the end
	carry [16]byte    // from the end to the front
	fit   bool        // whether the kernels can do it

	size, stride int // what they are for
	swap         bool
}

// set computes the masks, unless they are current.
func (m *sumMasks) set(size, stride int, swap bool) {
	if m.size == size && m.stride == stride && m.swap == swap {
		return
	}
	*m = sumMasks{size: size, stride: stride, swap: swap, fit: stride <= 16}
	for i := range 16 {
		m.order[i] = byte(i)
		if swap {
			m.order[i] = byte(i ^ (size - 1))
		}
		for k := range m.steps {
			m.steps[k][i] = 0x80 // zero
			if by := stride << k; i >= by {
				m.steps[k][i] = byte(i - by)
			}
		}
		if m.fit {
			m.carry[i] = byte(16 - stride + i%stride)
		}
	}
}

// sumRow undoes horizontal differences: it writes the running sums of the elements of src, a whole number of
// strides, to dst, which may be src. The masks determine size, stride and byte order of the elements.
func sumRow(dst, src []byte, masks *sumMasks) {
	size, stride := masks.size, masks.stride
	at := sumsVector(dst, src, size, masks)
	toNative(dst[at:], src[at:], size, masks.swap)
	at = max(at, stride)
	le := binary.LittleEndian
	switch size {
	case 1:
		for ; at < len(src); at++ {
			dst[at] += dst[at-stride]
		}
	case 2:
		for ; at < len(src); at += 2 {
			le.PutUint16(dst[at:], le.Uint16(dst[at:])+le.Uint16(dst[at-stride:]))
		}
	case 4:
		for ; at < len(src); at += 4 {
			le.PutUint32(dst[at:], le.Uint32(dst[at:])+le.Uint32(dst[at-stride:]))
		}
	case 8:
		for ; at < len(src); at += 8 {
			le.PutUint64(dst[at:], le.Uint64(dst[at:])+le.Uint64(dst[at-stride:]))
		}
	}
}

// differRow inverts sumRow: it writes the differences of the elements of src, in native byte order, to dst,
// in the byte order of the masks.
func differRow(dst, src []byte, masks *sumMasks) {
	size, stride := masks.size, masks.stride
	copy(dst[:min(stride, len(src))], src)
	le := binary.LittleEndian
	switch size {
	case 1:
		for at := stride; at < len(src); at++ {
			dst[at] = src[at] - src[at-stride]
		}
	case 2:
		for at := stride; at < len(src); at += 2 {
			le.PutUint16(dst[at:], le.Uint16(src[at:])-le.Uint16(src[at-stride:]))
		}
	case 4:
		for at := stride; at < len(src); at += 4 {
			le.PutUint32(dst[at:], le.Uint32(src[at:])-le.Uint32(src[at-stride:]))
		}
	case 8:
		for at := stride; at < len(src); at += 8 {
			le.PutUint64(dst[at:], le.Uint64(src[at:])-le.Uint64(src[at-stride:]))
		}
	}
	toNative(dst, dst, size, masks.swap)
}

// toNative writes elements to dst, which may be src, with their bytes the other way round if they are to be swapped.
func toNative(dst, src []byte, size int, swap bool) {
	if swap {
		dtype.SwapBytes(dst, src, size)
	} else if len(src) > 0 && &dst[0] != &src[0] {
		copy(dst, src)
	}
}

// joinRow undoes the predictor of floating point numbers: the bytes of src are differences, of bytes that lie by
// significance, highest first. masks are set for single bytes, with a stride of one for each sample of a pixel. between
// has room for a row; dst may be src.
func joinRow(dst, src, between []byte, size int, masks *sumMasks) {
	sumRow(dst, src, masks)
	shuffle.Unshuffle(between, dst[:len(src)], size)
	dtype.SwapBytes(dst, between[:len(src)], size)
}

// splitRow is the reverse.
func splitRow(dst, src, between []byte, size int, masks *sumMasks) {
	dtype.SwapBytes(dst, src, size)
	shuffle.Shuffle(between, dst[:len(src)], size)
	differRow(dst, between[:len(src)], masks)
}
