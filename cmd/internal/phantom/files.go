package phantom

import (
	"bufio"
	"errors"
	"io"
	"os"

	"strata/pkg/pattern"
	"strata/pkg/replace"
)

// The names of what the program writes into its folder, by what they are: mosaic grids, raw tiles and slide scans, the
// truth about them, and what the microscope records.
var (
	imageName = pattern.Lazy(`^(mosaic_grid_3d|truth/slice)_z\d{2,}\.ome\.zarr$`)
	dirName   = pattern.Lazy(`^(truth|z\d{2,}(/tile_x\d{2,}_y\d{2,}_z\d{2,})?)$`)
	plainName = pattern.Lazy(`^(truth\.json|shifts_xy\.csv|positions_z\d{2,}\.json|scan_z\d{2,}\.czi|truth/(flatfield|curvature|positions|surface_z\d{2,})\.npy|z\d{2,}/tile_x\d{2,}_y\d{2,}_z\d{2,}/(info\.txt|image_\d+\.bin))$`)
)

// written is the [replace.Rule] of the program's folder.
func written(key string, folder bool) replace.Kind {
	switch {
	case folder && imageName().MatchString(key):
		return replace.Image
	case folder && dirName().MatchString(key):
		return replace.Folder
	case !folder && plainName().MatchString(key):
		return replace.File
	}
	return replace.Foreign
}

// writeFile creates a file with what write writes.
func writeFile(path string, write func(io.Writer) error) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	w := bufio.NewWriter(f)
	err = write(w)
	return errors.Join(err, w.Flush(), f.Close())
}
