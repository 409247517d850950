package iobench

import (
	"os"

	"strata/pkg/gds"
)

// DropCached asks the system to forget what it holds of a file: it does where that lies on the
// device too.
func DropCached(path string) {
	if f, err := os.Open(path); err == nil {
		defer f.Close()
		_ = gds.DropCached(f, 0, 0) // what stays is told
	}
}

// CachedShare is how much of the first n bytes of a file the page cache holds, from 0 to 1, where
// the system tells.
func CachedShare(path string, n int64) (share float64, known bool) {
	f, err := os.Open(path)
	if err != nil {
		return 0, false
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || info.Size() < n || n < Page {
		return 0, false
	}
	in, err := gds.Cached(f, 0, n)
	return float64(in) / float64(n), err == nil
}
