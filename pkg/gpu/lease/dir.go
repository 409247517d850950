package lease

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// DefaultDir returns the folder of the node's leases: STRATA_LEASE_DIR, or strata-lease in /dev/shm, or in
// the temporary folder if /dev/shm is not writable. The node's processes must share it, and other nodes must
// not.
func DefaultDir() string {
	if dir := os.Getenv("STRATA_LEASE_DIR"); dir != "" {
		return dir
	}
	const shared = "/dev/shm"
	if unix.Access(shared, unix.W_OK|unix.X_OK) == nil {
		return filepath.Join(shared, "strata-lease")
	}
	return filepath.Join(os.TempDir(), "strata-lease")
}

// lockName is the name of the file whose lock makes reading and changing the folder atomic.
const lockName = "lock"

// locked runs f under the folder's lock. Folder and file are made if need be.
func locked(ctx context.Context, dir string, f func() error) error {
	began := time.Now()
	denied := 0
	for pause := time.Millisecond; ; pause = min(pause*2, 50*time.Millisecond) {
		fd, err := openLock(dir, true)
		switch {
		case err == nil:
			err = flock(fd, unix.LOCK_EX)
			if err == nil && sameFile(fd, filepath.Join(dir, lockName)) {
				defer unix.Close(fd)
				return f()
			}
			_ = unix.Close(fd)
			if err != nil && !errors.Is(err, unix.EWOULDBLOCK) {
				return fmt.Errorf("%s: %w", filepath.Join(dir, lockName), err)
			}
		case errors.Is(err, fs.ErrPermission) && denied < 5, errors.Is(err, fs.ErrNotExist) && denied < 5:
			denied++ // another user may be making the folder, or somebody remove it
		default:
			return err
		}
		if time.Since(began) > lockPatience {
			return fmt.Errorf("%s: another process has held its lock for %.0f s", filepath.Join(dir, lockName), lockPatience.Seconds())
		}
		if err := sleep(ctx, pause); err != nil {
			return err
		}
	}
}

// openLock opens the file of the folder's lock; without create, only an existing one.
func openLock(dir string, create bool) (int, error) {
	path := filepath.Join(dir, lockName)
	// Without O_CREAT: in a folder like /tmp, kernels refuse that on files of others.
	fd, err := openFile(path, unix.O_RDWR, 0)
	if errors.Is(err, fs.ErrPermission) {
		fd, err = openFile(path, unix.O_RDONLY, 0)
	}
	if errors.Is(err, fs.ErrNotExist) && create {
		if err := makeDir(dir); err != nil {
			return -1, err
		}
		if fd, err = openFile(path, unix.O_RDWR|unix.O_CREAT|unix.O_EXCL, 0o666); errors.Is(err, fs.ErrExist) {
			return openLock(dir, false)
		}
		if err == nil {
			err = unix.Fchmod(fd, 0o666)
		}
	}
	if err != nil {
		return -1, err
	}
	var s unix.Stat_t
	if err := unix.Fstat(fd, &s); err != nil || s.Mode&unix.S_IFMT != unix.S_IFREG {
		_ = unix.Close(fd)
		return -1, errors.Join(fmt.Errorf("%s: is not a file", path), err)
	}
	return fd, nil
}

// makeDir makes a folder in which every user may make files and remove their own.
func makeDir(dir string) error {
	if err := os.MkdirAll(filepath.Dir(dir), 0o777); err != nil {
		return err
	}
	err := os.Mkdir(dir, 0o777)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return os.Chmod(dir, 0o777|fs.ModeSticky)
}

// sameFile reports whether an open file still has its name.
func sameFile(fd int, path string) bool {
	var a, b unix.Stat_t
	return unix.Fstat(fd, &a) == nil && unix.Lstat(path, &b) == nil && a.Dev == b.Dev && a.Ino == b.Ino
}

// scan finds the files whose processes are alive and, if asked to, removes the others.
func scan(dir string, clean bool) ([]entry, error) {
	d, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	names, err := d.Readdirnames(-1)
	if err = errors.Join(err, d.Close()); err != nil {
		return nil, err
	}
	var all []entry
	for _, name := range names {
		e, ok := parseName(name)
		if !ok {
			continue
		}
		path := filepath.Join(dir, name)
		live, changed, err := alive(path)
		switch {
		case err != nil:
			return nil, err
		case live:
			e.changed = changed
			all = append(all, e)
		case clean:
			_ = os.Remove(path) // another user's stays, and does not count
		}
	}
	return all, nil
}

// Check returns nil if processes of this user can keep leases in a folder, and otherwise the reason. It
// creates nothing: a folder that does not exist is judged by its parent.
func Check(dir string) error {
	path := dir
	for {
		info, err := os.Stat(path)
		switch {
		case errors.Is(err, fs.ErrNotExist) && filepath.Dir(path) != path:
			path = filepath.Dir(path)
			continue
		case err != nil:
			return err
		case !info.IsDir():
			return &fs.PathError{Op: "open", Path: path, Err: unix.ENOTDIR}
		}
		if err := unix.Access(path, unix.W_OK|unix.X_OK); err != nil {
			return &fs.PathError{Op: "write to", Path: path, Err: err}
		}
		return nil
	}
}
