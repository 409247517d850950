package lease

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// file is a locked file of this process. It holds bare descriptors: the garbage collector would close an unused
// os.File and thereby drop the lock.
type file struct {
	name string
	fd   int
	dir  int // the folder in which it was made, whatever has the folder's name by now
}

var errNoLocks = errors.New("its file system does not keep locks")

// create makes the file of an entry, locked and readable for all. The folder's lock
// must be held.
func (d *folder) create(e entry) (*file, error) {
	f := &file{name: e.name()}
	var err error
	if f.dir, err = unix.FcntlInt(uintptr(d.fd), unix.F_DUPFD_CLOEXEC, 0); err != nil {
		return nil, fmt.Errorf("%s: %w", d.path, err)
	}
	if f.fd, err = d.open(f.name, unix.O_RDWR|unix.O_CREAT|unix.O_EXCL, 0o644); err != nil {
		return nil, errors.Join(err, unix.Close(f.dir))
	}
	if err := f.prepare(d); err != nil {
		_ = f.drop()
		return nil, fmt.Errorf("%s: %w", d.location(f.name), err)
	}
	return f, nil
}

func (f *file) prepare(d *folder) error {
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
	if state, err := d.look(f.name); err != nil || !state.live {
		return errors.Join(errNoLocks, err)
	}
	if b, err := json.Marshal(self()); err == nil {
		_, _ = unix.Write(f.fd, b) // only shown: a full disk does not matter
	}
	return nil
}

// rename gives a file the name of another entry, without releasing its lock.
func (f *file) rename(e entry) error {
	name := e.name()
	if err := unix.Renameat(f.dir, f.name, f.dir, name); err != nil {
		return &os.LinkError{Op: "rename", Old: f.name, New: name, Err: err}
	}
	f.name = name
	return nil
}

// touch updates the file's time, which shows other processes that this one is alive.
func (f *file) touch() {
	now := unix.NsecToTimeval(time.Now().UnixNano())
	_ = unix.Futimes(f.fd, []unix.Timeval{now, now})
}

// drop removes the file and its lock. It leaves another process's file that now has the same name.
func (f *file) drop() error {
	var err error
	if isAt(f.dir, f.name, f.fd) {
		if err = unix.Unlinkat(f.dir, f.name, 0); errors.Is(err, unix.ENOENT) {
			err = nil
		}
	}
	return errors.Join(err, unix.Close(f.fd), unix.Close(f.dir))
}

// state describes a file with the name of a lease.
type state struct {
	live    bool  // a process holds its lock
	changed int64 // when it was changed, in ns since 1970
	litter  bool  // a process of this user made it and has ended
}

// look examines a file with the name of a lease. Anything that cannot be one (a link, a pipe, an unreadable
// file) is neither live nor litter.
func (d *folder) look(name string) (state, error) {
	fd, err := d.open(name, unix.O_RDONLY, 0)
	for _, foreign := range []error{unix.ENOENT, unix.EACCES, unix.EPERM, unix.ELOOP, unix.ENXIO} {
		if errors.Is(err, foreign) {
			return state{}, nil
		}
	}
	if err != nil {
		return state{}, err
	}
	defer unix.Close(fd)
	var s unix.Stat_t
	if err := unix.Fstat(fd, &s); err != nil || s.Mode&unix.S_IFMT != unix.S_IFREG {
		return state{}, err
	}
	err = flock(fd, unix.LOCK_SH)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return state{live: true, changed: s.Mtim.Nano()}, nil
	}
	return state{litter: err == nil && int(s.Uid) == os.Geteuid() && s.Nlink == 1 && isDescription(fd, s.Size)}, err
}

// isDescription reports whether an open file holds what processes write into their leases, which is nothing
// where the disk was full.
func isDescription(fd int, size int64) bool {
	if size == 0 || size > maxDescription {
		return size == 0
	}
	b := make([]byte, size)
	n, err := unix.Pread(fd, b, 0)
	var h Holder
	return err == nil && json.Unmarshal(b[:max(n, 0)], &h) == nil && h.PID > 0
}

// openFile opens without following a link, without waiting for the other end of a
// pipe, and not for child processes.
func openFile(path string, flags int, mode uint32) (int, error) {
	return openAt(unix.AT_FDCWD, path, path, flags, mode)
}

// openAt works like openFile for a name in an open folder. location is the file's path, for messages.
func openAt(dir int, name, location string, flags int, mode uint32) (int, error) {
	for {
		fd, err := unix.Openat(dir, name, flags|unix.O_CLOEXEC|unix.O_NOFOLLOW|unix.O_NONBLOCK, mode)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return -1, &os.PathError{Op: "open", Path: location, Err: err}
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
