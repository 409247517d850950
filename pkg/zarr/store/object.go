package store

import (
	"fmt"
	"io"
	"math"
)

// sized returns dst with length n, reallocated if its capacity is too small.
func sized(dst []byte, n int64) ([]byte, error) {
	if n > math.MaxInt {
		return nil, fmt.Errorf("%d bytes do not fit into the address space: %w", n, ErrTooLarge)
	}
	if dst == nil || int64(cap(dst)) < n {
		return make([]byte, n), nil
	}
	return dst[:n], nil
}

// clampRange returns how many of n bytes at off an object of the given size has, and io.EOF if fewer.
func clampRange(n int, off, size int64) (have int, eof, err error) {
	switch {
	case off < 0:
		return 0, nil, errOffset(off)
	case n == 0:
		return 0, nil, nil
	case off >= size:
		return 0, io.EOF, nil
	case int64(n) > size-off:
		return int(size - off), io.EOF, nil
	}
	return n, nil, nil
}

func errOffset(off int64) error { return fmt.Errorf("negative offset %d", off) }

func tooLarge(where string, size, limit int64) error {
	return fmt.Errorf("%s: %w: %d bytes, at most %d expected", where, ErrTooLarge, size, limit)
}

func shrank(where string, was, is int64) error {
	return fmt.Errorf("%s: %w: it had %d bytes when opened and ends after %d", where, ErrChanged, was, is)
}
