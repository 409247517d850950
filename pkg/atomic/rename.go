package atomic

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// operations are the renames, of which two depend on the file system; tests replace them.
type operations struct {
	renameNew func(from, to string) error // to must be free: fs.ErrExist
	exchange  func(a, b string) error     // errors.ErrUnsupported where it cannot be done
	rename    func(from, to string) error // os.Rename
}

// renameNewInSteps renames without overwriting where the system has no such call. A file is linked, which
// fails if the name is taken. A folder cannot be linked: between the check and the rename another process may
// put one there, and then the rename fails because that one is not empty.
func renameNewInSteps(from, to string) error {
	info, err := os.Lstat(from)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		switch err := os.Link(from, to); {
		case err == nil:
			return os.Remove(from)
		case errors.Is(err, fs.ErrExist):
			return err
		}
	}
	if _, err := os.Lstat(to); err == nil {
		return fs.ErrExist
	}
	err = os.Rename(from, to)
	if errors.Is(err, syscall.ENOTEMPTY) {
		return fs.ErrExist
	}
	return err
}
