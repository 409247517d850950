// Package atomic writes the outputs of a run so that each appears whole or not at all.
//
// A [Group] holds the outputs of one run. Each is written under a hidden name in its final folder, so that a
// rename puts it in place:
//
//	g := atomic.NewGroup(atomic.Options{})
//	defer g.Abort()                       // does nothing after Commit
//	out, err := g.Folder("out.ome.zarr")  // refused here, before any work
//	… write into out.Work() …
//	err = g.Commit()
//
// A crash or a kill before Commit leaves existing files untouched; the next run on the same host that writes
// into the same folder removes the hidden remains. Commit puts files in place first and folders last; if one
// fails, it takes back those already in place. A kill in the middle of Commit can leave new files beside an
// old folder, but every output is whole.
//
// If the file system cannot exchange two names, a folder being replaced is missing for a moment. If the
// process dies just then, the next run that writes into the same folder, on any host, restores the old one,
// and package hiddenname finds it for readers. This is safe even if the process is alive: it looks again.
//
// Two processes with the same output never mix: each writes under its own name. The first to complete is put
// in place. The second gets [ErrExists] from its Commit or, if it may overwrite, replaces the first.
package atomic

import (
	"bufio"
	"crypto/rand"
	"encoding/base32"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"strata/pkg/hiddenname"
)

// Errors caused by the caller's choice of paths, for errors.Is. All other errors come from the file system.
var (
	ErrExists  = errors.New("output exists")            // and Overwrite is off
	ErrPlace   = errors.New("output cannot lie there")  // equal to or inside an input, another output, …
	ErrNotOurs = errors.New("output is something else") // would replace something that the program does not write
	ErrBusy    = errors.New("another run changes it")   // where it lies

	// ErrReserved is an ErrPlace for a reserved file; the caller must not write anything then.
	ErrReserved = errors.New("reserved file cannot lie there")
)

// refusal is an error with a text of its own that matches one of the errors above.
type refusal struct {
	kind error
	text string
}

func (r *refusal) Error() string { return r.text }
func (r *refusal) Is(target error) bool {
	return target == r.kind || r.kind == ErrReserved && target == ErrPlace
}

func refuse(kind error, format string, args ...any) error {
	return &refusal{kind, fmt.Sprintf(format, args...)}
}

// Options configure a group.
type Options struct {
	Overwrite bool // an existing output is replaced
	Sync      bool // data and folders are flushed to the device before the rename

	// Warn is called with problems that do not stop the run: another process that writes the same output,
	// remains that cannot be removed. It may be nil.
	Warn func(format string, args ...any)
}

// Group holds the outputs of one run. It is not safe for concurrent use.
type Group struct {
	opt    Options
	ops    operations
	self   hiddenname.Process
	inputs []input
	extra  []input // files that something else writes
	outs   []*Output
	remote []remote
	gone   []*Output // aborted
	made   []string  // parent folders that the group made, outermost first
	done   bool

	changing []*os.File // folders that are changed where they lie, locked
}

type input struct{ typed, real string }

// Output is one file or folder that is being written.
type Output struct {
	path    string  // as typed
	final   string  // where it will lie: absolute, links resolved
	work    string  // where it is written
	aside   string  // where the old one waits while it is replaced without an exchange
	file    bool    // a file, otherwise a folder
	foreign Foreign // what an existing one holds that must not be deleted
	absent  bool    // Commit leaves nothing in its place
	old     *access // of the one that is replaced
	state   state
}

// Foreign looks into an existing file or folder that an output would replace. It describes the first thing there that
// the program does not write, such as "photos, which no Zarr image has"; "" allows replacing it.
type Foreign func(path string) (what string, err error)

// Path returns the output's path as the user gave it, for messages and records.
func (o *Output) Path() string { return o.path }

// Work returns the hidden path to write to until Commit: an empty folder, or an empty file that may be
// truncated or replaced.
func (o *Output) Work() string { return o.work }

// Absent makes Commit remove the old output and put nothing in its place, if the result of the run is that there is no
// such output.
func (o *Output) Absent() { o.absent = true }

// Create opens a file output for writing from its start.
func (o *Output) Create() (*os.File, error) {
	f, err := os.OpenFile(o.work, os.O_CREATE|os.O_TRUNC|os.O_RDWR, 0o666)
	if err != nil {
		return nil, fmt.Errorf("output %s: %w", o.path, cause(err))
	}
	return f, nil
}

// Write calls write with the output's file and closes it, since some file systems report only then that data
// did not fit. On a nil output it does nothing.
func (o *Output) Write(write func(w io.Writer) error) error {
	if o == nil {
		return nil
	}
	f, err := o.Create()
	if err != nil {
		return err
	}
	w := bufio.NewWriterSize(f, 1<<16)
	if err = write(w); err == nil {
		err = w.Flush()
	}
	if e := f.Close(); err == nil {
		err = e
	}
	if err != nil {
		return fmt.Errorf("output %s: %w", o.path, cause(err))
	}
	return nil
}

// Outputs returns the outputs started so far, in order.
func (g *Group) Outputs() []*Output { return slices.Clone(g.outs) }

// Paths returns the places of all outputs, but for absent ones, as the user gave them, also after a Commit or an Abort:
// those on this machine's file systems in the order in which they were started, then the others.
func (g *Group) Paths() []string {
	var paths []string
	for _, o := range slices.Concat(g.gone, g.outs) {
		if !o.absent {
			paths = append(paths, o.path)
		}
	}
	for _, r := range g.remote {
		paths = append(paths, r.path)
	}
	return paths
}

// Rename replaces the hidden names of outputs in a text by the names that the user knows, for errors of
// writing.
func (g *Group) Rename(text string) string {
	for _, o := range append(g.gone, g.outs...) {
		text = strings.ReplaceAll(text, o.work, o.path)
	}
	return text
}

// Remote is an output outside this machine's file systems.
type Remote interface {
	// Commit makes the output visible as a whole.
	Commit() error
	// Abort removes everything written, even after a Commit.
	Abort() error
}

type remote struct {
	path string
	Remote
}

// Remote adds an output that r writes. Commit puts it in place after those that can be taken back.
func (g *Group) Remote(path string, r Remote) { g.remote = append(g.remote, remote{path, r}) }

// NewGroup returns an empty group.
func NewGroup(opt Options) *Group {
	if opt.Warn == nil {
		opt.Warn = func(string, ...any) {}
	}
	return &Group{opt: opt, ops: operations{renameNew, exchange, os.Rename}, self: hiddenname.Self()}
}

// Input declares a file or folder that the run reads: no output may be equal
// to it, lie inside it, or contain it.
func (g *Group) Input(path string) error {
	real, err := realPath(path)
	if err != nil {
		return err
	}
	in := input{path, real}
	for _, e := range g.extra {
		if e.real == in.real || sameFile(e.real, in.real) {
			return refuse(ErrReserved, "%s is the input %s: write to another place", e.typed, in.typed)
		}
	}
	for _, o := range g.outs {
		if err := o.against(in); err != nil {
			return err
		}
	}
	g.inputs = append(g.inputs, in)
	return nil
}

// Reserve declares a file that the run writes by other means: no input may be
// equal to it, and no output may be equal to it or contain it. A device or a
// pipe needs no reservation.
func (g *Group) Reserve(path string) error {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return nil
	}
	real, err := realPath(path)
	if err != nil {
		return err
	}
	g.extra = append(g.extra, input{path, real})
	return nil
}

// Folder starts an output that is a folder. With Overwrite, an existing folder is replaced only if foreign finds
// nothing in it, so that a typing error does not cost somebody's home. Without foreign it must be empty.
func (g *Group) Folder(path string, foreign Foreign) (*Output, error) {
	return g.start(&Output{path: path, foreign: foreign})
}

// File starts an output that is a regular file. With Overwrite, an existing one is replaced if foreign, which may be
// nil, finds nothing.
func (g *Group) File(path string, foreign Foreign) (*Output, error) {
	return g.start(&Output{path: path, file: true, foreign: foreign})
}

func (g *Group) start(o *Output) (*Output, error) {
	if g.done {
		return nil, fmt.Errorf("output %s: the outputs of this run are complete already", o.path)
	}
	if o.path == "" {
		return nil, refuse(ErrPlace, "output has an empty name")
	}
	var err error
	if o.final, err = realPath(o.path); err != nil {
		return nil, err
	}
	if base := filepath.Base(o.final); base == "/" || base == "." || base == ".." {
		return nil, refuse(ErrPlace, "output %s cannot be replaced as a whole", o.path)
	}
	for _, in := range g.inputs {
		if err := o.against(in); err != nil {
			return nil, err
		}
	}
	for _, e := range g.extra {
		if within(e.real, o.final) {
			return nil, refuse(ErrReserved, "%s is or lies inside the output %s: choose another place", e.typed, o.path)
		}
	}
	for _, other := range g.outs {
		if within(o.final, other.final) || within(other.final, o.final) {
			return nil, refuse(ErrPlace, "output %s is or lies inside output %s: choose another place", o.path, other.path)
		}
	}
	if err := g.makeParents(filepath.Dir(o.final)); err != nil {
		return nil, fmt.Errorf("output %s: %w", o.path, err)
	}
	g.clean(o)
	if err := g.mayReplace(o); err != nil {
		g.dropParents()
		return nil, err
	}
	o.work = filepath.Join(filepath.Dir(o.final), g.self.Name(filepath.Base(o.final), token()))
	o.aside = o.work + hiddenname.AsideSuffix
	if err := o.create(); err != nil {
		g.dropParents()
		return nil, fmt.Errorf("output %s: cannot write into folder %s: %w", o.path, filepath.Dir(o.final), cause(err))
	}
	g.outs = append(g.outs, o)
	return o, nil
}

// against refuses an output that would destroy an input, or lie inside it.
func (o *Output) against(in input) error {
	switch {
	case o.final == in.real || sameFile(o.final, in.real):
		return refuse(ErrPlace, "output %s is the input %s: write to another place", o.path, in.typed)
	case within(o.final, in.real):
		return refuse(ErrPlace, "output %s lies inside the input %s: write to another place", o.path, in.typed)
	case within(in.real, o.final):
		return refuse(ErrPlace, "input %s lies inside the output %s: write to another place", in.typed, o.path)
	}
	return nil
}

// makeParents makes missing folders above an output; Abort removes them again.
func (g *Group) makeParents(dir string) error {
	var missing []string
	for d := dir; ; d = filepath.Dir(d) {
		info, err := os.Stat(d)
		if err == nil {
			if !info.IsDir() {
				return refuse(ErrPlace, "%s is not a folder", d)
			}
			break
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return named(d, err)
		}
		missing = append(missing, d)
	}
	slices.Reverse(missing)
	for _, d := range missing {
		switch err := os.Mkdir(d, 0o777); {
		case err == nil:
			g.made = append(g.made, d)
		case !errors.Is(err, fs.ErrExist): // another process may have made it
			g.dropParents()
			return named(d, err)
		}
	}
	return nil
}

// dropParents removes the parent folders that the group has created and that are empty.
func (g *Group) dropParents() {
	if len(g.outs) > 0 {
		return // one of them is in use
	}
	for _, d := range slices.Backward(g.made) {
		if os.Remove(d) != nil {
			break
		}
	}
	g.made = nil
}

// Abort removes everything written and releases all locks. After a successful Commit it removes nothing. It
// reports what it cannot remove to Warn, once per output.
func (g *Group) Abort() {
	g.release()
	if g.done {
		return
	}
	g.done = true
	for _, r := range g.remote {
		if err := r.Abort(); err != nil {
			g.opt.Warn("cannot remove what was written of %s: %v", r.path, cause(err))
		}
	}
	for _, o := range g.outs {
		if o.state != stranded {
			g.remove(o.work)
		}
	}
	g.gone, g.outs = g.outs, nil
	g.dropParents()
}

func (g *Group) remove(path string) {
	if err := os.RemoveAll(path); err != nil {
		g.opt.Warn("cannot remove %s: %v", path, cause(err))
	}
}

// within reports whether path is dir or lies below it; both are clean and absolute.
func within(path, dir string) bool {
	return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/")
}

func sameFile(a, b string) bool {
	ia, err := os.Stat(a)
	if err != nil {
		return false
	}
	ib, err := os.Stat(b)
	return err == nil && os.SameFile(ia, ib)
}

// Place returns the absolute path of a file with links resolved, as far as the path exists. Two paths with the same
// Place name the same output.
func Place(path string) string {
	if real, err := realPath(path); err == nil {
		return real
	}
	return filepath.Clean(path)
}

// realPath returns the absolute path with all links resolved, even if its last parts do not exist yet.
func realPath(path string) (string, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	if real, err := filepath.EvalSymlinks(abs); err == nil {
		return real, nil
	} else if errors.Is(err, syscall.ENOTDIR) {
		return "", refuse(ErrPlace, "%s: %s is not a folder", path, notFolder(abs))
	} else if !errors.Is(err, fs.ErrNotExist) {
		return "", named(path, err)
	}
	if target, err := os.Readlink(abs); err == nil {
		return "", refuse(ErrPlace, "%s is a link to %s, which does not exist", path, target)
	}
	parent, err := realPath(filepath.Dir(abs))
	if err != nil {
		return "", err
	}
	return filepath.Join(parent, filepath.Base(abs)), nil
}

// notFolder returns the part of an absolute path that should be a folder but is none, or "".
func notFolder(path string) string {
	for dir := filepath.Dir(path); dir != "/"; dir = filepath.Dir(dir) {
		if info, err := os.Stat(dir); err == nil && !info.IsDir() {
			return dir
		}
	}
	return path
}

// cause returns an error of the os package without operation and path.
func cause(err error) error {
	var p *fs.PathError
	var l *os.LinkError
	switch {
	case errors.As(err, &p):
		return p.Err
	case errors.As(err, &l):
		return l.Err
	}
	return err
}

func named(path string, err error) error { return fmt.Errorf("%s: %w", path, cause(err)) }

// token returns a unique part for the name of a temporary file.
func token() string {
	var b [5]byte
	_, _ = rand.Read(b[:]) // never fails
	return strings.ToLower(base32.StdEncoding.EncodeToString(b[:]))
}
