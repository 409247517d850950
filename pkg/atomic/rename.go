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

// renameNewInSteps renames without overwriting on systems without a call for that. It links a file, which fails if the
// name is taken. A folder cannot be linked: if another process creates a folder of that name between the check and the
// rename, the rename fails only because that folder is not empty.
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
