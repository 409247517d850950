package doctor

import (
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// openDirect is the flag that opens a file past the page cache.
const openDirect = unix.O_DIRECT

// dropCached asks the system to forget what it holds of a file: it does where that lies on the
// device too.
func dropCached(path string) {
	f, err := os.Open(path)
	if err != nil {
		return
	}
	defer f.Close()
	_ = unix.Fdatasync(int(f.Fd()))
	_ = unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED)
}

// cachedShare is how much of the first n bytes of a file the page cache holds, from 0 to 1. The
// system tells that only to who may write the file.
func cachedShare(path string, n int64) (share float64, known bool) {
	if unix.Access(path, unix.W_OK) != nil {
		return 0, false
	}
	f, err := os.Open(path)
	if err != nil {
		return 0, false
	}
	defer f.Close()
	info, err := f.Stat()
	if n = min(n, 1<<30); err != nil || info.Size() < n || n < page {
		return 0, false
	}
	b, err := unix.Mmap(int(f.Fd()), 0, int(n), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return 0, false
	}
	defer func() { _ = unix.Munmap(b) }()
	size := os.Getpagesize()
	pages := make([]byte, (int(n)+size-1)/size)
	if _, _, e := unix.Syscall(unix.SYS_MINCORE, uintptr(unsafe.Pointer(&b[0])), uintptr(n), uintptr(unsafe.Pointer(&pages[0]))); e != 0 {
		return 0, false
	}
	in := 0
	for _, p := range pages {
		in += int(p & 1)
	}
	return float64(in) / float64(len(pages)), true
}
