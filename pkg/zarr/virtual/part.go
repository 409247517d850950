package virtual

import (
	"context"
	"errors"
	"fmt"
	"io"

	"strata/pkg/zarr/store"
)

// Part is a chunk whose bytes are a range of a file. If the range is shorter than the chunk, as for the last strip of a
// TIFF image, the remaining bytes are 0.
type Part struct {
	In     store.Object // the file
	Off    int64
	Stored int64         // bytes in the file
	Bytes  int64         // of the chunk
	Where  func() string // the chunk's location, for messages
}

// Size returns the length of the chunk.
func (o *Part) Size() int64 { return o.Bytes }

// Close does nothing: the file is the store's.
func (o *Part) Close() error { return nil }

// ReadAt reads a part of the chunk.
func (o *Part) ReadAt(ctx context.Context, p []byte, off int64) (int, error) {
	if off < 0 {
		return 0, fmt.Errorf("%s: negative offset %d", o.Where(), off)
	}
	end := false
	if rest := max(o.Bytes-off, 0); int64(len(p)) > rest {
		p, end = p[:rest], true
	}
	n := 0
	if stored := min(int64(len(p)), o.Stored-off); stored > 0 {
		var err error
		if n, err = o.In.ReadAt(ctx, p[:stored], o.Off+off); int64(n) < stored {
			if err == nil || errors.Is(err, io.EOF) {
				err = store.ErrChanged
			}
			return n, fmt.Errorf("%s: %w", o.Where(), err)
		}
	}
	clear(p[n:])
	if end {
		return len(p), io.EOF
	}
	return len(p), nil
}

// FilePart is a Part of a local file, for readers that access the file's descriptor themselves.
type FilePart struct {
	*Part
	Local store.FileObject
}

// File returns the file's descriptor and where in it the chunk begins.
func (o *FilePart) File() (fd uintptr, off int64) {
	fd, off = o.Local.File()
	return fd, off + o.Off
}
