package volumes

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/klauspost/compress/gzip"

	"strata/pkg/zarr"
	"strata/pkg/zarr/store"
)

// Siblings opens another file of the same folder.
type Siblings func(ctx context.Context, name string) (store.Object, error)

// Reader reads a store's object from an offset on.
func Reader(ctx context.Context, o store.Object, off int64) io.Reader { return &reader{ctx, o, off} }

type reader struct {
	ctx context.Context
	o   store.Object
	off int64
}

func (r *reader) Read(p []byte) (int, error) {
	if r.off >= r.o.Size() {
		return 0, io.EOF
	}
	n, err := r.o.ReadAt(r.ctx, p[:min(int64(len(p)), r.o.Size()-r.off)], r.off)
	r.off += int64(n)
	if n > 0 && errors.Is(err, io.EOF) {
		err = nil
	}
	return n, err
}

// Unpack copies n bytes of what a gzip stream holds, from byte skip of that on, into a file without a name, and returns
// it. It closes the object. where is the file's location in messages.
func Unpack(ctx context.Context, o store.Object, off, skip, n int64, where string) (store.Object, error) {
	defer o.Close()
	f, err := os.CreateTemp("", "strata-volume-*")
	if err != nil {
		return nil, err
	}
	if err := errors.Join(os.Remove(f.Name()), copyUnpacked(ctx, f, o, off, skip, n, where)); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &temporary{f, n}, nil
}

func copyUnpacked(ctx context.Context, f *os.File, o store.Object, off, skip, n int64, where string) error {
	bad := func(at int64, err error) error {
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
			return &zarr.FormatError{Path: where, Err: fmt.Errorf("the compressed data end after %d of %d bytes: the file is cut off", max(at, 0), n)}
		}
		return &zarr.FormatError{Path: where, Err: fmt.Errorf("compressed data: %w", err)}
	}
	z, err := gzip.NewReader(Reader(ctx, o, off))
	if err != nil {
		return bad(0, err)
	}
	defer z.Close()
	if _, err := io.CopyN(io.Discard, z, skip); err != nil {
		return bad(0, err)
	}
	var wrote error
	done, err := io.CopyN(writer(func(p []byte) (int, error) {
		k, err := f.Write(p)
		wrote = err
		return k, err
	}), z, n)
	switch {
	case wrote != nil:
		return fmt.Errorf("%s is unpacked into a temporary file of %d bytes (TMPDIR): %w", where, n, wrote)
	case err != nil:
		return bad(done, err)
	}
	switch k, err := z.Read(make([]byte, 1)); { // the end has the checksum
	case k > 0:
		return &zarr.FormatError{Path: where, Err: fmt.Errorf("more than the %d bytes of voxels that its header says", n)}
	case err != nil && !errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
		return bad(done, err)
	}
	return nil
}

type writer func(p []byte) (int, error)

func (w writer) Write(p []byte) (int, error) { return w(p) }

// temporary is a file without a name.
type temporary struct {
	file *os.File
	size int64
}

// Size returns the file's length.
func (t *temporary) Size() int64 { return t.size }

// Close removes the file.
func (t *temporary) Close() error { return t.file.Close() }

// File returns the file's descriptor.
func (t *temporary) File() (fd uintptr, off int64) { return t.file.Fd(), 0 }

// ReadAt reads a part of the file.
func (t *temporary) ReadAt(ctx context.Context, p []byte, off int64) (int, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	return t.file.ReadAt(p, off)
}
