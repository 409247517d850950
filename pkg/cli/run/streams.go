package run

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"strata/pkg/address"
)

// results is standard output. It keeps the first error, so that a run whose results did not
// arrive fails, whether the command looks at the errors of its writes or not.
type results struct {
	w   io.Writer
	err error
}

// Results wraps w as standard output. A run whose results cannot be written to it fails.
func Results(w io.Writer) io.Writer {
	if toTerminal(w) {
		w = onTerminal{w}
	}
	return &results{w: w}
}

// Arrived returns the first error of a write to standard output.
func Arrived(w io.Writer) error {
	if r, ok := w.(*results); ok {
		return r.err
	}
	return nil
}

func (r *results) Write(p []byte) (int, error) {
	n, err := r.w.Write(p)
	if err != nil {
		var file *fs.PathError
		if errors.As(err, &file) {
			err = file.Err // its path is /dev/stdout
		}
		err = fmt.Errorf("standard output: %w", err)
		r.err = cmp.Or(r.err, err)
	}
	return n, err
}

// ToTerminal reports whether results go to a terminal.
func (r *Run) ToTerminal() bool {
	out, ok := r.Stdout.(*results)
	if !ok {
		return toTerminal(r.Stdout)
	}
	_, ok = out.w.(onTerminal)
	return ok
}

func toTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// NeedStdout fails where standard output was closed when the process began (">&-"), for commands
// that are of no use then. In place of a closed one, Go's runtime opens the null device for
// reading and writing, where shells open it for writing only.
func (r *Run) NeedStdout() error {
	var out, null unix.Stat_t
	flags, err := unix.FcntlInt(1, unix.F_GETFL, 0)
	if err == nil && flags&unix.O_ACCMODE != unix.O_RDWR {
		return nil
	}
	if err == nil {
		if unix.Fstat(1, &out) != nil || unix.Stat(os.DevNull, &null) != nil || out.Mode&unix.S_IFMT != unix.S_IFCHR || out.Rdev != null.Rdev {
			return nil
		}
		err = syscall.EBADF
	}
	return fmt.Errorf("standard output is closed: %w; redirect it to %s to discard it", err, os.DevNull)
}

// dump shows what all goroutines do, with --verbose.
func (r *Run) dump() {
	if !r.Options.Verbose {
		return
	}
	stacks := make([]byte, 1<<20)
	stacks = stacks[:runtime.Stack(stacks, true)]
	fmt.Fprintf(r.Stderr, "%s\n", address.Redact(string(stacks)))
}
