//go:build !linux

package filelayer

import (
	"errors"
	"os"
)

// openDirect is supported only on Linux.
func openDirect(*os.File, int) (*os.File, error) { return nil, errors.ErrUnsupported }

func memoryAlign(*os.File) int64 { return page }

func keepsInMemory(*os.File) bool { return false }

// tells is supported only on Linux.
func tells(*os.File, os.FileInfo) bool { return false }

func cachedPages(*os.File, int64, int64) (int64, error) { return 0, errors.ErrUnsupported }

// fileSystem is never needed, since there is no cuFile.
func fileSystem(*os.File) (id uint64, known bool) { return 0, false }
