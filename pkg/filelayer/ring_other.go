//go:build !linux

package filelayer

import "errors"

// ring is Linux's.
type ring struct{}

func newRing(int) (*ring, error)               { return nil, errors.ErrUnsupported }
func (*ring) read(int, []byte, int64, uint64)  {}
func (*ring) enter(int) error                  { return errors.ErrUnsupported }
func (*ring) ended(func(user uint64, n int32)) {}
func (*ring) takeBack(func(user uint64))       {}
func (*ring) close()                           {}
