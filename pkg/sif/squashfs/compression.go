package squashfs

import (
	"bytes"
	"io"

	"github.com/klauspost/compress/zlib"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
)

var compressions = map[uint16]string{1: "gzip", 2: "lzma", 3: "lzo", 4: "xz", 5: "lz4", 6: "zstd"}

// decompressor unpacks src into dst, which is as long as the result may be, and returns the length of the
// result.
type decompressor func(dst, src []byte) (int, error)

func newDecompressor(id uint16) (decompressor, error) {
	switch compressions[id] {
	case "gzip":
		return func(dst, src []byte) (int, error) {
			z, err := zlib.NewReader(bytes.NewReader(src))
			if err != nil {
				return 0, err
			}
			return readAll(dst, z)
		}, nil
	case "lz4":
		return func(dst, src []byte) (int, error) { return lz4.UncompressBlock(src, dst) }, nil
	case "zstd":
		d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(4*maxBlockSize))
		return func(dst, src []byte) (int, error) {
			out, err := d.DecodeAll(src, dst[:0])
			if err == nil && len(out) > len(dst) {
				return 0, bad("a block unpacks to %d bytes, more than %d", len(out), len(dst))
			}
			return copy(dst, out), err
		}, err
	case "":
		return nil, bad("unknown compression %d", id)
	}
	return nil, bad("its compression %s is not one of gzip, lz4, zstd", compressions[id])
}

// readAll reads r to its end, which must come within dst.
func readAll(dst []byte, r io.Reader) (int, error) {
	n, err := io.ReadFull(r, dst)
	switch err {
	case io.EOF, io.ErrUnexpectedEOF:
		return n, nil
	case nil:
		if k, err := r.Read(make([]byte, 1)); k > 0 {
			return 0, bad("a block unpacks to more than %d bytes", len(dst))
		} else if err != nil && err != io.EOF {
			return 0, err
		}
	}
	return n, err
}
