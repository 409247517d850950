// Package datasets describes arrays for the run record.
package datasets

import (
	"math"
	"slices"

	"strata/pkg/address"
	"strata/pkg/ngff"
	"strata/pkg/record"
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

// Describe is the record of an array under the path that the user knows it by.
// Its stored size is measured when the record is written.
func Describe(a *zarr.Array, path string) record.Dataset {
	d := record.Dataset{Path: address.Address(path), Shape: a.Shape(), DType: a.DType().String(), Chunks: a.Chunks(), Shard: a.Shard(), Format: a.Format()}
	for _, c := range a.Codecs() {
		d.Codecs = append(d.Codecs, c.Name())
	}
	return d
}

// DescribeImage describes level 0 of an image, with the size of its voxels where JSON has a form for it: metres of
// 1e305 are more µm than a number can be.
func DescribeImage(im *ngff.Image, path string) record.Dataset {
	d := Describe(im.Levels[0].Array, path)
	if !slices.ContainsFunc(im.VoxelSize, func(v float64) bool { return math.IsInf(v, 0) || math.IsNaN(v) }) {
		d.VoxelUM = im.VoxelSize
	}
	return d
}
