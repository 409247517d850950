//go:build unix

package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// Put writes key's file under a hidden name and renames it; see [Writer].
func (s *FolderStore) Put(ctx context.Context, key string, parts ...[]byte) error {
	fd, temp, err := s.create(ctx, key)
	if err != nil {
		return err
	}
	path := s.prefix + key
	off := int64(0)
	for _, p := range parts {
		n, err := pwrite(ctx, fd, p, off)
		if err != nil {
			closeFD(fd)
			return s.discard(temp, &fs.PathError{Op: "write", Path: path, Err: err})
		}
		off += int64(n)
	}
	return s.commit(fd, temp, path, func() error { return closeFD(fd) })
}

// Delete removes key's file; see [Writer].
func (s *FolderStore) Delete(ctx context.Context, key string) error {
	if err := checkKey(key); err != nil {
		return fmt.Errorf("%s: %w", s.root, err)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	path := s.prefix + key
	err := ignoringEINTR(func() error { return unix.Unlink(path) })
	switch {
	case err == nil && s.sync:
		return syncFolder(filepath.Dir(path))
	case err == nil || err == unix.ENOENT:
		return nil
	}
	return &fs.PathError{Op: "remove", Path: path, Err: err}
}

// Create begins key's file under a hidden name; see [Writer].
func (s *FolderStore) Create(ctx context.Context, key string) (PendingObject, error) {
	fd, temp, err := s.create(ctx, key)
	if err != nil {
		return nil, err
	}
	o := &pendingFile{store: s, temp: temp, path: s.prefix + key}
	o.fd.init(fd)
	return o, nil
}

// create makes the hidden file that will become key. It makes folders only after a first attempt fails, so
// that the usual case costs nothing.
func (s *FolderStore) create(ctx context.Context, key string) (fd int, temp string, err error) {
	if err := checkKey(key); err != nil {
		return -1, "", fmt.Errorf("%s: %w", s.root, err)
	}
	if err := ctx.Err(); err != nil {
		return -1, "", err
	}
	path := s.prefix + key
	dir, name := filepath.Split(path)
	for attempt := 0; ; attempt++ {
		temp = dir + tempName(name)
		fd, err = openFD(temp, unix.O_RDWR|unix.O_CREAT|unix.O_EXCL, 0o666)
		switch {
		case err == nil:
			return fd, temp, nil
		case err == unix.ENOENT && attempt < 10: // again if another process removes empty folders
			if err := s.makeFolders(filepath.Clean(dir)); err != nil {
				return -1, "", err
			}
		case err == unix.EEXIST && attempt < 10:
		default:
			return -1, "", &fs.PathError{Op: "create", Path: path, Err: err}
		}
	}
}

// makeFolders works like os.MkdirAll and, with Sync, flushes the folders that got a new entry. Other
// goroutines may make the same folders at the same time.
func (s *FolderStore) makeFolders(dir string) error {
	if !s.sync {
		return os.MkdirAll(dir, 0o777)
	}
	if info, err := os.Stat(dir); err == nil && info.IsDir() {
		return nil
	}
	parent := filepath.Dir(dir)
	if parent != dir {
		if err := s.makeFolders(parent); err != nil {
			return err
		}
	}
	if err := os.Mkdir(dir, 0o777); err != nil {
		if info, e := os.Stat(dir); e != nil || !info.IsDir() {
			return err
		}
	}
	return syncFolder(parent)
}

// commit flushes (with Sync), closes and renames. On an error it removes the hidden file and leaves path as
// it was.
func (s *FolderStore) commit(fd int, temp, path string, closeFile func() error) error {
	var err error
	if s.sync {
		err = ignoringEINTR(func() error { return unix.Fsync(fd) })
	}
	// a network file system may report only now that the data did not fit
	if e := closeFile(); err == nil {
		err = e
	}
	if err != nil {
		return s.discard(temp, &fs.PathError{Op: "write", Path: path, Err: err})
	}
	if err := ignoringEINTR(func() error { return unix.Rename(temp, path) }); err != nil {
		return s.discard(temp, &fs.PathError{Op: "create", Path: path, Err: err})
	}
	if s.sync {
		return syncFolder(filepath.Dir(path))
	}
	return nil
}

// discard removes a hidden file and returns cause.
func (s *FolderStore) discard(temp string, cause error) error {
	if err := ignoringEINTR(func() error { return unix.Unlink(temp) }); err != nil && err != unix.ENOENT {
		return errors.Join(cause, &fs.PathError{Op: "remove", Path: temp, Err: err})
	}
	return cause
}

// pendingFile is a hidden file that Commit renames.
type pendingFile struct {
	store      *FolderStore
	fd         descriptor
	temp, path string

	mu   sync.Mutex // Commit and Abort
	done bool
}

func (o *pendingFile) WriteAt(p []byte, off int64) (int, error) {
	if off < 0 {
		return 0, fmt.Errorf("%s: %w", o.path, errOffset(off))
	}
	if !o.fd.acquire() {
		return 0, &fs.PathError{Op: "write", Path: o.path, Err: fs.ErrClosed}
	}
	n, err := pwrite(context.Background(), o.fd.fd, p, off)
	o.fd.release()
	if err != nil {
		return n, &fs.PathError{Op: "write", Path: o.path, Err: err}
	}
	return n, nil
}

func (o *pendingFile) ReadAt(p []byte, off int64) (int, error) {
	if off < 0 {
		return 0, fmt.Errorf("%s: %w", o.path, errOffset(off))
	}
	if !o.fd.acquire() {
		return 0, &fs.PathError{Op: "read", Path: o.path, Err: fs.ErrClosed}
	}
	n, err := pread(context.Background(), o.fd.fd, p, off)
	o.fd.release()
	switch {
	case err != nil:
		return n, &fs.PathError{Op: "read", Path: o.path, Err: err}
	case n < len(p):
		return n, io.EOF
	}
	return n, nil
}

// Path returns the hidden name.
func (o *pendingFile) Path() string { return o.temp }

func (o *pendingFile) Commit() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.done {
		return &fs.PathError{Op: "commit", Path: o.path, Err: fs.ErrClosed}
	}
	o.done = true
	return o.store.commit(o.fd.fd, o.temp, o.path, func() error {
		o.fd.close()
		return o.fd.err
	})
}

func (o *pendingFile) Abort() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.done {
		return nil
	}
	o.done = true
	o.fd.close()
	return o.store.discard(o.temp, nil)
}

const tempMark = ".tmp-"

// tempName returns a hidden name for a file that will be called name. It contains the process id, so that a
// person who finds one can tell whether it is in use.
func tempName(name string) string {
	if len(name) > 200 { // 255 is the limit of most file systems
		name = name[:200]
	}
	return "." + name + tempMark + strconv.Itoa(os.Getpid()) + "-" + strconv.FormatUint(rand.Uint64(), 36)
}

// isTemp recognises names made by tempName.
func isTemp(name string) bool {
	if !strings.HasPrefix(name, ".") {
		return false
	}
	i := strings.LastIndex(name, tempMark)
	if i < 0 {
		return false
	}
	pid, random, ok := strings.Cut(name[i+len(tempMark):], "-")
	if !ok || random == "" {
		return false
	}
	_, err := strconv.ParseUint(pid, 10, 32)
	return err == nil
}

// syncFolder flushes a folder's entries to the device.
func syncFolder(dir string) error {
	fd, err := openFD(dir, unix.O_RDONLY|unix.O_DIRECTORY, 0)
	if err == nil {
		err = ignoringEINTR(func() error { return unix.Fsync(fd) })
		closeFD(fd)
	}
	// some file systems cannot flush a folder, and say so in this way
	if err == nil || err == syscall.EINVAL || err == syscall.ENOTSUP {
		return nil
	}
	return &fs.PathError{Op: "sync", Path: dir, Err: err}
}
