package run

import (
	"os"

	"golang.org/x/sys/unix"
)

// unnamed returns a file that no folder has: in memory, or on systems that refuse that in the folder for temporary
// files.
func unnamed(name string) (*os.File, error) {
	fd, err := unix.MemfdCreate(name, unix.MFD_CLOEXEC)
	if err != nil {
		return unnamedFile(name)
	}
	return os.NewFile(uintptr(fd), name), nil
}
