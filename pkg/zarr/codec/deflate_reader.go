package codec

import (
	"bytes"
	"io"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zlib"
)

// inflateStream decodes through a stream reader.
func inflateStream(wrapper string, dst, src []byte) (int, error) {
	var r io.Reader
	var err error
	if wrapper == "gzip" {
		r, err = gzip.NewReader(bytes.NewReader(src))
	} else {
		r, err = zlib.NewReader(bytes.NewReader(src))
	}
	if err != nil {
		return 0, err
	}
	n, err := io.ReadFull(r, dst)
	if err == io.EOF || err == io.ErrUnexpectedEOF && n < len(dst) {
		return n, nil
	}
	if err != nil {
		return 0, err
	}
	if k, err := io.ReadFull(r, make([]byte, 1)); k > 0 {
		return 0, errTooLong(len(dst))
	} else if err != io.EOF {
		return 0, err
	}
	return n, nil
}
