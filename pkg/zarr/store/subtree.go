//go:build unix

package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// RemoveAll deletes every object below prefix, which must not be the root. It is idempotent: it succeeds if
// there is nothing. In a [FolderStore] it also removes the folder itself, with the hidden files of killed
// writers.
func RemoveAll(ctx context.Context, w Writer, prefix string) error {
	if err := checkKey(prefix); err != nil {
		return fmt.Errorf("%s: %w", w.Location(prefix), err)
	}
	if s, ok := w.(*FolderStore); ok {
		return s.removeAll(ctx, prefix)
	}
	err := Each(ctx, w, prefix, func(key string) error { return w.Delete(ctx, key) })
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// CopyAll copies every object below from to the same name below to. In a [FolderStore] the copies are hard
// links if the file system supports them; this is safe because objects are replaced as a whole and never
// changed.
func CopyAll(ctx context.Context, w Writer, from, to string) error {
	buffer := make([]byte, 1<<20)
	return Each(ctx, w, from, func(key string) error {
		target := Join(to, key[len(from)+1:])
		if s, ok := w.(*FolderStore); ok && s.link(key, target) == nil {
			return nil
		}
		return copyObject(ctx, w, key, target, buffer)
	})
}

// errSome ends a walk that has found an object.
var errSome = errors.New("not empty")

// IsEmpty reports whether there is no object below prefix. Empty folders do not count.
func IsEmpty(ctx context.Context, st Store, prefix string) (bool, error) {
	err := Each(ctx, st, prefix, func(string) error { return errSome })
	switch {
	case err == errSome:
		return false, nil
	case err == nil, errors.Is(err, fs.ErrNotExist):
		return true, nil
	}
	return false, err
}

// Each calls f for the objects below a prefix, those of a folder before those of its subfolders.
func Each(ctx context.Context, st Store, prefix string, f func(key string) error) error {
	entries, err := st.List(ctx, prefix)
	if err != nil {
		return err
	}
	for _, dirs := range []bool{false, true} {
		for _, e := range entries {
			key := Join(prefix, e.Name)
			switch {
			case e.Dir != dirs:
			case e.Dir:
				err = Each(ctx, st, key, f)
			default:
				err = f(key)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// copyObject copies an object piece by piece: a shard may be larger than memory.
func copyObject(ctx context.Context, w Writer, from, to string, buffer []byte) (err error) {
	src, err := w.Open(ctx, from)
	if err != nil {
		return err
	}
	defer src.Close()
	dst, err := w.Create(ctx, to)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, dst.Abort()) }()
	for off := int64(0); off < src.Size(); {
		n, err := src.ReadAt(ctx, buffer[:min(int64(len(buffer)), src.Size()-off)], off)
		if err != nil && err != io.EOF {
			return err
		}
		if _, err := dst.WriteAt(buffer[:n], off); err != nil {
			return err
		}
		off += int64(n)
	}
	return dst.Commit()
}

func (s *FolderStore) removeAll(ctx context.Context, prefix string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	path := s.prefix + prefix
	if err := os.RemoveAll(path); err != nil {
		return err
	}
	if parent := filepath.Dir(path); s.sync {
		if _, err := os.Lstat(parent); err == nil {
			return syncFolder(parent)
		}
	}
	return nil
}

// link gives a file a second name.
func (s *FolderStore) link(from, to string) error {
	path := s.prefix + to
	if err := s.makeFolders(filepath.Dir(path)); err != nil {
		return err
	}
	if err := os.Link(s.prefix+from, path); err != nil {
		return err
	}
	if s.sync {
		return syncFolder(filepath.Dir(path))
	}
	return nil
}
