package gds

import (
	"os"

	"golang.org/x/sys/unix"

	"strata/pkg/gpu/cufile"
	"strata/pkg/settings"
)

// drives says that cuFile cannot look up the drive that a file lies on, which it does for
// the local file systems that it takes, ext4 and XFS. Where cuFile is demanded it is tried.
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
