//go:build unix

package store

import (
	"context"

	"strata/pkg/smallfile"
)

// Zip opens the zip file path for reading.
func Zip(path string) (*ZipStore, error) {
	fd, size, err := openRegular(path, 0)
	if err != nil {
		return nil, smallfile.Cause(path, err)
	}
	o := &fileObject{path: path, size: size}
	o.fd.init(fd)
	return openZip(context.Background(), o, path)
}
