package filelayer

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Cached returns how many of n bytes from offset off of a file the page cache holds, in whole pages; n ≤ 0
// means to the end of the file. The system reveals this only to users who own the file or may write it; for
// others, and on systems without the call, the error is [errors.ErrUnsupported].
//
// Linux 6.5 and newer answer at once (cachestat), older versions page by page (mincore).
func Cached(f *os.File, off, n int64) (int64, error) {
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	if off < 0 {
		return 0, fmt.Errorf("page cache of %s: the position %d is negative", f.Name(), off)
	}
	if rest := info.Size() - off; n <= 0 || n > rest {
		n = rest
	}
	if n <= 0 {
		return 0, nil
	}
	if !tells(f, info) {
		return 0, fmt.Errorf("page cache of %s: only its owner and users who may write it can ask: %w", f.Name(), errors.ErrUnsupported)
	}
	if in, err := cachedPages(f, off, n); err == nil {
		return in, nil
	}
	return resident(f, off, n)
}

// cachedPages implements Cached by cachestat.
func cachedPages(f *os.File, off, n int64) (int64, error) {
	var s unix.Cachestat_t
	if err := unix.Cachestat(uint(f.Fd()), &unix.CachestatRange{Off: uint64(off), Len: uint64(n)}, &s, 0); err != nil {
		return 0, err
	}
	return min(int64(s.Cache)*int64(os.Getpagesize()), n), nil
}

// tells reports whether the system tells this process what the page cache holds of a file: only if the process owns the
// file or may write it.
func tells(f *os.File, info os.FileInfo) bool {
	return owns(info, os.Geteuid()) || mayWrite(f)
}

// owns reports whether a file belongs to a user.
func owns(info os.FileInfo, user int) bool {
	s, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(s.Uid) == user
}

func mayWrite(f *os.File) bool {
	return unix.Faccessat(unix.AT_FDCWD, fmt.Sprintf("/proc/self/fd/%d", f.Fd()), unix.W_OK, unix.AT_EACCESS) == nil
}

// window is the size of the part of a file that is mapped at a time to look at its pages.
const window = 1 << 30

// resident implements Cached by mincore.
func resident(f *os.File, off, n int64) (int64, error) {
	size := int64(os.Getpagesize())
	first := off / size * size
	var in int64
	pages := make([]byte, window/size)
	for at := first; at < off+n; at += window {
		part := min(off+n-at, window)
		b, err := unix.Mmap(int(f.Fd()), at, int(part), unix.PROT_READ, unix.MAP_SHARED)
		if err != nil {
			return 0, fmt.Errorf("page cache of %s: %w: %w", f.Name(), err, errors.ErrUnsupported)
		}
		count := (part + size - 1) / size
		_, _, e := unix.Syscall(unix.SYS_MINCORE, uintptr(unsafe.Pointer(&b[0])), uintptr(part), uintptr(unsafe.Pointer(&pages[0])))
		_ = unix.Munmap(b) // it was mapped
		if e != 0 {
			return 0, fmt.Errorf("page cache of %s: %w: %w", f.Name(), e, errors.ErrUnsupported)
		}
		for _, p := range pages[:count] {
			in += int64(p & 1)
		}
	}
	return min(in*size, n), nil
}

// DropCached flushes new data of a file to the device and asks the system to drop n bytes from offset off
// from the page cache; n ≤ 0 means to the end. Pages in use by others stay.
func DropCached(f *os.File, off, n int64) error {
	if err := unix.Fdatasync(int(f.Fd())); err != nil && !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.EROFS) {
		return fmt.Errorf("flush %s: %w", f.Name(), err)
	}
	if err := unix.Fadvise(int(f.Fd()), off, max(n, 0), unix.FADV_DONTNEED); err != nil {
		return fmt.Errorf("drop %s from the page cache: %w", f.Name(), err)
	}
	return nil
}

// Prefetch asks the system to read n bytes of a file from offset off into the page cache, without waiting; n
// ≤ 0 means to the end.
func Prefetch(f *os.File, off, n int64) error {
	if err := unix.Fadvise(int(f.Fd()), off, max(n, 0), unix.FADV_WILLNEED); err != nil {
		return fmt.Errorf("read %s ahead: %w", f.Name(), err)
	}
	return nil
}
