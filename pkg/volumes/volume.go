// Package volumes shows volumes in files of medical imaging as OME-Zarr: NIfTI (package nifti) and NRRD (package nrrd),
// which have their voxels one after the other in one block, uncompressed or compressed as a whole by gzip, and say
// where they lie in space.
//
//	st, err := volumes.Open(ctx, file, "atlas.nii.gz", volume)
//	im, err := ngff.Open(ctx, st, "")
//
// Nothing is converted in advance. A chunk is a plane. What is compressed cannot be read in parts: Open unpacks it into
// a file without a name in the folder for temporary files (TMPDIR).
//
// An image has the axes time, channel, depth, height and width that the file has, in this order. Its group has the
// attribute "world": where voxels lie, as an [Affine].
package volumes

import (
	"encoding/json"
	"fmt"

	"strata/pkg/dtype"
	"strata/pkg/mem"
)

// Volume describes a file's voxels and where they lie.
type Volume struct {
	Times, Channels, Depth, Height, Width int  // at least 1
	Flat                                  bool // there is no axis z
	Type                                  dtype.Type
	BigEndian                             bool
	Together                              bool    // the channels of a voxel lie together; else times vary faster than channels
	Slope, Inter                          float64 // the values are Slope × stored + Inter; Slope 0: as stored
	Interval                              float64 // of times in seconds; 0: unknown
	Name                                  string
	Space                                 Affine
	Codes                                 map[string]any // what else a format says of Space, to be given back
	Warnings                              []string
}

// mostVoxels bounds the voxels of a volume: what can be counted with room for any type.
const mostVoxels = 1 << 56

// Check returns an error for sizes that no volume has.
func (v *Volume) Check() error {
	n := 1
	for _, size := range []int{v.Times, v.Channels, v.Depth, v.Height, v.Width} {
		if size < 1 {
			return fmt.Errorf("an axis has %d voxels", size)
		}
		if n = mem.Product(n, size); n > mostVoxels {
			return fmt.Errorf("%d × %d × %d × %d × %d voxels are more than can be counted", v.Width, v.Height, v.Depth, v.Times, v.Channels)
		}
	}
	if v.Type == dtype.Invalid {
		return fmt.Errorf("voxels have no type")
	}
	return v.Space.Check()
}

// Bytes returns the length of all voxels as stored.
func (v *Volume) Bytes() int64 {
	return int64(v.Times) * int64(v.Channels) * int64(v.Depth) * v.planeBytes()
}

// planeBytes returns the length of a plane of one channel as stored.
func (v *Volume) planeBytes() int64 {
	return int64(v.Height) * int64(v.Width) * int64(v.Type.Size())
}

// scaled reports whether values are others than those stored.
func (v *Volume) scaled() bool { return v.Slope != 0 && (v.Slope != 1 || v.Inter != 0) }

// shownType returns the type of the values: float64 where float32 does not hold those stored.
func (v *Volume) shownType() dtype.Type {
	switch {
	case !v.scaled():
		return v.Type
	case v.Type.Size() > 4 || v.Type.IsInteger() && v.Type.Size() == 4:
		return dtype.Float64
	}
	return dtype.Float32
}

// World is the attribute "world" of an image: where its voxels lie.
type World struct {
	Affine Affine         `json:"affine"` // of level 0
	Unit   string         `json:"unit"`   // "millimeter"
	Space  string         `json:"space"`  // "RAS"
	Codes  map[string]any `json:"codes,omitempty"`
}

// WorldKey is the name of the attribute.
const WorldKey = "world"

// WorldOf returns the attribute of an image's group; nil: it has none that can be read.
func WorldOf(attributes map[string]json.RawMessage) *World {
	var w World
	raw, ok := attributes[WorldKey]
	if !ok || json.Unmarshal(raw, &w) != nil || w.Unit != "millimeter" || w.Space != "RAS" || w.Affine.Check() != nil {
		return nil
	}
	return &w
}
