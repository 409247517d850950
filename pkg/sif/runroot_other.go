//go:build !linux

package sif

import (
	"context"
	"fmt"
	"runtime"
)

// RunRoot needs the namespaces of Linux.
func RunRoot(context.Context, Run) (int, error) {
	return 0, fmt.Errorf("%w: %s has none", ErrNamespace, runtime.GOOS)
}

// Inside needs the namespaces of Linux.
func Inside() error { return ErrNamespace }
