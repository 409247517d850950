package benchkit

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"strata/pkg/filelayer"
)

// Files returns the files below a folder, or the file itself.
func Files(ctx context.Context, root string) ([]string, error) {
	var list []string
	err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() {
			list = append(list, path)
		}
		return errors.Join(err, context.Cause(ctx))
	})
	return list, err
}

// Forget drops files from the page cache, and returns the fraction of them that stays in it; -1 if the system does
// not tell.
func Forget(files []string) (float64, error) {
	var all, held int64
	known := true
	for _, path := range files {
		n, size, err := forget(path)
		if err != nil {
			return 0, err
		}
		known = known && n >= 0
		all, held = all+size, held+min(n, size)
	}
	if !known || all == 0 {
		return -1, nil
	}
	return float64(held) / float64(all), nil
}

// forget drops a file from the page cache, and returns the bytes of it that stay, -1 if that is unknown, and its
// size.
func forget(path string) (held, size int64, err error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, 0, err
	}
	defer f.Close()
	if err := filelayer.DropCached(f, 0, 0); err != nil && !errors.Is(err, errors.ErrUnsupported) {
		return 0, 0, err
	}
	info, err := f.Stat()
	if err != nil {
		return 0, 0, err
	}
	if held, err = filelayer.Cached(f, 0, 0); err != nil {
		held = -1
	}
	return held, info.Size(), nil
}
