// Package datasets describes arrays for the run record.
package datasets

import (
	"math"

	"strata/pkg/address"
	"strata/pkg/ngff"
	"strata/pkg/runrecord"
	"strata/pkg/zarr"
)

// Bytes is the size of an array's elements in memory: what a progress bar over
// them counts to. It is 0, "not known", when that exceeds an int64.
func Bytes(a *zarr.Array) int64 {
	n := int64(a.DType().Size())
	for _, s := range a.Shape() {
		if s > 0 && n > math.MaxInt64/int64(s) {
			return 0
		}
		n *= int64(s)
	}
	return n
}

// Describe returns the record of an array under the path that the user knows it by.
// Its stored size is measured when the record is written.
func Describe(a *zarr.Array, path string) runrecord.Dataset {
	d := runrecord.Dataset{Path: address.Address(path), Shape: a.Shape(), DType: a.DType().String(), Chunks: a.Chunks(), Shard: a.Shard(), Format: a.Format()}
	for _, c := range a.Codecs() {
		d.Codecs = append(d.Codecs, c.Name())
	}
	return d
}

// DescribeImage returns the record of an image, from its level 0, under the path that the user knows it by.
func DescribeImage(im *ngff.Image, path string) runrecord.Dataset {
	d := Describe(im.Levels[0].Array, path)
	d.Levels = len(im.Levels)
	d.Metadata = runrecord.MetadataDigest(im.Group.Attributes(), d.Shape, d.DType)
	for i, axis := range im.Axes {
		if axis.Type == ngff.TypeSpace {
			d.VoxelSize = append(d.VoxelSize, im.VoxelSize[i])
		}
	}
	return d
}
