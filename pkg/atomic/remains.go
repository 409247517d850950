package atomic

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"strata/pkg/hiddenname"
)

// clean restores files and folders that other processes had set aside in the output's folder without replacing them,
// and removes what dead processes have left.
func (g *Group) clean(o *Output) {
	dir, base := filepath.Split(o.final)
	all, err := hiddenname.List(dir)
	if err != nil {
		return // a folder that can be written to need not be readable
	}
	seen := g.putBack(dir, base, hiddenname.KeptOf(all))
	for _, h := range all {
		path := filepath.Join(dir, h.Name)
		needed, known := seen[strings.TrimSuffix(h.Name, hiddenname.AsideSuffix)]
		switch {
		case needed:
		case g.self.State(h.Writer) == hiddenname.Dead:
			g.remove(path)
		case known:
		case h.Of(base) && !h.Aside && (h.Writer.Host != g.self.Host || h.Writer.PID != g.self.PID) && recent(path):
			g.opt.Warn("process %d on %s seems to write %s too: the first to complete stays, or the last with --overwrite", h.Writer.PID, h.Writer.Host, o.path)
		}
	}
}

// putBack gives old folders their original names again, unless the process that is replacing them is known to be alive.
// A live process that is not known finds the name taken, and replaces the folder once more. putBack returns the files
// that belong to these folders; true means that a file must stay for a later attempt.
func (g *Group) putBack(dir, base string, kept []hiddenname.Hidden) map[string]bool {
	seen := map[string]bool{}
	for _, h := range kept {
		twin := strings.TrimSuffix(h.Name, hiddenname.AsideSuffix)
		name := h.Base
		if h.Of(base) {
			name = base // h has perhaps only its beginning
		}
		path, final := filepath.Join(dir, h.Name), filepath.Join(dir, name)
		if _, err := os.Lstat(final); !errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if slices.ContainsFunc(g.inputs, func(in input) bool { return within(in.real, path) }) {
			seen[twin] = true // this run reads it where it lies
			continue
		}
		seen[twin] = false
		if g.self.State(h.Writer) != hiddenname.Alive && (name == base || !h.Cut()) {
			err := g.ops.renameNew(path, final)
			if err == nil {
				g.opt.Warn("%s was put back: process %d on %s died while it replaced it", final, h.Writer.PID, h.Writer.Host)
				continue
			}
			if errors.Is(err, fs.ErrExist) || errors.Is(err, fs.ErrNotExist) {
				continue // its replacer lives, or another run was faster
			}
			g.opt.Warn("%s is missing and cannot be put back from %s: %v", final, path, cause(err))
		}
		seen[twin] = true
	}
	return seen
}

// recent reports whether a file was changed within the last day. It tells a writer on another host from its
// remains.
func recent(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && time.Since(info.ModTime()) < 24*time.Hour
}
