package ngff

import (
	"context"
	"fmt"

	"strata/pkg/zarr"
)

// Below is the part of level 1 that a tile of level 0, one that CheckTile finds good, makes,
// as [Downsample] would make it of the tile. alone is false where a neighbour of the tile takes part in it: where
// an axis of odd length, or chunks of odd length, are halved, unless one chunk has the
// axis. A region without dimensions: there is no level 1.
func (w *Writer) Below(start, shape []int) (below zarr.Region, alone bool) {
	l := w.pyramid.levels[0]
	if l.lattice == nil {
		return zarr.Region{}, true
	}
	lo, size := padded(start, 0), padded(shape, 1)
	for d, a := range l.lattice.axes {
		switch {
		case !a.halved:
		case a.in%2 == 0 && l.unit[d]%2 == 0:
			lo[d], size[d] = lo[d]/2, size[d]/2
		case size[d] == a.in && l.unit[d] >= a.in:
			size[d] = a.out
		default:
			return zarr.Region{}, false
		}
	}
	b := box{lo: lo}
	for d := range rank {
		b.hi[d] = lo[d] + size[d]
	}
	return l.area(b), true
}

// StoreTile is [Writer.WriteTile] of a tile that the caller has encoded: chunks are its
// chunks, in C order, and below the elements of [Writer.Below], which it makes alone.
func (w *Writer) StoreTile(ctx context.Context, start, shape []int, chunks []zarr.Stored, below []byte) error {
	r, alone := zarr.Region{}, false
	var part memory
	return w.chunks(ctx, start, shape, func(i int, at point) error {
		return w.pyramid.storedTile(ctx, at, chunks[i], part)
	}, func(units box) error {
		if r, alone = w.Below(start, shape); !alone {
			return fmt.Errorf("tile at %v of shape %v does not make its part of level 1 alone", start, shape)
		}
		if want := units.shape().volume(); len(chunks) != want {
			return fmt.Errorf("tile of shape %v has %d chunks, must be %d", shape, len(chunks), want)
		}
		n := 0
		if r.Shape != nil {
			n = padded(r.Shape, 1).volume() * w.pyramid.elem
		}
		if len(below) != n {
			return fmt.Errorf("the part of level 1 below a tile of shape %v has %d bytes, must be %d", shape, len(below), n)
		}
		part = memory{data: below, origin: padded(r.Start, 0), stride: contiguous(padded(r.Shape, 1))}
		return nil
	})
}
