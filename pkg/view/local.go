package view

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"

	"strata/pkg/zarr/store"
)

// Local is a local folder whose files are opened without leaving it: links that lead out are refused, also if
// they were put there a moment ago, and so is anything but a regular file. Links inside of the folder are
// followed. It is a [store.Store]; List leaves out what leads out, and Outside names it.
type Local struct {
	root  *os.Root
	where string

	mu      sync.Mutex
	outside map[string][]string // by the folder in which they lie
}

var _ store.Store = (*Local)(nil)

// errOutside is wrapped by errors about links that lead out of a folder.
var errOutside = errors.New("is, or lies behind, a link that leads out of the folder")

// OpenLocal opens a folder. If its path is a link, that is followed once, here.
func OpenLocal(folder string) (*Local, error) {
	root, err := os.OpenRoot(folder)
	if err != nil {
		return nil, err
	}
	return newLocal(root, folder), nil
}

// below opens the folder at a key, without leaving this one.
func (l *Local) below(key string) (*Local, error) {
	root, err := l.root.OpenRoot(name(key))
	if err != nil {
		return nil, l.explain(key, err)
	}
	return newLocal(root, l.Location(key)), nil
}

func newLocal(root *os.Root, where string) *Local {
	return &Local{root: root, where: where, outside: map[string][]string{}}
}

// name returns a key as a name for os.Root.
func name(key string) string {
	if key == "" {
		return "."
	}
	return filepath.FromSlash(key)
}

// Close closes the folder. A second Close does nothing.
func (l *Local) Close() error { return l.root.Close() }

// Location returns the path of a key's file.
func (l *Local) Location(key string) string { return filepath.Join(l.where, filepath.FromSlash(key)) }

// Outside returns the paths of links that lead out and that List therefore left out, sorted.
func (l *Local) Outside() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Sorted(func(yield func(string) bool) {
		for _, list := range l.outside {
			for _, path := range list {
				if !yield(path) {
					return
				}
			}
		}
	})
}

// forget removes the links in a folder from the result of Outside.
func (l *Local) forget(key string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.outside, key)
}

// explain names the file of an error.
func (l *Local) explain(key string, err error) error {
	var errno syscall.Errno
	if !errors.As(err, &errno) && !errors.Is(err, fs.ErrClosed) { // os.Root has no other name for it
		return fmt.Errorf("%s: %w", l.Location(key), errOutside)
	}
	var p *fs.PathError
	if errors.As(err, &p) {
		err = p.Err
	}
	return &fs.PathError{Op: "open", Path: l.Location(key), Err: err}
}

// file opens a regular file. It trusts the open descriptor alone, since another file may get the name meanwhile.
func (l *Local) file(ctx context.Context, key string) (*os.File, int64, error) {
	if !store.ValidKey(key) {
		return nil, 0, fmt.Errorf("%s: %w %q", l.where, store.ErrKey, key)
	}
	if err := ctx.Err(); err != nil {
		return nil, 0, err
	}
	for tries := 1; ; tries++ {
		f, size, err := l.regular(key)
		switch loop := errors.Is(err, syscall.ELOOP); {
		case (loop || errors.Is(err, syscall.EINVAL)) && tries < mostTries: // a file and a link have changed places
		case loop:
			return nil, 0, &fs.PathError{Op: "open", Path: l.Location(key), Err: store.ErrNoFile}
		default:
			return f, size, err
		}
	}
}

// mostTries is the maximum number of attempts to open a file that is replaced at the same time.
const mostTries = 20

// regular opens a regular file, or fails with EINVAL or ELOOP where a file and a link change places.
func (l *Local) regular(key string) (*os.File, int64, error) {
	info, err := l.root.Stat(name(key)) // opening a device may have effects
	if err != nil {
		return nil, 0, l.explain(key, err)
	}
	if !info.Mode().IsRegular() {
		return nil, 0, &fs.PathError{Op: "open", Path: l.Location(key), Err: store.ErrNoFile}
	}
	f, err := l.root.OpenFile(name(key), os.O_RDONLY|syscall.O_NONBLOCK, 0) // a pipe would wait for its writer
	if err != nil {
		return nil, 0, l.explain(key, err)
	}
	if info, err = f.Stat(); err == nil && !info.Mode().IsRegular() {
		err = &fs.PathError{Op: "open", Path: l.Location(key), Err: store.ErrNoFile}
	}
	if err != nil {
		return nil, 0, errors.Join(err, f.Close())
	}
	return f, info.Size(), nil
}

// Get reads a whole file; see [store.Store].
func (l *Local) Get(ctx context.Context, key string, dst []byte, limit int64) ([]byte, error) {
	o, err := l.Open(ctx, key)
	if err != nil {
		return nil, err
	}
	defer o.Close()
	if limit >= 0 && o.Size() > limit {
		return nil, fmt.Errorf("%s: %d bytes, %d are allowed: %w", l.Location(key), o.Size(), limit, store.ErrTooLarge)
	}
	dst = slices.Grow(dst[:0], int(o.Size()))[:o.Size()]
	if _, err := o.ReadAt(ctx, dst, 0); err != nil {
		return nil, err
	}
	return dst, nil
}

// Open opens a file; see [store.Store].
func (l *Local) Open(ctx context.Context, key string) (store.Object, error) {
	f, size, err := l.file(ctx, key)
	if err != nil {
		return nil, err
	}
	return &localFile{f, size}, nil
}

// List lists a folder; see [store.Store].
func (l *Local) List(ctx context.Context, prefix string) ([]store.Entry, error) {
	if prefix != "" && !store.ValidKey(prefix) {
		return nil, fmt.Errorf("%s: %w %q", l.where, store.ErrKey, prefix)
	}
	dir, err := l.root.OpenFile(name(prefix), os.O_RDONLY|syscall.O_DIRECTORY, 0)
	if err != nil {
		return nil, l.explain(prefix, err)
	}
	names, err := dir.Readdirnames(-1)
	if err = errors.Join(err, dir.Close()); err != nil {
		return nil, err
	}
	slices.Sort(names)
	var entries []store.Entry
	l.forget(prefix) // it is listed anew
	for _, n := range names {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		key := store.Join(prefix, n)
		info, err := l.root.Stat(name(key))
		switch {
		case err != nil:
			if err = l.explain(key, err); errors.Is(err, errOutside) && !strings.HasPrefix(n, ".") {
				l.mu.Lock()
				l.outside[prefix] = append(l.outside[prefix], l.Location(key))
				l.mu.Unlock()
			}
		case info.IsDir():
			entries = append(entries, store.Entry{Name: n, Dir: true})
		case info.Mode().IsRegular():
			entries = append(entries, store.Entry{Name: n, Size: info.Size()})
		}
	}
	return entries, nil
}

// localFile is an open file of a Local.
type localFile struct {
	*os.File
	size int64
}

// ReadAt reads a part of the file; see [store.Object].
func (f *localFile) ReadAt(ctx context.Context, p []byte, off int64) (int, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	return f.File.ReadAt(p, off)
}

// Size returns the size that the file had when it was opened.
func (f *localFile) Size() int64 { return f.size }
