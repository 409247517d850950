//go:build unix

package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"

	"strata/pkg/smallfile"
)

// FolderStore reads and writes a folder of the file system, one file per object. It follows symbolic links; one
// that leads to nothing, at an object or above it, is a [smallfile.LostError]. The store remembers the last folder
// above which it has looked for such links.
//
// It makes system calls directly instead of using os.File, which would register every file with the poller
// first: chunks are many and small, and reading one takes exactly open, fstat, pread and close.
type FolderStore struct {
	root   string // as the caller named it, cleaned
	prefix string // what goes before a key to make a path
	sync   bool

	reading Reading
	sound   *atomic.Pointer[string] // a folder in which a missing file is just missing
}

var _ Writer = (*FolderStore)(nil)

// FolderOption configures a [FolderStore].
type FolderOption func(*FolderStore)

// Sync makes writes durable: Put, Commit and Delete return only after the file and the folders that name it
// have been flushed to the device, so that they survive a power cut. Without it, writes survive a crash of
// the process but possibly not of the machine.
func Sync(on bool) FolderOption { return func(s *FolderStore) { s.sync = on } }

// Folder returns the store in the folder path, which need not exist before the first write. It does no I/O.
func Folder(path string, opts ...FolderOption) *FolderStore {
	root := filepath.Clean(path)
	s := &FolderStore{root: root, prefix: root + "/", sound: new(atomic.Pointer[string])}
	if root == "/" {
		s.prefix = root
	}
	for _, o := range opts {
		o(s)
	}
	return s
}

// Location returns the path of key's file.
func (s *FolderStore) Location(key string) string {
	if key == "" {
		return s.root
	}
	return s.prefix + key
}

// Close does nothing: a FolderStore holds no resources.
func (s *FolderStore) Close() error { return nil }

// Get reads the whole file of key; see [Store].
func (s *FolderStore) Get(ctx context.Context, key string, dst []byte, limit int64) ([]byte, error) {
	fd, size, err := s.open(ctx, key)
	if err != nil {
		return nil, err
	}
	dst, err = s.readAll(ctx, key, fd, size, dst, limit)
	closeFD(fd)
	return dst, err
}

func (s *FolderStore) readAll(ctx context.Context, key string, fd int, size int64, dst []byte, limit int64) ([]byte, error) {
	if limit >= 0 && size > limit {
		return nil, tooLarge(s.Location(key), size, limit)
	}
	dst, err := sized(dst, size)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.Location(key), err)
	}
	n, err := s.read(ctx, fd, size, dst, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "read", Path: s.Location(key), Err: err}
	}
	if n < len(dst) {
		return nil, shrank(s.Location(key), size, int64(n))
	}
	return dst, nil
}

// Open opens the file of key; see [Store]. The result is a [FileObject].
func (s *FolderStore) Open(ctx context.Context, key string) (Object, error) {
	fd, size, err := s.open(ctx, key)
	if err != nil {
		return nil, err
	}
	o := &fileObject{path: s.Location(key), size: size, reading: s.reading}
	if s.reading == ReadMapped {
		if o.fd.mapped, err = mapFile(fd, size); err != nil {
			closeFD(fd)
			return nil, &fs.PathError{Op: "read", Path: o.path, Err: err}
		}
	}
	o.fd.init(fd)
	return o, nil
}

func (s *FolderStore) open(ctx context.Context, key string) (fd int, size int64, err error) {
	if err := checkKey(key); err != nil {
		return -1, 0, fmt.Errorf("%s: %w", s.root, err)
	}
	if err := ctx.Err(); err != nil {
		return -1, 0, err
	}
	fd, size, err = s.openToRead(s.prefix + key)
	if errors.Is(err, unix.ENOENT) {
		err = s.absent(s.prefix+key, err)
	}
	return fd, size, err
}

// absent returns the error for a file that does not exist. Since chunks of a single value are missing by the million,
// the folders above are examined only for the first missing file of a folder.
func (s *FolderStore) absent(path string, err error) error {
	folder := path[:strings.LastIndexByte(path, '/')+1]
	if known := s.sound.Load(); known != nil && *known == folder {
		var st unix.Stat_t
		if unix.Lstat(path, &st) == unix.ENOENT {
			return err
		}
	}
	if lost := smallfile.Lost(path); lost != nil {
		return lost
	}
	s.sound.Store(&folder)
	return err
}

// noFile is a system error that means [ErrNoFile].
type noFile struct{ syscall.Errno }

func (e noFile) Is(target error) bool { return target == ErrNoFile || e.Errno.Is(target) }
func (e noFile) Unwrap() error        { return e.Errno }

// openRegular opens a regular file for reading, with additional flags, and returns its size.
func openRegular(path string, flags int) (fd int, size int64, err error) {
	// O_NONBLOCK: a named pipe would wait for its writer
	fd, err = openFD(path, unix.O_RDONLY|unix.O_NONBLOCK|flags, 0)
	var st unix.Stat_t
	switch {
	case err == unix.ENOTDIR, err == unix.ELOOP:
		return -1, 0, &fs.PathError{Op: "open", Path: path, Err: noFile{err.(syscall.Errno)}}
	case err == unix.ENXIO && unix.Stat(path, &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFSOCK:
		return -1, 0, &fs.PathError{Op: "open", Path: path, Err: ErrNoFile}
	case err != nil:
		return -1, 0, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	if err := ignoringEINTR(func() error { return unix.Fstat(fd, &st) }); err != nil {
		closeFD(fd)
		return -1, 0, &fs.PathError{Op: "stat", Path: path, Err: err}
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFREG:
		return fd, st.Size, nil
	case unix.S_IFDIR:
		err = noFile{syscall.EISDIR}
	default:
		err = ErrNoFile
	}
	closeFD(fd)
	return -1, 0, &fs.PathError{Op: "open", Path: path, Err: err}
}

// List lists the folder prefix; see [Store].
func (s *FolderStore) List(ctx context.Context, prefix string) ([]Entry, error) {
	if err := checkPrefix(prefix); err != nil {
		return nil, fmt.Errorf("%s: %w", s.root, err)
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	dir := s.Location(prefix)
	names, err := os.ReadDir(dir)
	if err != nil {
		return nil, smallfile.Cause(dir, err)
	}
	entries := make([]Entry, 0, len(names))
	for _, d := range names {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if isTemp(d.Name()) {
			continue
		}
		info, err := d.Info()
		if err == nil && info.Mode()&fs.ModeSymlink != 0 {
			info, err = os.Stat(dir + "/" + d.Name())
		}
		switch {
		case errors.Is(err, fs.ErrNotExist):
			if d.Name()[0] != '.' && smallfile.Lost(dir+"/"+d.Name()) != nil { // else it was removed meanwhile, or is an editor's lock
				entries = append(entries, Entry{Name: d.Name(), Lost: true})
			}
		case err != nil:
			return nil, err
		case info.IsDir():
			entries = append(entries, Entry{Name: d.Name(), Dir: true})
		case info.Mode().IsRegular():
			entries = append(entries, Entry{Name: d.Name(), Size: info.Size()})
		}
	}
	return entries, nil
}

// fileObject is an open file.
type fileObject struct {
	fd   descriptor
	path string
	size int64

	reading Reading
}

var _ FileObject = (*fileObject)(nil)

func (o *fileObject) Size() int64 { return o.size }

func (o *fileObject) File() (uintptr, int64) { return uintptr(o.fd.fd), 0 }

func (o *fileObject) ReadAt(ctx context.Context, p []byte, off int64) (int, error) {
	want, eof, err := clampRange(len(p), off, o.size)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", o.path, err)
	}
	if !o.fd.acquire() {
		return 0, &fs.PathError{Op: "read", Path: o.path, Err: fs.ErrClosed}
	}
	var n int
	switch o.reading {
	case ReadDirect:
		n, err = preadDirect(ctx, o.fd.fd, p[:want], off)
	case ReadMapped:
		n, err = o.fd.mapped.read(ctx, p[:want], off)
	default:
		n, err = pread(ctx, o.fd.fd, p[:want], off)
	}
	o.fd.release()
	switch {
	case err != nil:
		return n, &fs.PathError{Op: "read", Path: o.path, Err: err}
	case n < want:
		return n, shrank(o.path, o.size, off+int64(n))
	}
	return n, eof
}

func (o *fileObject) Close() error {
	o.fd.close()
	return nil
}

// descriptor is a file descriptor that stays open until its last user is done: if it were closed earlier,
// another file could get its number.
type descriptor struct {
	fd     int
	mapped *mapping     // of the file; nil: it is not mapped
	users  atomic.Int64 // the holder counts as one until it closes
	closed atomic.Bool
	err    error // of close; for the one who closed last
}

func (d *descriptor) init(fd int) {
	d.fd = fd
	d.users.Store(1)
}

func (d *descriptor) acquire() bool {
	for {
		n := d.users.Load()
		if n == 0 || d.closed.Load() {
			return false
		}
		if d.users.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

func (d *descriptor) release() {
	if d.users.Add(-1) == 0 {
		d.mapped.close()
		d.err = closeFD(d.fd)
	}
}

// close closes the descriptor once.
func (d *descriptor) close() {
	if !d.closed.Swap(true) {
		d.release()
	}
}
