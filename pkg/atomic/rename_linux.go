package atomic

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// renameNew renames a file or folder to a name that must be free; otherwise
// the error is fs.ErrExist.
func renameNew(from, to string) error {
	err := unix.Renameat2(unix.AT_FDCWD, from, unix.AT_FDCWD, to, unix.RENAME_NOREPLACE)
	if unsupported(err) {
		return renameNewInSteps(from, to)
	}
	return err
}

// exchange swaps two names in one step. Where the file system cannot, the
// error is errors.ErrUnsupported.
func exchange(a, b string) error {
	err := unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, b, unix.RENAME_EXCHANGE)
	if unsupported(err) {
		return fmt.Errorf("exchange: %w", errors.ErrUnsupported)
	}
	return err
}

// unsupported: old kernels have no such call, NFS and some FUSE file systems
// refuse its flags as an invalid argument.
func unsupported(err error) bool {
	return errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EINVAL) || errors.Is(err, unix.EOPNOTSUPP)
}
