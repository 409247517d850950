package atomic

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"strata/pkg/host"
)

// mayReplace returns an error if an output's place is taken, unless replacing is allowed and the place holds
// nothing but what the program writes.
func (g *Group) mayReplace(o *Output) error {
	info, err := os.Lstat(o.final)
	if errors.Is(err, fs.ErrNotExist) {
		o.old = nil
		return nil
	}
	if err != nil {
		return fmt.Errorf("output %s: %w", o.path, cause(err))
	}
	if !g.opt.Overwrite {
		return refuse(ErrExists, "output %s exists: give --overwrite (-f) to replace it", o.path)
	}
	switch {
	case o.file && !info.Mode().IsRegular():
		return refuse(ErrNotOurs, "output %s exists and is not a regular file: not replaced", o.path)
	case !o.file && !info.IsDir():
		return refuse(ErrNotOurs, "output %s exists and is not a folder: not replaced", o.path)
	case host.IsMount(o.final):
		return refuse(ErrNotOurs, "output %s is a mount point: not replaced", o.path)
	}
	o.old = accessOf(info)
	if !o.file {
		if cwd, err := os.Getwd(); err == nil {
			if cwd, err = filepath.EvalSymlinks(cwd); err == nil && within(cwd, o.final) {
				return refuse(ErrPlace, "output %s holds the current folder: not replaced", o.path)
			}
		}
	}
	return o.ours(o.final)
}

// ours returns an error if the file or folder at path, which the output will replace, contains something that the
// program does not write.
func (o *Output) ours(path string) error {
	check := o.foreign
	switch {
	case check != nil:
	case o.file:
		return nil
	default:
		check = firstEntry
	}
	what, err := check(path)
	if err != nil {
		return fmt.Errorf("output %s: %w", o.path, cause(err))
	}
	if what == "" {
		return nil
	}
	verb := "holds"
	if o.file {
		verb = "exists and is"
	}
	return refuse(ErrNotOurs, "output %s %s %s: not replaced; choose another place, or remove it by hand", o.path, verb, what)
}

// firstEntry describes an entry of a folder.
func firstEntry(dir string) (string, error) {
	f, err := os.Open(dir)
	if err != nil {
		return "", err
	}
	defer f.Close()
	names, _ := f.Readdirnames(1)
	if len(names) == 0 {
		return "", nil
	}
	return fmt.Sprintf("%q already", names[0]), nil
}

// checkReplaced repeats the check of ours on the old output after it was renamed, when no other process knows its name.
func (o *Output) checkReplaced() error {
	switch o.state {
	case exchanged:
		return o.ours(o.work)
	case replaced, removed:
		return o.ours(o.aside)
	}
	return nil
}

// create makes the hidden file or folder. It is as private as the one that it replaces, and of the same group, which
// the files in a folder with the set-group bit inherit.
func (o *Output) create() error {
	mode := fs.FileMode(0o777)
	if o.file {
		mode = 0o666
	}
	if o.old != nil {
		mode &= o.old.mode
	}
	if !o.file {
		if err := os.Mkdir(o.work, mode|0o700); err != nil {
			return err
		}
		o.old.group(o.work)
		return nil
	}
	f, err := os.OpenFile(o.work, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode|0o600)
	if err != nil {
		return err
	}
	return f.Close()
}

// access holds the permissions of a file or folder.
type access struct {
	mode     fs.FileMode // permissions, and the set-group and sticky bits of a folder
	uid, gid int
}

func accessOf(info fs.FileInfo) *access {
	a := &access{info.Mode() & fs.ModePerm, -1, -1}
	if info.IsDir() {
		a.mode |= info.Mode() & (fs.ModeSetgid | fs.ModeSticky)
	}
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		a.uid, a.gid = int(st.Uid), int(st.Gid)
	}
	return a
}

// group gives a new folder the old one's group and set-group bit, as far as the system allows it.
func (a *access) group(dir string) {
	if a == nil || a.mode&fs.ModeSetgid == 0 || os.Lchown(dir, -1, a.gid) != nil {
		return
	}
	if info, err := os.Lstat(dir); err == nil {
		_ = os.Chmod(dir, info.Mode()|fs.ModeSetgid)
	}
}

// give gives a new file or folder the old one's owner and mode, as far as the system allows it. If the group cannot be
// kept, the permissions of the old group are not given to another one.
func (a *access) give(path string) error {
	if a == nil {
		return nil
	}
	mode := a.mode
	if os.Lchown(path, a.uid, a.gid) != nil && os.Lchown(path, -1, a.gid) != nil {
		mode &^= fs.ModeSetgid | 0o070&^(mode<<3) // another group may do what all others may
	}
	return os.Chmod(path, mode)
}
