//go:build !linux

package gds

import "os"

// openDirect is for Linux.
func openDirect(*os.File, int) *os.File { return nil }

// fileSystem is not needed: there is no cuFile.
func fileSystem(*os.File) (id uint64, known bool) { return 0, false }
