package filelayer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"sync"

	"strata/pkg/work"
)

// Source reads data by parts: an object on a server, opened by strata/pkg/zarr/store.OpenFile, or a [Map].
// Its methods may be called concurrently.
type Source interface {
	// Size returns the number of bytes.
	Size() int64
	// ReadAt fills p from offset off. Fewer bytes come with an error, which is [io.EOF] at the end.
	ReadAt(ctx context.Context, p []byte, off int64) (n int, err error)
	// Close releases the source. All reads must have ended.
	Close() error
}

// OpenSource makes a file of a source. It is read like other files into host and device memory, always
// through the host. name is used in messages. Closing the file closes the source. Each thread of the pool,
// and each caller of [File.ReadAt], reads parts of up to 1 MiB at once, so that a remote server is not asked
// for every task.
func (p *Pool) OpenSource(name string, s Source) (*File, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, &fs.PathError{Op: "open", Path: name, Err: errClosedPool}
	}
	p.files++
	return &File{pool: p, path: name, source: s}, nil
}

// Size returns the size of the file in bytes.
func (f *File) Size() (int64, error) {
	if f.source != nil {
		return f.source.Size(), nil
	}
	info, err := f.file.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// errSource explains why an operation is impossible on a [Source].
var errSource = errors.New("it is a source that is read in parts, not an open file")

func (f *File) notLocal() error {
	return fmt.Errorf("page cache of %s: %w: %w", f.path, errSource, errors.ErrUnsupported)
}

// sourcePart is the amount requested from a source at a time.
const sourcePart = 1 << 20

// fill fills memory from offset off.
func (f *File) fill(ctx context.Context, b []byte, off int64) error {
	if f.source == nil {
		return f.readFull(b, off)
	}
	return work.Guard(func() error {
		return inParts(b, sourcePart, func(b []byte, at int64) error { return f.fetch(ctx, b, off+at) })
	})
}

// fetch fills memory with a part of a source.
func (f *File) fetch(ctx context.Context, b []byte, off int64) error {
	n, err := f.source.ReadAt(ctx, b, off)
	switch {
	case n == len(b):
		return nil
	case err == io.EOF:
		return &placed{off + int64(n), io.ErrUnexpectedEOF}
	case err == nil:
		err = io.ErrNoProgress
	}
	return &placed{off + int64(n), err}
}

// inParts calls f concurrently with the parts of b, each of at most size bytes, and their offsets in b. It
// returns the error of the first part in order.
func inParts(b []byte, size int, f func(b []byte, at int64) error) error {
	if len(b) <= size {
		return f(b, 0)
	}
	errs := make([]error, (len(b)+size-1)/size)
	var parts sync.WaitGroup
	for i := range errs {
		at := i * size
		work.Go(&parts, func() error { return f(b[at:min(at+size, len(b))], int64(at)) }, func(err error) { errs[i] = err })
	}
	parts.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
