package filelayer

import (
	"os"

	"golang.org/x/sys/unix"

	"strata/pkg/gpu/cufile"
	"strata/pkg/settings"
)

// drives returns an error if cuFile cannot look up the drive of a file, as it does for the local file systems
// that it supports, ext4 and XFS. If cuFile is demanded, it is tried anyway.
func drives(f *os.File, mode settings.Mode) error {
	if mode == settings.Off {
		return nil
	}
	var s unix.Statfs_t
	if err := unix.Fstatfs(int(f.Fd()), &s); err != nil || s.Type != unix.EXT4_SUPER_MAGIC && s.Type != unix.XFS_SUPER_MAGIC {
		return nil
	}
	return cufile.Udev()
}
