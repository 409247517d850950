package survey

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

const (
	// mostDepth is the depth below the folder down to which it is listed.
	mostDepth = 4
	// mostNames bounds the names that are looked at.
	mostNames = 5_000_000
)

// Listing is the names in a folder and its subfolders. Zarr hierarchies and raw tiles are entered as one folder each.
type Listing struct {
	Root    string
	Files   []string // paths below the root, with / between folders
	Arrays  []string // folders that are Zarr hierarchies
	Raw     []string // folders of raw tiles, below the root
	Folders int
	// Unreadable are folders that could not be read.
	Unreadable []string
}

// List lists a folder. Links to files are files; links to folders are not followed. A folder without a single name is
// an error, and so is one that cannot be read; subfolders that cannot be read are noted.
func List(ctx context.Context, root string) (*Listing, error) {
	l := &Listing{Root: root}
	if isArray(root, nil) {
		l.Arrays = []string{"."}
		return l, nil
	}
	names, err := l.folder(ctx, "", 0)
	if err != nil {
		return nil, err
	}
	if names == 0 {
		return nil, fmt.Errorf("%s: is empty: want a folder with the files of a microscope", root)
	}
	slices.Sort(l.Files)
	slices.Sort(l.Arrays)
	return l, nil
}

// folder lists a folder at a depth.
func (l *Listing) folder(ctx context.Context, at string, depth int) (names int, err error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	entries, err := os.ReadDir(filepath.Join(l.Root, filepath.FromSlash(at)))
	if err != nil {
		if depth > 0 && errors.Is(err, fs.ErrPermission) {
			l.Unreadable = append(l.Unreadable, at)
			return 0, nil
		}
		return 0, err
	}
	for _, e := range entries {
		name := e.Name()
		if strings.HasPrefix(name, ".") {
			continue
		}
		names++
		inside := path.Join(at, name)
		switch {
		case !e.IsDir() && e.Type()&fs.ModeSymlink != 0 && isFolder(filepath.Join(l.Root, filepath.FromSlash(inside))):
		case !e.IsDir():
			if l.Files = append(l.Files, inside); len(l.Files) > mostNames {
				return 0, fmt.Errorf("%s: more than %d files: give a folder below it", l.Root, mostNames)
			}
		case isArray(filepath.Join(l.Root, filepath.FromSlash(inside)), e):
			l.Arrays = append(l.Arrays, inside)
		case rawName(inside):
			l.Raw = append(l.Raw, inside)
		default:
			l.Folders++
			if depth < mostDepth {
				if _, err := l.folder(ctx, inside, depth+1); err != nil {
					return 0, err
				}
			}
		}
	}
	return names, nil
}

func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// isArray reports whether a folder is a Zarr hierarchy: by its name, or by what is in it for the root.
func isArray(dir string, e fs.DirEntry) bool {
	if e != nil {
		return strings.HasSuffix(e.Name(), ".zarr")
	}
	for _, name := range []string{"zarr.json", ".zattrs", ".zgroup", ".zarray"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
			return true
		}
	}
	return false
}
