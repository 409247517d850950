package stage

import (
	"path/filepath"

	"strata/pkg/cli"
)

// Stem returns the path of an output without what its name has behind the last dots, .ome.zarr or .zarr: the beginning
// of the names of files beside it.
func Stem(out string) string { return cli.Stem(filepath.Clean(out)) }
