// Package spatial presents the levels of an image as boxes of voxels (z, y, x) with a position in
// micrometres, whatever the order of the dimensions in the file.
package spatial

import (
	"fmt"
	"slices"

	"strata/pkg/dtype"
	"strata/pkg/ngff"
	"strata/pkg/units"
	"strata/pkg/zarr"
)

// Level is one resolution of an image as a box of voxels (z, y, x). A 2-D image has one plane.
type Level struct {
	Array  *zarr.Array
	Axes   [3]int     // dimension of the array that is z, y, x; z is -1 in a 2-D image
	Others []int      // the other dimensions, such as time and channel, in order
	Shape  [3]int     // voxels
	Chunk  [3]int     // voxels of a chunk
	Size   [3]float64 // voxel size, µm
	Origin [3]float64 // centre of voxel 0, µm
}

// Levels returns the levels of an image. It fails for an image without axes y and x, for an empty one, and
// for non-numeric elements.
func Levels(im *ngff.Image) ([]Level, error) {
	where := im.Group.Location()
	axes := [3]int{im.Axis("z"), im.Axis("y"), im.Axis("x")}
	if axes[1] < 0 || axes[2] < 0 {
		return nil, fmt.Errorf("%s: the image has no axes y and x", where)
	}
	if t := im.DType(); !t.IsNumber() && t != dtype.Bool {
		return nil, fmt.Errorf("%s: elements of type %v have no brightness", where, t)
	}
	var others []int
	for d := range im.Axes {
		if d != axes[0] && d != axes[1] && d != axes[2] {
			others = append(others, d)
		}
	}
	var levels []Level
	for _, l := range im.Levels {
		shape := l.Array.Shape()
		if slices.Contains(shape, 0) {
			return nil, fmt.Errorf("%s: the image is empty: shape %v", l.Array.Location(), shape)
		}
		v := Level{Array: l.Array, Axes: axes, Others: others}
		if err := v.place(im, l); err != nil {
			return nil, err
		}
		levels = append(levels, v)
	}
	return levels, nil
}

// place sets the shape, the voxel size and the origin.
func (l *Level) place(im *ngff.Image, from ngff.Level) error {
	shape, chunks := l.Array.Shape(), l.Array.Chunks()
	for i, d := range l.Axes {
		l.Shape[i], l.Chunk[i], l.Size[i] = 1, 1, 1
		if d < 0 {
			continue
		}
		l.Shape[i], l.Chunk[i] = shape[d], min(chunks[d], shape[d])
		um := im.VoxelSize[d] / im.Levels[0].Scale[d]
		l.Size[i] = from.Scale[d] * um
		if from.Translation != nil {
			l.Origin[i] = from.Translation[d] * um
		}
		if err := units.CheckVoxel(l.Size[i]); err != nil { // an axis named x that is no axis of space
			return fmt.Errorf("%s: axis %q: %w", l.Array.Location(), im.Axes[d].Name, err)
		}
	}
	return nil
}

// Flat reports whether the image has no axis z.
func (l *Level) Flat() bool { return l.Axes[0] < 0 }

// Region returns a box of voxels as a region of the array. others are the indices along [Level.Others]; nil: all 0.
func (l *Level) Region(start, shape [3]int, others []int) zarr.Region {
	n := len(l.Array.Shape())
	r := zarr.Region{Start: make([]int, n), Shape: make([]int, n)}
	for d := range n {
		r.Shape[d] = 1
	}
	for i, d := range l.Others {
		if others != nil {
			r.Start[d] = others[i]
		}
	}
	for i, d := range l.Axes {
		if d >= 0 {
			r.Start[d], r.Shape[d] = start[i], shape[i]
		}
	}
	return r
}
