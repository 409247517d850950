package store

import (
	"os"
	"path/filepath"
	"slices"
)

// NodeFiles returns the names of the metadata documents, one of which every node of a Zarr hierarchy has
// (specification 3, "Metadata documents"; specification 2, "Storage").
func NodeFiles() []string { return []string{"zarr.json", ".zgroup", ".zarray"} }

// IsNode reports whether a local folder is a node of a Zarr hierarchy.
func IsNode(folder string) bool {
	return slices.ContainsFunc(NodeFiles(), func(name string) bool {
		_, err := os.Lstat(filepath.Join(folder, name))
		return err == nil
	})
}
