package sysinfo

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
)

// tryDirect opens a file past the page cache; of a folder, the first regular file of the first few in it.
func tryDirect(name string) Fact[bool] {
	info, err := os.Stat(name)
	if err != nil {
		return unknown[bool]("%s", why(name, err))
	}
	if info.IsDir() {
		d, err := os.Open(name)
		if err != nil {
			return unknown[bool]("%s", why(name, err))
		}
		list, _ := d.ReadDir(64)
		_ = d.Close()
		found := false
		for _, e := range list {
			if found = e.Type().IsRegular(); found {
				name = filepath.Join(name, e.Name())
				break
			}
		}
		if !found {
			return unknown[bool]("%s has no file to try", name)
		}
	} else if !info.Mode().IsRegular() {
		return unknown[bool]("%s is not a regular file", name)
	}
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_DIRECT|syscall.O_NONBLOCK, 0)
	switch {
	case err == nil:
		_ = f.Close()
		return known(true)
	case errors.Is(err, syscall.EINVAL):
		return known(false)
	}
	return unknown[bool]("%s", why(name, err))
}
