package unxz

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"math"

	"github.com/ulikunitz/xz/lzma"

	"strata/pkg/zarr/codec/internal/fill"
)

// dictionary returns the size of dictionary that suffices for n bytes of output.
func dictionary(claim int64, n int) int {
	return int(max(min(claim, int64(n)), lzma.MinDictCap))
}

// LZMA1 decodes an LZMA stream by the values of its header (properties, dictionary size, decoded size) and
// returns the number of bytes written to dst; a size of 2^64-1 means that the stream has an end mark.
func LZMA1(ctx context.Context, dst, src []byte, props byte, dict int64, size uint64) (int, error) {
	if size != math.MaxUint64 && size > uint64(len(dst)) {
		return 0, fmt.Errorf("size %d: %w", size, fill.TooLong(len(dst)))
	}
	header := []byte{props, 12: 0}
	binary.LittleEndian.PutUint32(header[1:], uint32(dictionary(dict, len(dst))))
	binary.LittleEndian.PutUint64(header[5:], size)
	r, err := lzma.ReaderConfig{}.NewReader(io.MultiReader(bytes.NewReader(header), bytes.NewReader(src)))
	if err != nil {
		return 0, err
	}
	n, err := fill.From(ctx, dst, r)
	if err != nil {
		return 0, fmt.Errorf("after %d bytes of output: %w", n, err)
	}
	return n, nil
}

// LZMA2 decodes a sequence of LZMA2 chunks to its end and returns the number of bytes written to dst and read
// from src.
func LZMA2(ctx context.Context, dst, src []byte, dict int64) (n, read int, err error) {
	in := bytes.NewReader(src)
	r, err := lzma.Reader2Config{DictCap: dictionary(dict, len(dst))}.NewReader2(in)
	if err != nil {
		return 0, 0, err
	}
	n, err = fill.From(ctx, dst, r)
	read = len(src) - in.Len()
	if err == nil && !r.EOS() {
		err = truncated(read)
	}
	if err != nil {
		return 0, 0, fmt.Errorf("after %d bytes of output: %w", n, err)
	}
	return n, read, nil
}

// Undelta undoes the byte-wise delta filter of .xz, in place.
func Undelta(b []byte, distance int) {
	for i := distance; i < len(b); i++ {
		b[i] += b[i-distance]
	}
}
