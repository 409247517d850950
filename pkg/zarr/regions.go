package zarr

import (
	"context"
	"fmt"

	"strata/pkg/mem"
	"strata/pkg/work"
	"strata/pkg/zarr/box"
)

// ReadRegions reads several regions at once: dst[i] gets the elements of regions[i], as with [Array.Read].
// Regions may overlap; a chunk that several of them touch is read and decoded once. It is made for many small
// regions, such as patches around the cells of a slide.
func (a *Array) ReadRegions(ctx context.Context, regions []Region, dst [][]byte) error {
	if len(regions) != len(dst) {
		return fmt.Errorf("%s: %d regions, %d buffers", a.Location(), len(regions), len(dst))
	}
	chunks := map[string]*sharedChunk{}
	var order []*sharedChunk
	for i, r := range regions {
		n, err := a.regionBytes(r)
		if err != nil {
			return err
		}
		if n != len(dst[i]) {
			return fmt.Errorf("%s: region %v of %s has %d bytes, the buffer %d", a.Location(), r, a.meta.DType, n, len(dst[i]))
		}
		if n > 0 {
			order = a.share(chunks, order, i, r)
		}
	}
	one := a.With(Workers(1))
	size := a.meta.Pipeline.Size
	return work.Each(ctx, a.opts.workers, len(order), func(_, k int) error {
		c := order[k]
		if len(c.parts) == 1 {
			p := c.parts[0]
			strides := box.Strides(make([]int, len(p.Shape)), regions[p.of].Shape, size)
			return one.ReadStrided(ctx, p.Region, dst[p.of][offsetIn(regions[p.of], p.Start, strides):], strides)
		}
		shape := make([]int, len(c.lo))
		for d := range shape {
			shape[d] = c.hi[d] - c.lo[d]
		}
		buf, err := mem.Alloc(mem.Product(append([]int{size}, shape...)...))
		if err != nil {
			return err
		}
		defer mem.Free(buf)
		all := Region{Start: c.lo, Shape: shape}
		if err := one.Read(ctx, all, buf); err != nil {
			return err
		}
		from := box.Strides(make([]int, len(shape)), shape, size)
		for _, p := range c.parts {
			to := box.Strides(make([]int, len(shape)), regions[p.of].Shape, size)
			box.Copy(dst[p.of][offsetIn(regions[p.of], p.Start, to):], to, buf[offsetIn(all, p.Start, from):], from, p.Shape, size)
		}
		return nil
	})
}

// sharedChunk is a chunk with the parts of it that regions need, and the bounding box of these.
type sharedChunk struct {
	lo, hi []int
	parts  []part
}

// part is a box in a chunk that belongs to region number of.
type part struct {
	Region
	of int
}

// share adds the parts of a region to the chunks that it touches.
func (a *Array) share(chunks map[string]*sharedChunk, order []*sharedChunk, of int, r Region) []*sharedChunk {
	unit := a.Chunks()
	index := make([]int, len(unit))
	for d := range index {
		index[d] = r.Start[d] / unit[d]
	}
	var key []byte
	for {
		p := part{Region: Region{Start: make([]int, len(unit)), Shape: make([]int, len(unit))}, of: of}
		for d, i := range index {
			lo, hi := max(r.Start[d], i*unit[d]), min(r.Start[d]+r.Shape[d], (i+1)*unit[d])
			p.Start[d], p.Shape[d] = lo, hi-lo
		}
		key = a.meta.Keys.Append(key[:0], index)
		c := chunks[string(key)]
		if c == nil || a.meta.Pipeline.Plain() { // parts of chunks stored as they are cost only themselves
			c = &sharedChunk{lo: append([]int{}, p.Start...), hi: append([]int{}, p.Start...)}
			chunks[string(key)] = c
			order = append(order, c)
		}
		for d := range index {
			c.lo[d], c.hi[d] = min(c.lo[d], p.Start[d]), max(c.hi[d], p.Start[d]+p.Shape[d])
		}
		c.parts = append(c.parts, p)
		d := len(index) - 1
		for ; d >= 0; d-- {
			if index[d]++; index[d]*unit[d] < r.Start[d]+r.Shape[d] {
				break
			}
			index[d] = r.Start[d] / unit[d]
		}
		if d < 0 {
			return order
		}
	}
}

// offsetIn returns the offset of the element at start in memory that holds a region.
func offsetIn(r Region, start, strides []int) (off int) {
	for d, s := range strides {
		off += (start[d] - r.Start[d]) * s
	}
	return off
}
