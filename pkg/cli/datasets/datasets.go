// Package datasets describes Zarr arrays for the run record. It is apart from
// pkg/cli so that a binary without arrays need not link the Zarr library.
package datasets

import (
	"strata/pkg/cli/record"
	"strata/pkg/zarr"
)

// Describe is an array as it stands in a run record; path is the file, folder
// or URL that the user named. The bytes on storage are left for the record to
// measure.
func Describe(a *zarr.Array, path string) record.Dataset {
	d := record.Dataset{
		Path: path, Shape: a.Shape(), DType: a.DType().String(), Chunks: a.Chunks(), Shard: a.Shard(), Format: a.Format(),
	}
	for _, c := range a.Codecs() {
		d.Codecs = append(d.Codecs, c.Name())
	}
	return d
}

// Bytes is the size of all elements of an array in memory.
func Bytes(a *zarr.Array) int64 {
	n := int64(a.DType().Size())
	for _, extent := range a.Shape() {
		n *= int64(extent)
	}
	return n
}
