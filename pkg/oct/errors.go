package oct

import (
	"errors"
	"fmt"
	"io/fs"
)

// ErrInput is wrapped by errors caused by the input: retrying does not help.
var ErrInput = errors.New("unsuitable input")

// inputError is an error that matches ErrInput without adding its text.
type inputError struct{ error }

func (e inputError) Is(target error) bool { return target == ErrInput }
func (e inputError) Unwrap() error        { return e.error }

// InputFault returns err as an error that wraps [ErrInput].
func InputFault(err error) error { return inputError{err} }

// BadInput formats an error, like fmt.Errorf, that wraps [ErrInput].
func BadInput(format string, args ...any) error { return inputError{fmt.Errorf(format, args...)} }

// ErrLayout is wrapped by errors about a [Layout] or parameter that the output cannot have. Errors of stores,
// files and devices never wrap it.
var ErrLayout = errors.New("unsuitable layout")

type layoutError struct{ error }

// LayoutErrorf formats an error, like fmt.Errorf, that wraps [ErrLayout].
func LayoutErrorf(format string, args ...any) error { return layoutError{fmt.Errorf(format, args...)} }

func (e layoutError) Is(target error) bool { return target == ErrLayout }
func (e layoutError) Unwrap() error        { return e.error }

// Readable classifies an error of reading a chunk: if reading is not permitted, the result wraps [ErrInput]. Use it for
// inputs, not for outputs.
func Readable(err error) error {
	if errors.Is(err, fs.ErrPermission) {
		return InputFault(err)
	}
	return err
}
