package run

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"syscall"

	"strata/pkg/cli/flags"
	"strata/pkg/work"
	"strata/pkg/zarr"
	"strata/pkg/zarr/store"
)

// Exit codes of every binary.
const (
	ExitOK          = 0   // done, outputs complete
	ExitFailed      = 1   // failed while running: I/O error, out of space, out of memory
	ExitUsage       = 2   // wrong usage
	ExitBadInput    = 3   // an input is not what it should be
	ExitGPU         = 4   // --require_gpu and no usable GPU, or the GPU failed
	ExitInterrupted = 130 // SIGINT, after cleaning up
	ExitTerminated  = 143 // SIGTERM, after cleaning up
)

// coded is an error with the exit code that it leads to.
type coded struct {
	code int
	err  error
}

func (e *coded) Error() string { return e.err.Error() }
func (e *coded) Unwrap() error { return e.err }

// Usage marks an error as one of the command line (exit code 2). The message names the
// flag or argument and what would be right. Wrap with %w as in fmt.Errorf: an error that is the
// machine's or the network's doing, as for [BadInput], keeps its code.
func Usage(format string, args ...any) error {
	err := fmt.Errorf(format, args...)
	if ofMachine(err) {
		return err
	}
	return &coded{ExitUsage, err}
}

// BadInput marks an error as the input's fault (exit code 3). The message names
// the file, what is wrong with it, and where. A nil error stays nil. Errors
// that are the machine's, the network's or the user's doing (no space, an I/O
// error, out of memory, too many open files, a server that cannot be reached, a
// cancelled context), or that carry a code already, keep theirs: whatever
// reading an input returns can be passed through.
func BadInput(err error) error {
	if err == nil || ExitCode(err) != ExitFailed || ofMachine(err) {
		return err
	}
	return &coded{ExitBadInput, err}
}

// BadInputf is [BadInput] of fmt.Errorf.
func BadInputf(format string, args ...any) error {
	return BadInput(fmt.Errorf(format, args...))
}

// GPUFailure marks an error as a missing or failed GPU (exit code 4).
func GPUFailure(err error) error {
	if err == nil {
		return nil
	}
	return &coded{ExitGPU, err}
}

// ExitStatus returns an error that makes this program end with the exit code of a program that it ran for the user.
// Nothing is logged, because that program has reported its error itself. Code 0 is no error.
func ExitStatus(code int) error {
	if code == ExitOK {
		return nil
	}
	return &coded{code, errPassedOn}
}

var errPassedOn = errors.New("the program that was run failed")

// ExitCode is the exit code for the result of a run: 0 for nil, the code of
// [Usage], [BadInput] or [GPUFailure] wherever it stands in the chain, 3 for an input with
// something else in the place of a file, 1 otherwise.
func ExitCode(err error) int {
	var c *coded
	var mistake *flags.Error
	switch {
	case err == nil:
		return ExitOK
	case errors.As(err, &c):
		return c.code
	case errors.As(err, &mistake):
		return ExitUsage
	case errors.Is(err, store.ErrNoFile) && !ofMachine(err):
		return ExitBadInput
	}
	return ExitFailed
}

// errMemory is the error that [MemoryError] wraps.
var errMemory = errors.New("not enough memory")

type memoryError struct{ error }

func (e memoryError) Is(target error) bool { return target == errMemory }
func (e memoryError) Unwrap() error        { return e.error }

// MemoryError is an error of a --mem that is too small for one step of the work
// (exit code 1, also through [BadInput]): a workflow tries again with more. The
// message says how much is needed.
func MemoryError(format string, args ...any) error { return memoryError{fmt.Errorf(format, args...)} }

func ofMachine(err error) bool {
	var bug *work.Panic
	if errors.As(err, &bug) {
		return true // the program's doing, at any rate not the input's
	}
	for _, target := range []error{
		context.Canceled, context.DeadlineExceeded, os.ErrDeadlineExceeded, io.ErrShortWrite, errMemory,
		store.ErrUnavailable, zarr.ErrBudget,
	} {
		if errors.Is(err, target) {
			return true
		}
	}
	return slices.ContainsFunc(machineErrors, func(e syscall.Errno) bool { return errors.Is(err, e) })
}

// machineErrors are errors of the system that say nothing of an input: another machine, or this
// one later, may do better.
var machineErrors = append([]syscall.Errno{
	// no room, no right to write, a limit of the process or the machine
	syscall.ENOSPC, syscall.EDQUOT, syscall.EFBIG, syscall.EROFS, syscall.ENOMEM, syscall.EMFILE, syscall.ENFILE, syscall.EAGAIN,
	syscall.ENOBUFS, syscall.ENOLCK, syscall.EBUSY, syscall.EINTR,
	// a device, or a file system of the network
	syscall.EIO, syscall.ENXIO, syscall.ENODEV, syscall.ESTALE, syscall.ETIMEDOUT, syscall.EPIPE, syscall.ENOTCONN, syscall.ESHUTDOWN,
	syscall.ECONNABORTED, syscall.ECONNREFUSED, syscall.ECONNRESET, syscall.ENETDOWN, syscall.ENETRESET, syscall.ENETUNREACH,
	syscall.EHOSTDOWN, syscall.EHOSTUNREACH,
}, machineErrorsHere...)

// oneLine is the message of an error as it is printed: a single line. Joined
// errors are separated by semicolons; the operation names that the os package
// puts in front of a path ("open x: no such file or directory") are left out
// when the whole error is such a one.
func oneLine(err error) string {
	text := err.Error()
	var p *fs.PathError
	if errors.As(err, &p) && text == p.Error() {
		text = p.Path + ": " + p.Err.Error()
	}
	lines := strings.FieldsFunc(text, func(r rune) bool { return r == '\n' || r == '\r' })
	for i := range lines {
		lines[i] = strings.TrimSpace(lines[i])
	}
	return strings.Join(lines, "; ")
}
