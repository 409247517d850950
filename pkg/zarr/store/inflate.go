package store

import (
	"bytes"
	"compress/flate"
	"errors"
	"io"
	"sync"
)

var flateReaders = sync.Pool{New: func() any { return flate.NewReader(nil) }}

// inflateRaw decodes a DEFLATE stream (RFC 1951) into dst and returns the number
// of bytes; a stream that holds more than len(dst) is an error.
func inflateRaw(dst, src []byte) (int, error) {
	r := flateReaders.Get().(io.ReadCloser)
	defer flateReaders.Put(r)
	if err := r.(flate.Resetter).Reset(bytes.NewReader(src), nil); err != nil {
		return 0, err
	}
	n, err := io.ReadFull(r, dst)
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		// ReadFull says this at the stream's end, and where the stream is cut
		if k, e := r.Read(make([]byte, 1)); k != 0 || e != io.EOF {
			return n, io.ErrUnexpectedEOF
		}
		return n, nil
	}
	if err != nil {
		return n, err
	}
	var one [1]byte
	switch k, err := io.ReadFull(r, one[:]); {
	case k > 0:
		return n, errors.New("more data than announced")
	case err != io.EOF:
		return n, err
	}
	return n, nil
}
