package host

import "golang.org/x/sys/unix"

// IsMount reports whether another file system, or another part of one, is mounted at a path (statx(2), Linux 5.8).
func IsMount(path string) bool {
	var s unix.Statx_t
	err := unix.Statx(unix.AT_FDCWD, path, unix.AT_SYMLINK_NOFOLLOW|unix.AT_STATX_DONT_SYNC, 0, &s)
	return err == nil && s.Attributes_mask&s.Attributes&unix.STATX_ATTR_MOUNT_ROOT != 0
}
