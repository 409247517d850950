//go:build !linux

package host

import (
	"os"
	"path/filepath"
	"syscall"
)

// IsMount reports whether another file system is mounted at a path.
func IsMount(path string) bool {
	device := func(path string) (uint64, bool) {
		info, err := os.Lstat(path)
		if err != nil {
			return 0, false
		}
		st, ok := info.Sys().(*syscall.Stat_t)
		if !ok {
			return 0, false
		}
		return uint64(st.Dev), true
	}
	here, ok := device(path)
	above, both := device(filepath.Dir(path))
	return ok && both && here != above
}
