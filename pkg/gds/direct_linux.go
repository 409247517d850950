package gds

import (
	"fmt"
	"os"
	"syscall"
)

// openDirect opens a file that is open, whatever its name is by now, for direct I/O; nil
// where the file system has none.
func openDirect(f *os.File, mode int) *os.File {
	d, err := os.OpenFile(fmt.Sprintf("/proc/self/fd/%d", f.Fd()), mode|syscall.O_DIRECT, 0)
	if err != nil {
		return nil
	}
	return d
}

// fileSystem is which file system a file lies on.
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
