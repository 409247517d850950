package lease

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"

	"strata/pkg/host"
)

// folder is the open folder of the leases. Its files are opened, renamed and removed below the descriptor and
// never through a link, so that nobody can lead a process to files elsewhere: the folder usually lies where
// every user may make a folder, or a link, of its name.
type folder struct {
	path string
	fd   int
}

// openFolder opens a folder of leases; with create, it makes a missing one. It refuses links, and folders in
// which others could replace this user's files.
func openFolder(path string, create bool) (*folder, error) {
	if err := noPlantedLink(filepath.Dir(path)); err != nil {
		return nil, err
	}
	fd, err := openFile(path, unix.O_RDONLY|unix.O_DIRECTORY, 0)
	made := false
	if errors.Is(err, fs.ErrNotExist) && create {
		if made, err = makeDir(path); err == nil {
			fd, err = openFile(path, unix.O_RDONLY|unix.O_DIRECTORY, 0)
		}
	}
	if err != nil {
		if info, e := os.Lstat(path); e == nil && info.Mode()&fs.ModeSymlink != 0 {
			return nil, fmt.Errorf("%s: is a link, which is not followed: want a folder", path)
		}
		return nil, err
	}
	d := &folder{path, fd}
	var s unix.Stat_t
	if err = unix.Fstat(fd, &s); err == nil {
		if made && int(s.Uid) == os.Geteuid() && path != ownDir() {
			// Every user may make files and remove their own, whatever the umask.
			if err = unix.Fchmod(fd, 0o1777); err == nil {
				err = unix.Fstat(fd, &s)
			}
		}
		err = errors.Join(err, d.trusted(&s))
	}
	if err != nil {
		d.close()
		return nil, err
	}
	return d, nil
}

// trusted returns an error for a folder in which other users, except its owner, could replace files of this
// one. The owner of a sticky folder can: that disturbs the sharing, as any user can who holds a lease, and
// nothing else, because a process never writes to a file that it has not made in the folder.
func (d *folder) trusted(s *unix.Stat_t) error {
	foreign := int(s.Uid) != os.Geteuid() && s.Uid != 0
	sticky := s.Mode&unix.S_ISVTX != 0
	switch {
	case d.path == ownDir() && (foreign || s.Mode&0o077 != 0):
		return fmt.Errorf("%s: user %d made it, with mode %04o: want a folder of user %d with mode 0700", d.path, s.Uid, s.Mode&0o7777, os.Geteuid())
	case foreign && !sticky:
		return fmt.Errorf("%s: belongs to user %d and is not sticky (mode %04o): want a folder of your own or of root, or mode 1777", d.path, s.Uid, s.Mode&0o7777)
	case s.Mode&0o002 != 0 && !sticky:
		return fmt.Errorf("%s: every user may replace the files in it (mode %04o): want mode 1777", d.path, s.Mode&0o7777)
	}
	return nil
}

// close closes the descriptor.
func (d *folder) close() { _ = unix.Close(d.fd) }

// location returns the path of a file, for messages.
func (d *folder) location(name string) string { return filepath.Join(d.path, name) }

// open opens a file of the folder.
func (d *folder) open(name string, flags int, mode uint32) (int, error) {
	return openAt(d.fd, name, d.location(name), flags, mode)
}

// is reports whether an open file still has its name in the folder.
func (d *folder) is(name string, fd int) bool { return isAt(d.fd, name, fd) }

// isAt reports whether an open file has a name in an open folder.
func isAt(dir int, name string, fd int) bool {
	var a, b unix.Stat_t
	return unix.Fstat(fd, &a) == nil && unix.Fstatat(dir, name, &b, unix.AT_SYMLINK_NOFOLLOW) == nil && a.Dev == b.Dev && a.Ino == b.Ino
}

// names returns the names of all files.
func (d *folder) names() ([]string, error) {
	fd, err := d.open(".", unix.O_RDONLY|unix.O_DIRECTORY, 0) // reads from the beginning
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), d.path)
	names, err := f.Readdirnames(-1)
	return names, errors.Join(err, f.Close())
}

// makeDir makes a folder, and reports whether it was this call that made it.
func makeDir(dir string) (made bool, err error) {
	if err := os.MkdirAll(filepath.Dir(dir), 0o777); err != nil {
		return false, err
	}
	err = os.Mkdir(dir, 0o700)
	if errors.Is(err, fs.ErrExist) {
		return false, nil
	}
	return err == nil, err
}

// noPlantedLink returns an error if a path goes through a link that another user could have put there. Linux
// refuses such links itself unless fs.protected_symlinks is off.
func noPlantedLink(path string) error {
	for ; path != filepath.Dir(path); path = filepath.Dir(path) {
		if info, err := os.Lstat(path); err == nil && info.Mode()&fs.ModeSymlink != 0 {
			if err := host.Planted(path); err != nil {
				return fmt.Errorf("a link is not followed: %w", err)
			}
		}
	}
	return nil
}

// ownDir returns the folder of this user's processes alone, which they use if the default folder is unusable.
func ownDir() string {
	return filepath.Join(shared(), "strata-lease-"+strconv.Itoa(os.Geteuid()))
}
