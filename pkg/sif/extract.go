package sif

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path"

	"strata/pkg/sif/squashfs"
)

// Extract unpacks the root, or a path in it, below an empty folder, with the names of the image. The user who
// unpacks owns the files; device files, pipes and sockets are left out, and their names returned.
func (i *Image) Extract(ctx context.Context, name, dir string) (skipped []string, err error) {
	root, err := i.Root()
	if err != nil {
		return nil, err
	}
	start, err := root.Lookup(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, i.missing(name)
	case err != nil:
		return nil, i.errorf("root: %w", err)
	}
	out, err := NewRoot(dir)
	if err != nil {
		return nil, err
	}
	defer out.Close()
	x := extraction{root: root, out: out, links: map[uint32]string{}}
	err = root.Walk(start.Path, func(e *squashfs.Entry) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		return x.add(e)
	})
	if errors.Is(err, squashfs.ErrFormat) {
		err = i.errorf("root: %w", err)
	}
	if err == nil {
		err = x.finish()
	}
	return x.skipped, err
}

func (i *Image) missing(name string) error {
	return i.errorf("it has no %s", path.Join("/", name))
}

type extraction struct {
	root    *squashfs.Reader
	out     *Root
	links   map[uint32]string // first names of files that have several, by their number
	folders []*squashfs.Entry
	skipped []string
}

func (x *extraction) add(e *squashfs.Entry) error {
	switch e.Mode.Type() {
	case fs.ModeDir:
		x.folders = append(x.folders, e)
		return x.out.Mkdir(e.Path, 0o700)
	case fs.ModeSymlink:
		return x.out.Symlink(e.Target, e.Path)
	case 0:
		if first, ok := x.links[e.Inode]; ok {
			return x.out.Link(first, e.Path)
		}
		if e.Links > 1 {
			x.links[e.Inode] = e.Path
		}
		if err := x.out.Write(e.Path, e.Mode, x.root.File(e)); err != nil {
			return err
		}
		return x.out.root.Chtimes(local(e.Path), e.ModTime, e.ModTime)
	}
	x.skipped = append(x.skipped, "/"+e.Path)
	return nil
}

// finish sets the permissions and times of folders, which writing into them has changed.
func (x *extraction) finish() error {
	for n := len(x.folders) - 1; n >= 0; n-- {
		e := x.folders[n]
		name := local(e.Path)
		if name == "" {
			name = "."
		}
		if err := x.out.root.Chmod(name, e.Mode&(fs.ModePerm|fs.ModeSticky)|0o700); err != nil {
			return err
		}
		if err := x.out.root.Chtimes(name, e.ModTime, e.ModTime); err != nil {
			return err
		}
	}
	return nil
}

// extractAll unpacks the whole root into a new folder, like [Image.Extract].
func (i *Image) extractAll(ctx context.Context, dir string) error {
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	_, err := i.Extract(ctx, "", dir)
	return err
}
