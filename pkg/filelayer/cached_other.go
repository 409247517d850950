//go:build !linux

package filelayer

import (
	"errors"
	"fmt"
	"os"
)

// Cached returns [errors.ErrUnsupported] on this system.
func Cached(f *os.File, _, _ int64) (int64, error) {
	return 0, fmt.Errorf("page cache of %s: %w", f.Name(), errors.ErrUnsupported)
}

// DropCached returns [errors.ErrUnsupported] on this system.
func DropCached(f *os.File, _, _ int64) error {
	return fmt.Errorf("drop %s from the page cache: %w", f.Name(), errors.ErrUnsupported)
}

// Prefetch returns [errors.ErrUnsupported] on this system.
func Prefetch(f *os.File, _, _ int64) error {
	return fmt.Errorf("read %s ahead: %w", f.Name(), errors.ErrUnsupported)
}
