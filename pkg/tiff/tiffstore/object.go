package tiffstore

import (
	"context"

	"strata/pkg/zarr/store"
	"strata/pkg/zarr/virtual"
)

// filePart is a part of a local file that knows the file's path.
type filePart struct {
	virtual.FilePart
	path string
}

var (
	_ store.NamedFile = (*filePart)(nil)
	_ store.RowReader = (*filePart)(nil)
)

// Path returns the file's path and where in it the chunk begins.
func (o *filePart) Path() (path string, off int64) { return o.path, o.Off }

// ReadRows reads as the file is read.
func (o *filePart) ReadRows(ctx context.Context, dst []byte, rows store.Rows, off int64) (int, error) {
	return store.ReadRows(ctx, o.In, o, store.Range{Offset: o.Off, Size: o.Stored}, dst, rows, off)
}
