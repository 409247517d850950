package sysinfo

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"
)

// Limits of reading a root folder: bytes of a file, entries of a folder, and symbolic links in a path.
const (
	mostBytes = 1 << 20
	mostNames = 4096
	mostLinks = 40
)

// Root is a machine's root folder.
type Root struct {
	dir  string
	keep *Recording // nil: what is read is not kept
}

// Live returns the root folder of this machine.
func Live() Root { return Root{dir: "/"} }

// At returns the root folder of a recorded machine. If dir is not one, it returns an error.
func At(dir string) (Root, error) {
	info, err := os.Stat(dir)
	if err != nil {
		return Root{}, fmt.Errorf("recorded machine: %w", err)
	}
	if !info.IsDir() {
		return Root{}, fmt.Errorf("recorded machine: %s is not a folder: want one with proc, sys and etc of a machine", dir)
	}
	return Root{dir: dir}, nil
}

// Live reports whether it is this machine.
func (r Root) Live() bool { return r.dir == "/" }

var errLinks = errors.New("too many symbolic links")

// resolve finds the file that a name leads to, as a name below the root folder. Symbolic links that are
// absolute or lead above the root begin at the root folder, as they do for processes inside it.
func (r Root) resolve(name string) (string, error) {
	rest := strings.Split(path.Clean("/"+name), "/")[1:]
	at, links := "", 0
	for len(rest) > 0 {
		part := rest[0]
		rest = rest[1:]
		switch part {
		case "", ".":
			continue
		case "..":
			at = path.Dir("/" + at)[1:]
			continue
		}
		next := path.Join(at, part)
		info, err := r.lstat(next)
		if err != nil {
			return "", err
		}
		if info.Mode()&fs.ModeSymlink == 0 {
			at = next
			continue
		}
		if links++; links > mostLinks {
			return "", &fs.PathError{Op: "open", Path: name, Err: errLinks}
		}
		target, err := os.Readlink(filepath.Join(r.dir, next))
		if err != nil {
			return "", err
		}
		r.keep.link(next, target)
		if path.IsAbs(target) {
			at = ""
		}
		rest = append(strings.Split(target, "/"), rest...)
		if len(rest) > mostNames {
			return "", &fs.PathError{Op: "open", Path: name, Err: errLinks}
		}
	}
	return "/" + at, nil
}

// read returns the first MiB of a file.
func (r Root) read(name string) ([]byte, error) {
	real, err := r.resolve(name)
	if err != nil {
		return nil, err
	}
	// A pipe without a writer must not block.
	f, err := os.OpenFile(filepath.Join(r.dir, real), os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, &fs.PathError{Op: "open", Path: name, Err: errors.New("not a regular file")}
	}
	b, err := io.ReadAll(io.LimitReader(f, mostBytes))
	if err == nil {
		r.keep.file(real[1:], b)
	}
	return b, err
}

// text returns a file's content without surrounding white space, or the reason why it could not be read.
func (r Root) text(name string) Fact[string] {
	b, err := r.read(name)
	if err != nil {
		return Fact[string]{Reason: why(name, err)}
	}
	return known(strings.TrimSpace(string(b)))
}

// why returns an error about a file in one line, under the name that the file has on the machine.
func why(name string, err error) string {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return "there is no " + name
	}
	var p *fs.PathError
	if errors.As(err, &p) {
		err = p.Err
	}
	return name + ": " + err.Error()
}

// list returns the names in a folder in alphabetical order; none if it cannot be read.
func (r Root) list(name string) []string {
	names, _ := r.entries(name)
	return names
}

func (r Root) entries(name string) ([]string, error) {
	real, err := r.resolve(name)
	if err != nil {
		return nil, err
	}
	f, err := os.OpenFile(filepath.Join(r.dir, real), os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_DIRECTORY, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	names, err := f.Readdirnames(mostNames)
	if err == io.EOF {
		err = nil
	}
	for _, n := range names {
		r.keep.found(path.Join(real, n)[1:], false)
	}
	sortNames(names)
	return names, err
}

func (r Root) exists(name string) bool {
	_, err := r.resolve(name)
	return err == nil
}

// first returns the first of the names that exists, or "".
func (r Root) first(names ...string) string {
	for _, n := range names {
		if r.exists(n) {
			return n
		}
	}
	return ""
}
