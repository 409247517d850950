package host

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// Planted returns an error if another user put a file, folder or link into a folder in which everybody may make
// them: its name may be one that this user's programs are known to use. Root and the owner of the folder are
// trusted. A path that does not exist is not planted.
func Planted(path string) error {
	const everybodyWrites = 0o002
	var s, in syscall.Stat_t
	if syscall.Lstat(path, &s) != nil || syscall.Stat(filepath.Dir(path), &in) != nil {
		return nil
	}
	if in.Mode&everybodyWrites == 0 || s.Uid == 0 || s.Uid == in.Uid || int(s.Uid) == os.Geteuid() {
		return nil
	}
	return fmt.Errorf("%s: user %d made it in a folder that everybody may write to: it is not used", path, s.Uid)
}
