package zarr

import (
	"errors"
	"fmt"

	"strata/pkg/mem"
	"strata/pkg/zarr/store"
)

// ErrBudget is wrapped when one chunk needs more memory than [Budget] grants.
var ErrBudget = mem.ErrBudget

// ErrReadOnly is wrapped when a store that is only read is asked to write.
var ErrReadOnly = errors.New("store cannot be written")

// FormatError says that stored data breaks the Zarr specification, its own
// metadata, or what this package supports: trying again does not help.
type FormatError struct {
	Path  string // location of the file, as its store names it
	Field string // metadata field, or part of the chunk; "" for the file as a whole
	Err   error  // what is wrong, and what would be right
}

// Error is one line: the file, the field, and what is wrong.
func (e *FormatError) Error() string {
	if e.Field == "" {
		return fmt.Sprintf("%s: %v", e.Path, e.Err)
	}
	return fmt.Sprintf("%s: %s: %v", e.Path, e.Field, e.Err)
}

// Unwrap returns what is wrong without the place.
func (e *FormatError) Unwrap() error { return e.Err }

// fieldError is what parsers of metadata return: they know no file names.
func fieldError(field, format string, args ...any) error {
	return &FormatError{Field: field, Err: fmt.Errorf(format, args...)}
}

// inFile adds the file to an error of a parser or decoder. Errors that name
// their file already (those of stores) pass.
func inFile(st store.Store, key string, err error) error {
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
