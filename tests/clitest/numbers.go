package clitest

import (
	"context"
	"path"
	"path/filepath"
	"strings"

	"strata/pkg/zarr"
	"strata/pkg/zarr/store"
)

// Numbers reads all below a folder, by name; of Zarr arrays not the chunk files, but what
// they hold under the name of the array, because encoders differ in how they say it.
func Numbers(root string) (map[string][]byte, error) {
	all, err := tree(root)
	if err != nil {
		return nil, err
	}
	for name := range all {
		folder, file := path.Split(filepath.ToSlash(name))
		folder = strings.TrimSuffix(folder, "/")
		if file != ".zarray" && file != "zarr.json" {
			continue
		}
		node, err := zarr.Open(context.Background(), store.Folder(root), folder, zarr.Workers(1))
		if err != nil {
			return nil, err
		}
		a, ok := node.(*zarr.Array)
		if !ok {
			continue
		}
		n := a.DType().Size()
		for _, s := range a.Shape() {
			n *= s
		}
		v := make([]byte, n)
		if err := a.Read(context.Background(), a.Bounds(), v); err != nil {
			return nil, err
		}
		a.Close()
		for other := range all {
			if inside, ok := strings.CutPrefix(filepath.ToSlash(other), folder+"/"); ok && chunkFile(inside) {
				delete(all, other)
			}
		}
		all[folder] = v
	}
	return all, nil
}

// chunkFile reports whether a file or folder of an array is made of chunks.
func chunkFile(name string) bool {
	return strings.Trim(name, "c0123456789./") == ""
}
