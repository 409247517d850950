package sif

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// plan describes a new root and the command that runs in it: the first half of a run makes the plan, the
// second carries it out.
type plan struct {
	Root  string   `json:"root"`  // of the image, unpacked
	Mount string   `json:"mount"` // an empty folder, where the new root is put together
	Binds []Bind   `json:"binds"`
	Open  []string `json:"open"` // folders of the image that are made anew because something is put into them
	Make  []Bind   `json:"make"` // what is put there, to bind on
	Dirs  []string `json:"dirs"` // working folders to try
	Args  []string `json:"args"`
	Env   []string `json:"env"`
}

// maxLinks is the maximum number of symbolic links on a path.
const maxLinks = 40

// inRoot resolves a path within a root, following symbolic links as if the root were "/". The result need not
// exist.
func inRoot(root, name string) (string, error) {
	rest := strings.Split(path.Clean("/" + name)[1:], "/")
	at, links := "/", 0
	for len(rest) > 0 {
		next := path.Join(at, rest[0])
		rest = rest[1:]
		target, err := os.Readlink(filepath.Join(root, next))
		if err != nil {
			at = next
			continue
		}
		if links++; links > maxLinks {
			return "", fmt.Errorf("%w %s: more than %d links on the way", ErrBind, name, maxLinks)
		}
		if !path.IsAbs(target) {
			target = path.Join(at, target)
		}
		rest = append(strings.Split(path.Clean("/" + target)[1:], "/"), rest...)
		at = "/"
	}
	return at, nil
}

// below reports whether a path lies below a folder.
func below(name, dir string) bool { return dir == "/" || strings.HasPrefix(name, dir+"/") }

// arrange determines where binds lie in the root, and which files and folders have to be created there.
func (p *plan) arrange(binds []Bind) error {
	open := map[string]bool{}
	for _, b := range binds {
		source, err := os.Stat(b.Source)
		if err != nil {
			if errors.Is(err, fs.ErrNotExist) {
				return fmt.Errorf("%w %s: no such file or folder", ErrBind, b.Source)
			}
			return fmt.Errorf("%w %s: %w", ErrBind, b.Source, plain(err))
		}
		if b.Target, err = inRoot(p.Root, b.Target); err != nil {
			return err
		}
		if b.Target == "/" {
			return fmt.Errorf("%w %s: the root of the image cannot be replaced", ErrBind, b.Source)
		}
		p.Binds = append(p.Binds, b)
		inside := false
		for _, other := range p.Binds[:len(p.Binds)-1] {
			if below(b.Target, other.Target) {
				inside = true
				there, err := os.Stat(filepath.Join(other.Source, strings.TrimPrefix(b.Target, other.Target)))
				if err != nil || there.IsDir() != source.IsDir() {
					return fmt.Errorf("%w %s: there is no %s in %s to bind it to", ErrBind, b.Source, b.Target, other.Source)
				}
			}
		}
		there, err := os.Stat(filepath.Join(p.Root, b.Target))
		switch {
		case inside:
		case err == nil && there.IsDir() == source.IsDir():
		case err == nil:
			return fmt.Errorf("%w %s: %s is a folder on one side and a file on the other", ErrBind, b.Source, b.Target)
		default:
			p.Make = append(p.Make, b)
			for dir := path.Dir(b.Target); ; dir = path.Dir(dir) {
				if info, err := os.Stat(filepath.Join(p.Root, dir)); err == nil {
					if !info.IsDir() {
						return fmt.Errorf("%w %s: %s is a file", ErrBind, b.Source, dir)
					}
					open[dir] = true
				}
				if dir == "/" {
					break
				}
			}
		}
	}
	open["/"] = true
	for dir := range open {
		p.Open = append(p.Open, dir)
	}
	return nil
}
