package tilecodec

import (
	"context"
)

// packBitsPiece is the number of bytes of src decoded between two checks of the context: at most 32 MiB of
// output, for fills.
const packBitsPiece = 512 << 10

// decodePackBits decodes src (TIFF 6.0, section 9) to dst and returns the number of bytes. It ends when dst is full or
// at the end of src; a run that src or dst has only a part of is cut.
func decodePackBits(ctx context.Context, dst, src []byte) (n int, err error) {
	look := len(src)
	for len(src) > 1 && n < len(dst) {
		if len(src) <= look {
			if err := ctx.Err(); err != nil {
				return n, err
			}
			look = len(src) - packBitsPiece
		}
		head := int(int8(src[0]))
		switch {
		case head >= 0:
			run := src[1:min(head+2, len(src))]
			// Most runs are short, and there is room for 16 bytes: a register does for them.
			if len(run) <= 16 && len(src) > 16 && len(dst)-n >= 16 {
				*(*[16]byte)(dst[n:]) = *(*[16]byte)(src[1:])
				n += len(run)
			} else {
				n += copy(dst[n:], run)
			}
			src = src[1+len(run):]
		case head == -128: // stands for nothing
			src = src[1:]
		default:
			run := dst[n:min(n+1-head, len(dst))]
			v := src[1]
			for i := range run {
				run[i] = v
			}
			n += len(run)
			src = src[2:]
		}
	}
	return n, nil
}

// appendPackBits encodes src and appends the result to dst. As TIFF 6.0 requires, it encodes each row of row bytes
// separately.
func appendPackBits(dst, src []byte, row int) []byte {
	for len(src) > 0 {
		dst = appendPackBitsRow(dst, src[:min(row, len(src))])
		src = src[min(row, len(src)):]
	}
	return dst
}

const packBitsRun = 128 // bytes of a run at most

// appendPackBitsRow makes a fill of three equal bytes and more, and of two where no literal run is interrupted.
func appendPackBitsRow(dst, src []byte) []byte {
	literals := 0 // bytes before at that belong to no run yet
	for at := 0; at < len(src); {
		n := equal(src[at:min(at+packBitsRun, len(src))])
		if n > 2 || n == 2 && literals == 0 {
			dst = appendLiterals(dst, src[at-literals:at])
			dst = append(dst, byte(1-n), src[at])
			literals = 0
		} else {
			literals += n
		}
		at += n
	}
	return appendLiterals(dst, src[len(src)-literals:])
}

// equal returns how many leading bytes of b are the same.
func equal(b []byte) int {
	n := 1
	for n < len(b) && b[n] == b[0] {
		n++
	}
	return n
}

func appendLiterals(dst, run []byte) []byte {
	for len(run) > 0 {
		n := min(len(run), packBitsRun)
		dst = append(dst, byte(n-1))
		dst = append(dst, run[:n]...)
		run = run[n:]
	}
	return dst
}
