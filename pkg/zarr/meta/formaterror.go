package meta

import (
	"errors"
	"fmt"

	"strata/pkg/zarr/store"
)

// ErrForeign is wrapped by errors about an array of a kind that this package does not read: a data type, codec, chunk
// grid or storage transformer that it does not have. There may be nothing wrong with it.
var ErrForeign = errors.New("not supported")

// foreign marks an error of a metadata parser as [ErrForeign], in the same words.
func foreign(err error) error {
	if fe, ok := err.(*FormatError); ok {
		fe.Err = foreignError{fe.Err}
		return fe
	}
	return foreignError{err}
}

type foreignError struct{ error }

func (e foreignError) Is(target error) bool { return target == ErrForeign }
func (e foreignError) Unwrap() error        { return e.error }

// FormatError reports stored data that violates the Zarr specification or its own metadata, or that this
// package does not support. Trying again does not help.
type FormatError struct {
	Path  string // location of the file, as its store names it
	Field string // metadata field, or part of the chunk; "" for the file as a whole
	Err   error  // what is wrong, and what would be right
}

// Error returns one line: the file, the field, and what is wrong.
func (e *FormatError) Error() string {
	if e.Field == "" {
		return fmt.Sprintf("%s: %v", e.Path, e.Err)
	}
	return fmt.Sprintf("%s: %s: %v", e.Path, e.Field, e.Err)
}

// Unwrap returns the cause without file and field.
func (e *FormatError) Unwrap() error { return e.Err }

// FieldError returns the error of a metadata parser, which knows the field but not the file.
func FieldError(field, format string, args ...any) error {
	return &FormatError{Field: field, Err: fmt.Errorf(format, args...)}
}

// InFile adds the file to an error of a parser or decoder. It passes errors of stores, which name their file
// already.
func InFile(st store.Store, key string, err error) error {
	if err == nil {
		return nil
	}
	if fe, ok := err.(*FormatError); ok {
		if fe.Path != "" {
			return err
		}
		return &FormatError{Path: st.Location(key), Field: fe.Field, Err: fe.Err}
	}
	return &FormatError{Path: st.Location(key), Err: err}
}
