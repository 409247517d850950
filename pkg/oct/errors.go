package oct

import (
	"errors"
	"fmt"
	"io/fs"
)

// ErrInput is wrapped by errors that are the fault of the input: trying again
// does not help.
var ErrInput = errors.New("unsuitable input")

// inputError is an error of the input, without the words "unsuitable input".
type inputError struct{ error }

func (e inputError) Is(target error) bool { return target == ErrInput }
func (e inputError) Unwrap() error        { return e.error }

// InputFault makes an error one of the input.
func InputFault(err error) error { return inputError{err} }

// BadInput makes an error of the input, as fmt.Errorf does.
func BadInput(format string, args ...any) error { return inputError{fmt.Errorf(format, args...)} }

// ErrLayout is wrapped by errors of a [Layout] that the output cannot have, and of parameters that no output has.
// Errors of stores, files and devices never wrap it.
var ErrLayout = errors.New("unsuitable layout")

type layoutError struct{ error }

// LayoutErrorf makes an error of the layout, as fmt.Errorf does.
func LayoutErrorf(format string, args ...any) error { return layoutError{fmt.Errorf(format, args...)} }

func (e layoutError) Is(target error) bool { return target == ErrLayout }
func (e layoutError) Unwrap() error        { return e.error }

// Readable makes a chunk that may not be read an error of the input; of the output
// it would be another matter.
func Readable(err error) error {
	if errors.Is(err, fs.ErrPermission) {
		return InputFault(err)
	}
	return err
}
