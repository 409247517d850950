package squashfs

import (
	"fmt"
	"io/fs"
	"path"
	"strings"
)

// Limits of a tree.
const (
	maxDepth   = 256
	maxEntries = 4 << 20
	maxLinks   = 40
)

// Walk calls fn with the entry at a path, which may not be below a symbolic link, and with all entries below
// it: folders before their content, in the order of names. [fs.SkipDir] skips the content of a folder.
func (s *Reader) Walk(path string, fn func(*Entry) error) error {
	e, err := s.Lookup(path)
	if err != nil {
		return err
	}
	w := walker{s: s, fn: fn, seen: map[int64]bool{}}
	return w.walk(e, 0)
}

type walker struct {
	s    *Reader
	fn   func(*Entry) error
	seen map[int64]bool // folders, by the place of their listing
	n    int
}

func (w *walker) walk(e *Entry, depth int) error {
	if w.n++; w.n > maxEntries || depth > maxDepth {
		return bad("%s: more than %d entries or %d levels", e.Path, maxEntries, maxDepth)
	}
	err := w.fn(e)
	if err == fs.SkipDir && e.Mode.IsDir() {
		return nil
	}
	if err != nil || !e.Mode.IsDir() {
		return err
	}
	if e.listingSize > 0 {
		place := e.listing<<16 | int64(e.listingOffset)
		if w.seen[place] {
			return bad("%s: the folder lies in itself", e.Path)
		}
		w.seen[place] = true
	}
	refs, err := w.s.list(e)
	if err != nil {
		return err
	}
	for _, r := range refs {
		child, err := w.s.inode(r.ref, path.Join(e.Path, r.name))
		if err != nil {
			return err
		}
		if err := w.walk(child, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// Lookup finds the entry at a path. It follows symbolic links in parent folders, within the root, but not in
// the last name.
func (s *Reader) Lookup(name string) (*Entry, error) {
	rest := strings.Split(path.Clean("/" + name)[1:], "/")
	root, err := s.inode(s.super.RootInode, "")
	if err != nil {
		return nil, err
	}
	e, links := root, 0
	for len(rest) > 0 {
		part := rest[0]
		rest = rest[1:]
		if part == "" {
			continue
		}
		refs, err := s.list(e)
		if err != nil {
			return nil, err
		}
		var child *Entry
		for _, r := range refs {
			if r.name == part {
				if child, err = s.inode(r.ref, path.Join(e.Path, part)); err != nil {
					return nil, err
				}
			}
		}
		if child == nil {
			return nil, &fs.PathError{Op: "open", Path: path.Join("/", name), Err: fs.ErrNotExist}
		}
		if child.Mode&fs.ModeSymlink != 0 && len(rest) > 0 {
			if links++; links > maxLinks {
				return nil, fmt.Errorf("/%s: more than %d links on the way", name, maxLinks)
			}
			target := child.Target
			if !path.IsAbs(target) {
				target = path.Join("/", e.Path, target)
			}
			rest = append(strings.Split(path.Clean(target)[1:], "/"), rest...)
			e = root
			continue
		}
		e = child
	}
	return e, nil
}

type reference struct {
	name string
	ref  uint64
}

// list reads the listing of a folder.
func (s *Reader) list(e *Entry) ([]reference, error) {
	if !e.Mode.IsDir() {
		return nil, &fs.PathError{Op: "open", Path: "/" + e.Path, Err: fs.ErrNotExist}
	}
	c := &cursor{s, int64(s.super.DirTable) + e.listing, e.listingOffset}
	var out []reference
	for left := e.listingSize; left > 0; {
		head, err := c.numbers(4, 4, 4) // entries less one, place of their inodes' block, number of the first
		if err != nil {
			return nil, err
		}
		left -= 12
		if head[0] >= 256 {
			return nil, bad("/%s: %d entries at once", e.Path, head[0]+1)
		}
		for range head[0] + 1 {
			v, err := c.numbers(2, 2, 2, 2) // offset of the inode, its number's difference, type, length of the name less one
			if err != nil {
				return nil, err
			}
			name := make([]byte, v[3]+1)
			if len(name) > 256 {
				return nil, bad("/%s: a name of %d bytes", e.Path, len(name))
			}
			if err := c.read(name); err != nil {
				return nil, err
			}
			left -= 8 + int64(len(name))
			n := string(name)
			if n == "." || n == ".." || strings.ContainsAny(n, "/\x00") {
				return nil, bad("/%s: the name %q", e.Path, n)
			}
			if len(out) > 0 && out[len(out)-1].name >= n {
				return nil, bad("/%s: %q is not in the order of names", e.Path, n)
			}
			out = append(out, reference{n, head[1]<<16 | v[0]})
		}
	}
	return out, nil
}
