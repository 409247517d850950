package preview

import (
	"strconv"

	"strata/pkg/ngff"
	"strata/pkg/ngff/spatial"
	"strata/pkg/oct"
	"strata/pkg/zarr"
)

// volume is one level of an image and the channel that is read.
type volume struct {
	spatial.Level
	level   int
	color   int // dimension of channels, -1 if there is none
	channel int // that is read
	where   string
}

// volumes returns the levels of an image.
func volumes(im *ngff.Image, o *Options, list []channel, res oct.Resources) ([]*volume, error) {
	levels, err := spatial.Levels(im)
	if err != nil {
		return nil, inputError{err}
	}
	for _, d := range levels[0].Others {
		a := im.Axes[d]
		if n := im.Levels[0].Array.Shape()[d]; n > 1 && res.Warn != nil && !(a.Name == "c" && (list != nil || o.Channel != Auto)) {
			res.Warn(im.Group.Location() + ": axis " + a.Name + " has " + strconv.Itoa(n) + " entries: the first is shown")
		}
	}
	var vols []*volume
	for k, l := range levels {
		vols = append(vols, &volume{Level: l, level: k, where: l.Array.Location(), color: im.Axis("c"), channel: max(o.Channel, 0)})
	}
	return vols, nil
}

// choose returns the level that the options ask for.
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

// inPlane returns the smaller voxel size of Y and X.
func (v *volume) inPlane() float64 { return min(v.Size[1], v.Size[2]) }

// region returns a box of voxels of the channel as a region of the array.
func (v *volume) region(start, shape [3]int) zarr.Region {
	r := v.Region(start, shape, nil)
	if v.color >= 0 {
		r.Start[v.color] = v.channel
	}
	return r
}
