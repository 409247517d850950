// Package replace decides whether an existing file or folder may be replaced by a program's output: only if everything
// in it is something that the program writes there. All else, such as a folder of notes or label images drawn by hand,
// is foreign.
//
// Its functions describe the first foreign thing that they find, for a message; "" means that there is none.
package replace

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"strata/pkg/atomic"
	"strata/pkg/hiddenname"
	"strata/pkg/host"
	"strata/pkg/zarr/store"
)

// Kind is what a program knows of an entry of a folder.
type Kind int

const (
	Foreign Kind = iota // the program does not write it
	File                // a regular file of the program, if it looks like one of its name; see [LooksLike]
	Folder              // a folder of the program, whose entries have to be known too
	Image               // a folder that holds a Zarr hierarchy
)

// Rule tells what a program knows of the entry key, such as "truth/positions.npy", of its output folder.
type Rule func(key string, folder bool) Kind

// ByRule returns [Tree] for a rule.
func ByRule(ctx context.Context, rule Rule) atomic.Foreign {
	return func(dir string) (string, error) { return Tree(ctx, dir, rule) }
}

// Tree returns a description of the first foreign entry of a folder that a program writes by a rule. Metadata that
// operating systems and file servers leave, and remains of killed runs, are not foreign; links, devices and mount
// points are.
func Tree(ctx context.Context, dir string, rule Rule) (string, error) {
	return tree(ctx, dir, "", rule, "which the program does not write there")
}

// tree looks through the folder key below dir. why ends the description of an entry that the rule does not know.
func tree(ctx context.Context, dir, key string, rule Rule, why string) (string, error) {
	f, err := os.Open(filepath.Join(dir, key))
	if err != nil {
		return "", err
	}
	defer f.Close()
	for {
		if err := ctx.Err(); err != nil {
			return "", err
		}
		entries, err := f.ReadDir(1024)
		slices.SortFunc(entries, func(a, b fs.DirEntry) int { return cmp.Compare(a.Name(), b.Name()) })
		for _, e := range entries {
			if what, err := entry(ctx, dir, store.Join(key, e.Name()), e, rule, why); what != "" || err != nil {
				return what, err
			}
		}
		if errors.Is(err, io.EOF) {
			return "", nil
		}
		if err != nil {
			return "", err
		}
	}
}

// entry looks at an entry of a folder, and into it.
func entry(ctx context.Context, dir, key string, e fs.DirEntry, rule Rule, why string) (string, error) {
	path := filepath.Join(dir, filepath.FromSlash(key))
	if e.Type().IsRegular() && store.Litter(e.Name()) || dead(e.Name()) {
		return "", nil
	}
	kind := rule(key, e.IsDir())
	switch {
	case kind == Foreign:
		return fmt.Sprintf("%q, %s", key, why), nil
	case (kind == File) != e.Type().IsRegular() || kind != File && !e.IsDir():
		return fmt.Sprintf("%q, which is %s", key, typeName(e)), nil
	case kind == File:
		what, err := LooksLike(path)
		if what != "" {
			what = fmt.Sprintf("%q, which is %s", key, what)
		}
		return what, err
	case host.IsMount(path):
		return fmt.Sprintf("%q, which is a mount point", key), nil
	case kind == Folder:
		return tree(ctx, dir, key, rule, why)
	}
	what, err := Hierarchy(ctx, path)
	if what != "" {
		what = fmt.Sprintf("%q, which holds %s", key, what)
	}
	return what, err
}

func typeName(e fs.DirEntry) string {
	switch {
	case e.IsDir():
		return "a folder"
	case e.Type()&fs.ModeSymlink != 0:
		return "a link"
	case e.Type().IsRegular():
		return "a file"
	}
	return "no regular file"
}

// dead reports whether a name is that of a file which a run of strata wrote that is no longer alive.
func dead(name string) bool {
	h, ok := hiddenname.Parse(name)
	return ok && hiddenname.Self().State(h.Writer) == hiddenname.Dead
}
