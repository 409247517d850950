//go:build unix

package filelayer

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"sync"

	"golang.org/x/sys/unix"

	"strata/pkg/mem"
)

// Map is a part of a file mapped for reading. Its methods may be called concurrently.
type Map struct {
	path string
	off  int64 // of the first byte in the file

	mu    sync.RWMutex // read-locked while data is used
	whole []byte       // nil: closed, or empty
	data  []byte
	done  bool
}

// OpenMap maps n bytes of a file from offset off; n ≤ 0 means to its end. A range beyond the end of the file
// is an error.
func OpenMap(path string, off, n int64) (*Map, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close() // the mapping stays
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	size := info.Size()
	if n <= 0 {
		n = size - off
	}
	switch {
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("map %s: not a regular file", path)
	case off < 0 || n < 0 || off > size-n:
		return nil, fmt.Errorf("map %s: bytes %d to %d of a file of %d", path, off, off+n, size)
	case n > math.MaxInt-page:
		return nil, fmt.Errorf("map %s: %d bytes do not fit into the address space", path, n)
	}
	m := &Map{path: path, off: off}
	if n == 0 {
		return m, nil
	}
	skip := off % int64(os.Getpagesize())
	if m.whole, err = unix.Mmap(int(f.Fd()), off-skip, int(n+skip), unix.PROT_READ, unix.MAP_SHARED); err != nil {
		return nil, fmt.Errorf("map %s: %w", path, err)
	}
	m.data = m.whole[skip:]
	return m, nil
}

// Size returns the number of mapped bytes.
func (m *Map) Size() int64 { return int64(len(m.data)) }

// ReadAt copies bytes of the mapping from its offset off. A short read returns [io.EOF]. If the file has
// become shorter or cannot be read, the error wraps [io.ErrUnexpectedEOF] and the process does not crash.
func (m *Map) ReadAt(ctx context.Context, dst []byte, off int64) (int, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	m.mu.RLock()
	defer m.mu.RUnlock()
	switch {
	case m.done:
		return 0, fmt.Errorf("read mapping of %s: %w", m.path, fs.ErrClosed)
	case off < 0:
		return 0, fmt.Errorf("read mapping of %s: the position %d is negative", m.path, off)
	case off >= int64(len(m.data)):
		if len(dst) == 0 {
			return 0, nil
		}
		return 0, io.EOF
	}
	n, ok := mem.CopyMapped(dst, m.data[off:])
	switch {
	case !ok:
		return 0, fmt.Errorf("read mapping of %s at byte %d: it became shorter, or cannot be read: %w", m.path, m.off+off, io.ErrUnexpectedEOF)
	case n < len(dst):
		return n, io.EOF
	}
	return n, nil
}

// Prefetch asks the system to read n bytes from offset off of the mapping, without waiting; n ≤ 0 means to
// its end.
func (m *Map) Prefetch(off, n int64) error {
	m.mu.RLock()
	defer m.mu.RUnlock()
	size := int64(len(m.data))
	switch {
	case m.done:
		return fmt.Errorf("read mapping of %s ahead: %w", m.path, fs.ErrClosed)
	case off < 0 || off > size:
		return fmt.Errorf("read mapping of %s ahead: position %d of %d", m.path, off, size)
	}
	if n <= 0 || n > size-off {
		n = size - off
	}
	if n == 0 {
		return nil
	}
	from := int64(len(m.whole)) - size + off
	skip := from % int64(os.Getpagesize())
	if err := unix.Madvise(m.whole[from-skip:from+n], unix.MADV_WILLNEED); err != nil {
		return fmt.Errorf("read mapping of %s ahead: %w", m.path, err)
	}
	return nil
}

// Random tells the system that the mapping is read in random order, so that it does not read ahead.
func (m *Map) Random() error {
	m.mu.RLock()
	defer m.mu.RUnlock()
	switch {
	case m.done:
		return fmt.Errorf("advise on mapping of %s: %w", m.path, fs.ErrClosed)
	case len(m.whole) == 0:
		return nil
	}
	if err := unix.Madvise(m.whole, unix.MADV_RANDOM); err != nil {
		return fmt.Errorf("advise on mapping of %s: %w", m.path, err)
	}
	return nil
}

// Close waits for reads in progress and unmaps the file.
func (m *Map) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.done {
		return fmt.Errorf("close mapping of %s: %w", m.path, fs.ErrClosed)
	}
	m.done = true
	if m.whole == nil {
		return nil
	}
	err := unix.Munmap(m.whole)
	m.whole, m.data = nil, nil
	return err
}
