package czi

import (
	"context"
	"errors"
	"fmt"
	"io"
)

// Source reads the file that holds a CZI. Objects of package store are sources. ReadAt is safe for concurrent
// use.
type Source interface {
	ReadAt(ctx context.Context, p []byte, off int64) (int, error)
	Size() int64
}

// read fills p from offset off of the file.
func (f *File) read(ctx context.Context, p []byte, off int64) error {
	if size := f.src.Size(); off < 0 || off > size || int64(len(p)) > size-off {
		return fmt.Errorf("%w: bytes %d to %d of %d", errOutside, off, off+int64(len(p)), size)
	}
	n, err := f.src.ReadAt(ctx, p, off)
	if n == len(p) {
		return nil
	}
	if err == nil || errors.Is(err, io.EOF) {
		return fmt.Errorf("got %d of %d bytes at %d: %w", n, len(p), off, io.ErrUnexpectedEOF)
	}
	return err
}

var errOutside = errors.New("lies outside the file")
