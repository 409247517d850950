package lease

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// file is a locked file of this process. It is a bare descriptor: the garbage collector would close an unused
// os.File and thereby drop the lock.
type file struct {
	name string
	fd   int
}

var errNoLocks = errors.New("its file system does not keep locks")

// create makes the file of an entry, locked and readable for all. The folder's lock
// must be held.
func create(dir string, e entry) (*file, error) {
	f := &file{name: e.name()}
	path := filepath.Join(dir, f.name)
	var err error
	if f.fd, err = openFile(path, unix.O_RDWR|unix.O_CREAT|unix.O_EXCL, 0o644); err != nil {
		return nil, err
	}
	if err := f.prepare(path); err != nil {
		_ = f.drop(dir)
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return f, nil
}

func (f *file) prepare(path string) error {
	if err := unix.Fchmod(f.fd, 0o644); err != nil { // whatever the umask
		return err
	}
	// A list that could not wait for the folder's lock may try the file's for an instant.
	err := flock(f.fd, unix.LOCK_EX)
	for range 100 {
		if !errors.Is(err, unix.EWOULDBLOCK) {
			break
		}
		time.Sleep(10 * time.Millisecond)
		err = flock(f.fd, unix.LOCK_EX)
	}
	if err != nil {
		return err
	}
	if live, _, err := alive(path); err != nil || !live {
		return errors.Join(errNoLocks, err)
	}
	if b, err := json.Marshal(self()); err == nil {
		_, _ = unix.Write(f.fd, b) // only shown: a full disk does not matter
	}
	return nil
}

// rename turns a file into that of another entry; its lock stays.
func (f *file) rename(dir string, e entry) error {
	name := e.name()
	if err := os.Rename(filepath.Join(dir, f.name), filepath.Join(dir, name)); err != nil {
		return err
	}
	f.name = name
	return nil
}

// touch changes the file's time, by which others see that the process runs.
func (f *file) touch() {
	now := unix.NsecToTimeval(time.Now().UnixNano())
	_ = unix.Futimes(f.fd, []unix.Timeval{now, now})
}

// drop removes the file and its lock.
func (f *file) drop(dir string) error {
	err := os.Remove(filepath.Join(dir, f.name))
	if errors.Is(err, os.ErrNotExist) {
		err = nil
	}
	return errors.Join(err, unix.Close(f.fd))
}

// alive reports whether a process holds the lock of a file, and when the file was changed. Anything that
// cannot be a lease (a link, a pipe, an unreadable file) is not alive.
func alive(path string) (bool, int64, error) {
	fd, err := openFile(path, unix.O_RDONLY, 0)
	for _, foreign := range []error{unix.ENOENT, unix.EACCES, unix.EPERM, unix.ELOOP, unix.ENXIO} {
		if errors.Is(err, foreign) {
			return false, 0, nil
		}
	}
	if err != nil {
		return false, 0, err
	}
	defer unix.Close(fd)
	var s unix.Stat_t
	if err := unix.Fstat(fd, &s); err != nil || s.Mode&unix.S_IFMT != unix.S_IFREG {
		return false, 0, err
	}
	err = flock(fd, unix.LOCK_SH)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return true, s.Mtim.Nano(), nil
	}
	return false, 0, err
}

// openFile opens without following a link, without waiting for the other end of a
// pipe, and not for child processes.
func openFile(path string, flags int, mode uint32) (int, error) {
	for {
		fd, err := unix.Open(path, flags|unix.O_CLOEXEC|unix.O_NOFOLLOW|unix.O_NONBLOCK, mode)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return -1, &os.PathError{Op: "open", Path: path, Err: err}
		default:
			return fd, nil
		}
	}
}

// flock takes a lock or fails with EWOULDBLOCK.
func flock(fd, how int) error {
	for {
		if err := unix.Flock(fd, how|unix.LOCK_NB); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}
