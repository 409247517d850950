package oct

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
)

// SliceFile is a slice in a folder.
type SliceFile struct {
	ID   int
	Path string
}

var sliceName = regexp.MustCompile(`^slice_z(\d+).*\.zarr(\.zip)?$`)

// FindSlices lists the slices of a folder, slice_z<NN>*.ome.zarr, by their
// numbers. Two with one number, and none at all, are errors.
func FindSlices(dir string) ([]SliceFile, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, inputError{err}
	}
	var out []SliceFile
	for _, e := range entries {
		m := sliceName.FindStringSubmatch(e.Name())
		if m == nil {
			continue
		}
		id, err := strconv.Atoi(m[1])
		if err != nil || id > 1e9 {
			return nil, badInput("%s: the number of the slice is too large", filepath.Join(dir, e.Name()))
		}
		out = append(out, SliceFile{id, filepath.Join(dir, e.Name())})
	}
	slices.SortStableFunc(out, func(a, b SliceFile) int { return a.ID - b.ID })
	for i := 1; i < len(out); i++ {
		if out[i].ID == out[i-1].ID {
			return nil, badInput("%s and %s are both slice %d", out[i-1].Path, out[i].Path, out[i].ID)
		}
	}
	if len(out) == 0 {
		return nil, badInput("%s: there are no slices in this folder: want slice_z<NN>*.ome.zarr", dir)
	}
	return out, nil
}
