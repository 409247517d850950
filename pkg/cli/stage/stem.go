package stage

import (
	"path/filepath"
	"strings"
)

// Stem returns the path of an output without what its name has behind the last dots, .ome.zarr or .zarr: the beginning of the names of
// files beside it.
func Stem(out string) string {
	base := filepath.Clean(out)
	for _, suffix := range []string{".ome.zarr", ".zarr"} {
		if rest, ok := strings.CutSuffix(base, suffix); ok {
			return rest
		}
	}
	return base
}
