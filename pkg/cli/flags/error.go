package flags

import "fmt"

// Error says what is wrong with a command line: it names the flag or argument, and what would be right.
type Error struct{ err error }

func (e *Error) Error() string { return e.err.Error() }
func (e *Error) Unwrap() error { return e.err }

// wrong makes an [Error], as fmt.Errorf does.
func wrong(format string, args ...any) error { return &Error{fmt.Errorf(format, args...)} }
