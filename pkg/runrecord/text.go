package runrecord

import (
	"fmt"
	"strings"

	"strata/pkg/units"
)

// String returns the shape, data type, voxel size and levels of a dataset in words: "20 × 512 × 512 float32, 10 × 2 × 2
// µm, 6 levels"; "" where it has none of them.
func (d *Dataset) String() string {
	var parts []string
	if len(d.Shape) > 0 {
		parts = append(parts, strings.TrimSpace(times("%d", d.Shape)+" "+d.DType))
	}
	if len(d.VoxelSize) > 0 {
		parts = append(parts, times("%.4g", d.VoxelSize)+" µm")
	}
	if d.Levels > 0 {
		parts = append(parts, units.Count(d.Levels, "level"))
	}
	return strings.Join(parts, ", ")
}

// Layout returns how a dataset is stored, in words: "chunks 64 × 64 × 64, shards 256 × 256 × 256, codecs bytes, zstd,
// Zarr format 3"; "" where it has no chunks.
func (d *Dataset) Layout() string {
	if len(d.Chunks) == 0 {
		return ""
	}
	text := "chunks " + times("%d", d.Chunks)
	if len(d.Shard) > 0 {
		text += " in shards " + times("%d", d.Shard)
	}
	codecs := "none"
	if len(d.Codecs) > 0 {
		codecs = strings.Join(d.Codecs, ", ")
	}
	return fmt.Sprintf("%s; codecs: %s; Zarr format %d", text, codecs, d.Format)
}

// times joins the lengths along the axes of an array.
func times[T any](format string, lengths []T) string {
	var all []string
	for _, n := range lengths {
		all = append(all, fmt.Sprintf(format, n))
	}
	return strings.Join(all, " × ")
}
