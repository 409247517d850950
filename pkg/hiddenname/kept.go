package hiddenname

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// List returns the hidden names of a folder.
func List(dir string) ([]Hidden, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	names, err := f.Readdirnames(-1)
	var out []Hidden
	for _, n := range names {
		if h, ok := Parse(n); ok {
			out = append(out, h)
		}
	}
	return out, err
}

// KeptOf selects from a folder's hidden names those of old folders that are kept because the new one did not
// get its name.
func KeptOf(all []Hidden) []Hidden {
	there := map[string]bool{}
	for _, h := range all {
		there[h.Name] = true
	}
	return slices.DeleteFunc(slices.Clone(all), func(h Hidden) bool {
		return !h.Aside || !there[strings.TrimSuffix(h.Name, AsideSuffix)]
	})
}

// Kept is an output that is missing under its own name because the process that was replacing it died, or is
// between two steps.
type Kept struct {
	Path   string // present place of the path that was looked for
	Writer Process

	aside string // the folder
}

// Holds reports whether the folder is still kept. If so, everything read from it belongs to one output, since
// it is not removed before the new one has its name.
func (k *Kept) Holds() bool {
	for _, p := range []string{k.aside, strings.TrimSuffix(k.aside, AsideSuffix)} {
		if _, err := os.Lstat(p); err != nil {
			return false
		}
	}
	return true
}

// Find looks for a path that does not exist in outputs that are kept, and returns nil if there is none. Of
// several it returns the one whose successor is newest.
func Find(path string) *Kept {
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil
	}
	inside := ""
	for {
		dir, base := filepath.Split(abs)
		if info, err := os.Stat(dir); err == nil && info.IsDir() {
			return find(dir, base, inside)
		}
		if abs = filepath.Clean(dir); abs == "/" || abs == "." {
			return nil
		}
		inside = filepath.Join(base, inside)
	}
}

func find(dir, base, inside string) *Kept {
	if _, err := os.Lstat(filepath.Join(dir, base)); !errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	all, err := List(dir)
	if err != nil {
		return nil
	}
	var best *Kept
	var newest time.Time
	for _, h := range KeptOf(all) {
		aside := filepath.Join(dir, h.Name)
		info, err := os.Lstat(strings.TrimSuffix(aside, AsideSuffix))
		if !h.Of(base) || err != nil || best != nil && !info.ModTime().After(newest) {
			continue
		}
		path := filepath.Join(aside, inside)
		if _, err := os.Stat(path); err == nil {
			best, newest = &Kept{path, h.Writer, aside}, info.ModTime()
		}
	}
	return best
}

// Missing returns the names of outputs that a listing of a folder lacks because the folder keeps them under
// hidden names.
func Missing(names []string) []string {
	var all []Hidden
	for _, n := range names {
		if h, ok := Parse(n); ok {
			all = append(all, h)
		}
	}
	var out []string
	for _, h := range KeptOf(all) {
		if !h.cut && !slices.Contains(names, h.Base) && !slices.Contains(out, h.Base) {
			out = append(out, h.Base)
		}
	}
	return out
}
