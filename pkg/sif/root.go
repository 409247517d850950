package sif

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// Root is the root of an image under construction: a folder. Names are relative to it, with or without a
// leading slash; nothing outside is touched, whatever links it contains. Owners do not matter, since the
// image gives all files to root.
type Root struct {
	root *os.Root
	made map[string]bool // folders whose permissions somebody asked for
}

// NewRoot returns a root in an empty folder.
func NewRoot(dir string) (*Root, error) {
	r, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	return &Root{r, map[string]bool{}}, r.Chmod(".", 0o755)
}

// Close releases the folder without changing it.
func (r *Root) Close() error { return r.root.Close() }

// Dir returns the folder.
func (r *Root) Dir() string { return r.root.Name() }

func local(name string) string { return path.Clean("/" + name)[1:] }

// Mkdir makes a folder and its parents. An existing folder gets these permissions, except set-user-id and
// set-group-id; a builder without root always keeps access.
func (r *Root) Mkdir(name string, perm fs.FileMode) error {
	name = local(name)
	if name == "" {
		return nil
	}
	if err := r.parents(name + "/x"); err != nil {
		return err
	}
	r.made[name] = true
	return r.root.Chmod(name, perm&(fs.ModePerm|fs.ModeSticky)|0o700)
}

// parents makes the folders around a name, with the usual permissions.
func (r *Root) parents(name string) error {
	parent := path.Dir(name)
	if parent == "." || r.made[parent] {
		return nil
	}
	if info, err := r.root.Stat(parent); err == nil && info.IsDir() {
		return nil
	}
	if err := r.parents(parent); err != nil {
		return err
	}
	if err := r.root.Mkdir(parent, 0o755); err != nil {
		return err
	}
	return r.root.Chmod(parent, 0o755)
}

// Write creates or replaces a file.
func (r *Root) Write(name string, perm fs.FileMode, content io.Reader) error {
	name = local(name)
	if err := r.parents(name); err != nil {
		return err
	}
	if err := r.root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err // a folder that holds something
	}
	f, err := r.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, content)
	if e := f.Chmod(perm&fs.ModePerm | 0o400); err == nil {
		err = e
	}
	if e := f.Close(); err == nil {
		err = e
	}
	return err
}

// WriteText writes a text file like [Root.Write].
func (r *Root) WriteText(name string, perm fs.FileMode, text string) error {
	return r.Write(name, perm, strings.NewReader(text))
}

// Symlink makes a symbolic link.
func (r *Root) Symlink(target, name string) error {
	name = local(name)
	if err := r.parents(name); err != nil {
		return err
	}
	if err := r.root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return r.root.Symlink(target, name)
}

// Link gives a file a second name.
func (r *Root) Link(old, name string) error {
	old, name = local(old), local(name)
	if err := r.parents(name); err != nil {
		return err
	}
	if err := r.root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return r.root.Link(old, name)
}

// Remove removes a file, or a folder with its content. A name that does not exist is no error.
func (r *Root) Remove(name string) error {
	if name = local(name); name == "" {
		return errors.New("the root itself cannot be removed")
	}
	return r.root.RemoveAll(name)
}

// Open opens a file for reading.
func (r *Root) Open(name string) (*os.File, error) { return r.root.Open(local(name)) }

// Read returns the content of a file.
func (r *Root) Read(name string) ([]byte, error) { return r.root.ReadFile(local(name)) }

// Readlink returns the target of a symbolic link.
func (r *Root) Readlink(name string) (string, error) { return r.root.Readlink(local(name)) }

// Exists reports whether a name exists, dead links included.
func (r *Root) Exists(name string) bool {
	_, err := r.root.Lstat(local(name))
	return err == nil
}

// Files returns the names of all files and links, sorted, with a slash in front.
func (r *Root) Files() ([]string, error) {
	var names []string
	err := fs.WalkDir(r.root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			names = append(names, "/"+name)
		}
		return err
	})
	slices.Sort(names)
	return names, err
}

// Copy copies a file of this machine, or a folder with its content, to a name in the root. It follows links
// and copies their targets.
func (r *Root) Copy(source, name string) error {
	info, err := os.Stat(source)
	if err != nil {
		return err
	}
	return r.copy(source, name, info, 0)
}

func (r *Root) copy(source, name string, info fs.FileInfo, depth int) error {
	switch {
	case depth > 128:
		return fmt.Errorf("%s: more than 128 folders deep: a link that leads to itself?", source)
	case info.Mode().IsRegular():
		f, err := os.Open(source)
		if err != nil {
			return err
		}
		defer f.Close()
		return r.Write(name, info.Mode(), f)
	case !info.IsDir():
		return fmt.Errorf("%s: neither a file nor a folder", source)
	}
	if err := r.Mkdir(name, info.Mode()); err != nil {
		return err
	}
	entries, err := os.ReadDir(source)
	if err != nil {
		return err
	}
	for _, e := range entries {
		from := filepath.Join(source, e.Name())
		info, err := os.Stat(from)
		if err != nil {
			return err
		}
		if err := r.copy(from, path.Join(name, e.Name()), info, depth+1); err != nil {
			return err
		}
	}
	return nil
}
