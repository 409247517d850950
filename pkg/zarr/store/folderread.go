//go:build unix

package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"

	"strata/pkg/mem"
)

// Reading selects how a [FolderStore] reads its files.
type Reading int

// Ways to read. Direct reads neither evict other files from the page cache nor leave anything in it. A mapped
// file that becomes shorter gives ErrChanged.
const (
	ReadCached Reading = iota // through the page cache
	ReadDirect                // past the page cache (O_DIRECT)
	ReadMapped                // by mapping files into memory
)

// ErrNoDirect is returned if the file system or the operating system has no direct I/O.
var ErrNoDirect = errors.New("the file system has no direct I/O")

// ReadBy sets how files are read; the default is ReadCached.
func ReadBy(how Reading) FolderOption { return func(s *FolderStore) { s.reading = how } }

// With returns a store of the same folder with further options.
func (s *FolderStore) With(opts ...FolderOption) *FolderStore {
	c := *s
	for _, o := range opts {
		o(&c)
	}
	return &c
}

// openToRead opens a regular file in the store's way of reading.
func (s *FolderStore) openToRead(path string) (fd int, size int64, err error) {
	if s.reading != ReadDirect {
		return openRegular(path, 0)
	}
	if openDirect == 0 {
		return -1, 0, fmt.Errorf("%s: %w", path, ErrNoDirect)
	}
	fd, size, err = openRegular(path, openDirect)
	if errors.Is(err, unix.EINVAL) {
		// also what a folder gives
		if fd, _, err = openRegular(path, 0); err == nil {
			closeFD(fd)
			err = fmt.Errorf("%s: %w", path, ErrNoDirect)
		}
		return -1, 0, err
	}
	return fd, size, err
}

// read fills p from offset off of a file of size bytes. It returns fewer bytes without an error only at the
// end of the file.
func (s *FolderStore) read(ctx context.Context, fd int, size int64, p []byte, off int64) (int, error) {
	switch s.reading {
	case ReadDirect:
		return preadDirect(ctx, fd, p, off)
	case ReadMapped:
		m, err := mapFile(fd, size)
		if err != nil {
			return 0, err
		}
		defer m.close()
		return m.read(ctx, p, off)
	}
	return pread(ctx, fd, p, off)
}

const (
	directAlign = 4096    // of places, lengths and memory: what every device is content with
	directPiece = 1 << 20 // that is read at a time
)

// directBuffers are pieces of aligned memory.
var directBuffers = sync.Pool{New: func() any {
	b := make([]byte, directPiece+directAlign)
	skip := -int(uintptr(unsafe.Pointer(unsafe.SliceData(b)))) & (directAlign - 1)
	b = b[skip : skip+directPiece]
	return &b
}}

// preadDirect reads like pread from a file that is open for direct I/O.
func preadDirect(ctx context.Context, fd int, p []byte, off int64) (int, error) {
	buffer := directBuffers.Get().(*[]byte)
	defer directBuffers.Put(buffer)
	done := 0
	for done < len(p) {
		at := off + int64(done)
		skip := int(at % directAlign)
		want := (skip + len(p) - done + directAlign - 1) / directAlign * directAlign
		b := (*buffer)[:min(want, directPiece)]
		n, err := pread(ctx, fd, b, at-int64(skip))
		if err != nil {
			return done, err
		}
		done += copy(p[done:], b[min(skip, n):n])
		if n < len(b) {
			return done, nil // the file's end
		}
	}
	return done, nil
}

// mapping is a file mapped into memory.
type mapping struct{ data []byte }

func mapFile(fd int, size int64) (*mapping, error) {
	if size == 0 {
		return &mapping{}, nil
	}
	data, err := unix.Mmap(fd, 0, int(size), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("map: %w", err)
	}
	return &mapping{data: data}, nil
}

// read reads like pread from the mapping.
func (m *mapping) read(ctx context.Context, p []byte, off int64) (int, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	if off >= int64(len(m.data)) {
		return 0, nil
	}
	n, ok := mem.CopyMapped(p, m.data[off:])
	if !ok {
		return 0, fmt.Errorf("%w: it became shorter, or cannot be read: %w", ErrChanged, io.ErrUnexpectedEOF)
	}
	return n, nil
}

func (m *mapping) close() {
	if m != nil && m.data != nil {
		_ = unix.Munmap(m.data) // it was mapped
		m.data = nil
	}
}
