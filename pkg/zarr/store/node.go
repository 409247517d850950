package store

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
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

// Litter reports whether operating systems, file servers and Zarr libraries leave files of this name in folders; no one
// misses them.
func Litter(name string) bool {
	switch name {
	case ".DS_Store", "Thumbs.db", ".zmetadata":
		return true
	}
	return strings.HasPrefix(name, "._") || strings.HasPrefix(name, ".nfs")
}
