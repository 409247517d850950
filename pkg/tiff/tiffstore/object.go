package tiffstore

import (
	"context"
	"errors"
	"fmt"
	"io"

	"strata/pkg/zarr/store"
)

// part is a chunk that is a part of the file. Where the file has fewer bytes than a chunk, as of
// the last strip of an image, those behind them are 0.
type part struct {
	file  store.Object
	name  string // of the file
	off   int64
	whole int64 // bytes in the file
	size  int64 // of the chunk
	where func() string
}

func (o *part) Size() int64  { return o.size }
func (o *part) Close() error { return nil } // the file is the store's

// ReadAt reads a part of the chunk.
func (o *part) ReadAt(ctx context.Context, p []byte, off int64) (int, error) {
	if off < 0 {
		return 0, fmt.Errorf("%s: negative offset %d", o.where(), off)
	}
	end := false
	if rest := max(o.size-off, 0); int64(len(p)) > rest {
		p, end = p[:rest], true
	}
	n := 0
	if stored := min(int64(len(p)), o.whole-off); stored > 0 {
		var err error
		if n, err = o.file.ReadAt(ctx, p[:stored], o.off+off); int64(n) < stored {
			if err == nil || errors.Is(err, io.EOF) {
				err = store.ErrChanged
			}
			return n, fmt.Errorf("%s: %w", o.where(), err)
		}
	}
	clear(p[n:])
	if end {
		return len(p), io.EOF
	}
	return len(p), nil
}

// filePart is a part of a local file as it lies there, for readers with ways of their own.
type filePart struct {
	*part
	local store.FileObject
	path  string
}

var (
	_ store.NamedFile = (*filePart)(nil)
	_ store.RowReader = (*filePart)(nil)
)

// File returns the file's descriptor and where in it the chunk begins.
func (o *filePart) File() (fd uintptr, off int64) {
	fd, off = o.local.File()
	return fd, off + o.off
}

// Path returns the file's path and where in it the chunk begins.
func (o *filePart) Path() (path string, off int64) { return o.path, o.off }

// ReadRows reads as the file is read.
func (o *filePart) ReadRows(ctx context.Context, dst []byte, rows store.Rows, off int64) (int, error) {
	return store.ReadRows(ctx, o.file, o, store.Range{Offset: o.off, Size: o.whole}, dst, rows, off)
}
