//go:build !linux

package sif

import (
	"context"
	"fmt"
	"runtime"
)

// RunRoot returns an error: it needs the namespaces of Linux.
func RunRoot(context.Context, Run) (int, error) {
	return 0, fmt.Errorf("%w: %s has none", ErrNamespace, runtime.GOOS)
}

// Inside returns an error: it needs the namespaces of Linux.
func Inside() error { return ErrNamespace }
