package iobench

import (
	"os"

	"strata/pkg/filelayer"
)

// DropCached asks the system to drop a file from the page cache. It does so only for data that has reached the
// device.
func DropCached(path string) {
	if f, err := os.Open(path); err == nil {
		defer f.Close()
		_ = filelayer.DropCached(f, 0, 0) // what stays is told
	}
}

// CachedShare returns the fraction of the first n bytes of a file that is in the page cache, and whether the
// system tells.
func CachedShare(path string, n int64) (share float64, known bool) {
	f, err := os.Open(path)
	if err != nil {
		return 0, false
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || info.Size() < n || n < Page {
		return 0, false
	}
	in, err := filelayer.Cached(f, 0, n)
	return float64(in) / float64(n), err == nil
}
