package filelayer

import (
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// openDirect opens a file that is open, whatever its name is by now, for direct I/O. It
// fails where the file system has none.
func openDirect(f *os.File, mode int) (*os.File, error) {
	return os.OpenFile(fmt.Sprintf("/proc/self/fd/%d", f.Fd()), mode|syscall.O_DIRECT, 0)
}

// memoryAlign returns the alignment of memory for direct I/O, as reported by Linux 6.1 and newer, and
// otherwise a page.
func memoryAlign(f *os.File) int64 {
	var s unix.Statx_t
	err := unix.Statx(int(f.Fd()), "", unix.AT_EMPTY_PATH, unix.STATX_DIOALIGN, &s)
	if err != nil || s.Mask&unix.STATX_DIOALIGN == 0 || s.Dio_mem_align == 0 || s.Dio_offset_align > page || page%s.Dio_mem_align != 0 {
		return page
	}
	return int64(s.Dio_mem_align)
}

// keepsInMemory reports whether files of the file system exist only in the page cache. Linux 6.6 and newer
// accept O_DIRECT there and ignore it.
func keepsInMemory(f *os.File) bool {
	var s unix.Statfs_t
	return unix.Fstatfs(int(f.Fd()), &s) == nil && (s.Type == unix.TMPFS_MAGIC || s.Type == unix.RAMFS_MAGIC)
}

// fileSystem returns the file system that holds a file.
func fileSystem(f *os.File) (id uint64, known bool) {
	info, err := f.Stat()
	if err != nil {
		return 0, false
	}
	s, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, false
	}
	return s.Dev, true
}
