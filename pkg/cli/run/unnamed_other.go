//go:build !linux

package run

import "os"

// unnamed returns a file that no folder has.
func unnamed(name string) (*os.File, error) { return unnamedFile(name) }
