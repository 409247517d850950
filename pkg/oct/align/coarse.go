package align

import (
	"context"

	"strata/pkg/oct"
	"strata/pkg/oct/blocks"
)

// coarse is a volume of which a voxel is the mean of a box of those of a level of the pyramid. It stands for levels
// that an image lacks.
type coarse struct {
	*blocks.Volume
	factor [3]int // sides of the box; voxels beyond the last whole box are left out
}

func whole(v *blocks.Volume) coarse { return coarse{v, [3]int{1, 1, 1}} }

// shape returns the number of voxels along each axis.
func (c coarse) shape() (n [3]int) {
	for d := range n {
		n[d] = c.Shape[d] / c.factor[d]
	}
	return n
}

// voxel returns the size of voxels in µm.
func (c coarse) voxel() (um [3]float64) {
	for d := range um {
		um[d] = c.Voxel[d] * float64(c.factor[d])
	}
	return um
}

// least is the number of voxels along an axis below which it is not made coarser.
const least = 16

// coarser doubles the voxels along the axis along which they are smallest. ok is false if all axes have few voxels
// left.
func (c coarse) coarser() (_ coarse, ok bool) {
	axis := -1
	for d, um := range c.voxel() {
		if c.shape()[d] >= 2*least && (axis < 0 || um < c.voxel()[axis]) {
			axis = d
		}
	}
	if axis < 0 {
		return c, false
	}
	c.factor[axis] *= 2
	return c, true
}

// read computes all voxels, with the volume block by block. NaN and infinite voxels do not count; a box without others
// is 0. The result does not depend on how blocks are cut.
func (c coarse) read(ctx context.Context, dst []float32, res oct.Resources) error {
	cut, err := c.cut(res)
	if err != nil {
		return err
	}
	n := c.shape()
	return cut.Each(ctx, func(_ context.Context, b *blocks.Block) error {
		var from, to [3]int // in the result
		for d := range n {
			from[d], to[d] = b.Start[d]/c.factor[d], min((b.Start[d]+b.Shape[d])/c.factor[d], n[d])
		}
		for z := from[0]; z < to[0]; z++ {
			for y := from[1]; y < to[1]; y++ {
				row := dst[(z*n[1]+y)*n[2]:]
				for x := from[2]; x < to[2]; x++ {
					row[x] = c.mean(b, z*c.factor[0]-b.Start[0], y*c.factor[1]-b.Start[1], x*c.factor[2]-b.Start[2])
				}
			}
		}
		return nil
	})
}

// mean returns the mean of the box that begins at a voxel of a block.
func (c coarse) mean(b *blocks.Block, z0, y0, x0 int) float32 {
	sum, n := 0.0, 0
	for z := range c.factor[0] {
		for y := range c.factor[1] {
			for _, v := range b.Voxels[b.At(z0+z, y0+y, x0):][:c.factor[2]] {
				if v-v == 0 {
					sum += float64(v)
					n++
				}
			}
		}
	}
	if n == 0 {
		return 0
	}
	return float32(sum / float64(n))
}

// cut divides the volume into blocks of whole boxes: a chunk, or less if memory is short.
func (c coarse) cut(res oct.Resources) (*blocks.Cut, error) {
	size := c.Chunk
	for d, f := range c.factor {
		size[d] = max(1, (size[d]+f/2)/f) * f
		if c.Chunk[d] == c.Shape[d] {
			size[d] = (c.Shape[d] + f - 1) / f * f
		}
	}
	for {
		cut, err := c.Cut(blocks.Plan{Size: size, Work: "reading blocks"}, res)
		if err == nil {
			return cut, nil
		}
		longest := -1
		for d, f := range c.factor {
			if size[d] > f && (longest < 0 || size[d] > size[longest]) {
				longest = d
			}
		}
		if longest < 0 {
			return nil, err
		}
		f := c.factor[longest]
		size[longest] = (size[longest]/f + 1) / 2 * f
	}
}
