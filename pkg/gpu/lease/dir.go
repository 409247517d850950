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
	return filepath.Join(shared(), "strata-lease")
}

// memory names the folder of shared memory; tests have another.
var memory = "/dev/shm"

// shared returns a folder of the node in which every user may make files.
func shared() string {
	if unix.Access(memory, unix.W_OK|unix.X_OK) == nil {
		return memory
	}
	return os.TempDir()
}

// folders returns the folders to try in turn if dir is asked for: any user can spoil the default one, so that
// this user's own is the second.
func folders(dir string) []string {
	switch {
	case dir != "" && dir != DefaultDir():
		return []string{dir}
	case os.Getenv("STRATA_LEASE_DIR") != "":
		return []string{DefaultDir()}
	}
	return []string{DefaultDir(), ownDir()}
}

// lockName is the name of the file whose lock makes reading and changing the folder atomic.
const lockName = "lock"

// locked runs f under the folder's lock. Folder and file are made if need be.
func locked(ctx context.Context, dir string, f func(*folder) error) error {
	began := time.Now()
	denied := 0
	for pause := time.Millisecond; ; pause = min(pause*2, 50*time.Millisecond) {
		done, err := tryLocked(dir, f)
		switch {
		case done:
			return err
		case err == nil: // another process has the lock
		case errors.Is(err, errNoFolder) && denied < 5:
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

// errNoFolder is wrapped by errors of the folder or of the lock's file that may pass.
var errNoFolder = errors.New("unusable")

// noFolder is an error that wraps errNoFolder, with the text of its cause.
type noFolder struct{ error }

func (e noFolder) Is(target error) bool { return target == errNoFolder }
func (e noFolder) Unwrap() error        { return e.error }

// tryLocked runs f if it gets the folder's lock at once, and reports whether it did.
func tryLocked(dir string, f func(*folder) error) (done bool, err error) {
	d, err := openFolder(dir, true)
	if err != nil {
		return false, noFolder{err}
	}
	defer d.close()
	fd, err := d.openLock(true)
	switch {
	case errors.Is(err, fs.ErrPermission), errors.Is(err, fs.ErrNotExist):
		return false, noFolder{err}
	case err != nil:
		return false, err
	}
	defer unix.Close(fd)
	err = flock(fd, unix.LOCK_EX)
	switch {
	case errors.Is(err, unix.EWOULDBLOCK):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("%s: %w", d.location(lockName), err)
	case !d.is(lockName, fd) || !sameFolder(d): // somebody removed or replaced one of the two
		return false, nil
	}
	return true, f(d)
}

// sameFolder reports whether an open folder still has its name.
func sameFolder(d *folder) bool { return isAt(unix.AT_FDCWD, d.path, d.fd) }

// openLock opens the folder's lock file. If create is set, it creates a missing one.
func (d *folder) openLock(create bool) (int, error) {
	// Without O_CREAT: in a folder like /tmp, kernels refuse that on files of others.
	fd, err := d.open(lockName, unix.O_RDWR, 0)
	if errors.Is(err, fs.ErrPermission) {
		fd, err = d.open(lockName, unix.O_RDONLY, 0)
	}
	if errors.Is(err, fs.ErrNotExist) && create {
		if fd, err = d.open(lockName, unix.O_RDWR|unix.O_CREAT|unix.O_EXCL, 0o666); errors.Is(err, fs.ErrExist) {
			return d.openLock(false)
		}
		if err == nil {
			err = unix.Fchmod(fd, 0o666)
		}
	}
	if err != nil {
		return -1, err
	}
	var s unix.Stat_t
	if err := unix.Fstat(fd, &s); err != nil || s.Mode&unix.S_IFMT != unix.S_IFREG || s.Nlink > 1 {
		_ = unix.Close(fd)
		return -1, errors.Join(fmt.Errorf("%s: is not a file of its own", d.location(lockName)), err)
	}
	return fd, nil
}

// scan returns the files whose processes are alive. If clean is set, it removes files that dead processes of this user
// have left.
func (d *folder) scan(clean bool) ([]entry, error) {
	names, err := d.names()
	if err != nil {
		return nil, err
	}
	var all []entry
	for _, name := range names {
		e, ok := parseName(name)
		if !ok {
			continue
		}
		state, err := d.look(name)
		switch {
		case err != nil:
			return nil, err
		case state.live:
			e.changed = state.changed
			all = append(all, e)
		case clean && state.litter:
			_ = unix.Unlinkat(d.fd, name, 0) // what stays does not count
		}
	}
	return all, nil
}

// Check returns nil if processes of this user can keep leases in a folder, and otherwise the reason. It
// creates nothing: a folder that does not exist is judged by its parent.
func Check(dir string) error {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	d, err := openFolder(dir, false)
	switch {
	case err == nil:
		d.close()
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
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
