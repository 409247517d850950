package preview

import (
	"strconv"

	"strata/pkg/dtype"
	"strata/pkg/ngff"
	"strata/pkg/oct"
	"strata/pkg/zarr"
)

// volume is one level of an image as a box of voxels (z, y, x); a 2-D image has
// one plane.
type volume struct {
	array   *zarr.Array
	level   int
	color   int        // dimension of channels, -1 if there is none
	channel int        // that is read
	flat    bool       // no z axis
	axes    [3]int     // dimension of the array that is z, y, x; z is -1 when flat
	shape   [3]int     // voxels
	chunk   [3]int     // voxels of a chunk
	size    [3]float64 // voxel size, µm
	origin  [3]float64 // of voxel 0's centre, µm
	where   string
}

// volumes are the levels of an image.
func volumes(im *ngff.Image, o *Options, list []channel, res oct.Resources) ([]*volume, error) {
	where := im.Group.Location()
	axes := [3]int{im.Axis("z"), im.Axis("y"), im.Axis("x")}
	if axes[1] < 0 || axes[2] < 0 {
		return nil, badInput("%s: the image has no axes y and x", where)
	}
	for d, a := range im.Axes {
		if d == axes[0] || d == axes[1] || d == axes[2] {
			continue
		}
		if n := im.Levels[0].Array.Shape()[d]; n > 1 && res.Warn != nil && !(a.Name == "c" && (list != nil || o.Channel != Auto)) {
			res.Warn(where + ": axis " + a.Name + " has " + strconv.Itoa(n) + " entries: the first is shown")
		}
	}
	if t := im.DType(); !t.IsNumber() && t != dtype.Bool {
		return nil, badInput("%s: elements of type %v have no brightness", where, t)
	}
	var vols []*volume
	for k, l := range im.Levels {
		v := &volume{array: l.Array, level: k, flat: axes[0] < 0, axes: axes, where: l.Array.Location(), color: im.Axis("c"), channel: max(o.Channel, 0)}
		shape, chunks := l.Array.Shape(), l.Array.Chunks()
		for i, d := range axes {
			v.shape[i], v.chunk[i], v.size[i] = 1, 1, 1
			if d < 0 {
				continue
			}
			if v.shape[i], v.chunk[i] = shape[d], min(chunks[d], shape[d]); shape[d] == 0 {
				return nil, badInput("%s: the image is empty: shape %v", v.where, shape)
			}
			um := im.VoxelSize[d] / im.Levels[0].Scale[d]
			v.size[i] = l.Scale[d] * um
			if l.Translation != nil {
				v.origin[i] = l.Translation[d] * um
			}
			if !(v.size[i] > 0 && v.size[i] < 1e18) {
				return nil, badInput("%s: voxel size %v along %s: want a positive number", v.where, l.Scale[d], im.Axes[d].Name)
			}
		}
		for d, n := range shape {
			if n == 0 {
				return nil, badInput("%s: the image is empty: axis %d of %v", v.where, d, shape)
			}
		}
		vols = append(vols, v)
	}
	return vols, nil
}

// choose is the level that the options ask for.
func choose(vols []*volume, o *Options) (*volume, error) {
	if o.Level != Auto {
		if o.Level < 0 || o.Level >= len(vols) {
			return nil, badOptions("--level %d: %s has the levels 0 to %d", o.Level, vols[0].where, len(vols)-1)
		}
		return vols[o.Level], nil
	}
	for _, v := range vols {
		if arrange(v, o).pixel <= v.inPlane() {
			return v, nil
		}
	}
	return vols[len(vols)-1], nil
}

// inPlane is the smaller voxel size of Y and X.
func (v *volume) inPlane() float64 { return min(v.size[1], v.size[2]) }

// region is a box of voxels as a region of the array.
func (v *volume) region(start, shape [3]int) zarr.Region {
	n := len(v.array.Shape())
	r := zarr.Region{Start: make([]int, n), Shape: make([]int, n)}
	for d := range n {
		r.Shape[d] = 1
	}
	if v.color >= 0 {
		r.Start[v.color] = v.channel
	}
	for i, d := range v.axes {
		if d >= 0 {
			r.Start[d], r.Shape[d] = start[i], shape[i]
		}
	}
	return r
}
