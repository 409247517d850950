package gds

import (
	"io"
	"os"
	"unsafe"
)

// directly moves the beginning of b to or from byte off of the file on, whole pages
// past the page cache and what lies before the first of them through it. It returns how many bytes
// it moved: none if the memory does not lie as the file does, or the file system has no direct I/O.
func (f *File) directly(b []byte, off int64, move func(f *os.File, b []byte, off int64) (int, error)) int {
	head, whole := aligned(off, int64(len(b)))
	if whole == 0 || f.noDirect.Load() || (int64(uintptr(unsafe.Pointer(unsafe.SliceData(b))))+head)%page != 0 {
		return 0
	}
	f.openDirect()
	if f.direct == nil {
		return 0
	}
	if head > 0 {
		if n, err := move(f.file, b[:head], off); err != nil {
			return n
		}
	}
	n, err := move(f.direct, b[head:head+whole], off+head)
	if err != nil && err != io.EOF {
		// The rest goes through the cache, and shows by its error what is wrong with the file.
		f.noDirect.Store(true)
	}
	return int(head) + n/page*page
}

// openDirect opens the file once more, for direct I/O.
func (f *File) openDirect() {
	f.opening.Do(func() { f.direct = openDirect(f.file, f.mode) })
}
