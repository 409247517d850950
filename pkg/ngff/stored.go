package ngff

import (
	"context"
	"fmt"

	"strata/pkg/filter"
	"strata/pkg/zarr"
)

// Part describes the contribution of a chunk of level 0 to level 1.
type Part struct {
	// Made is the part of level 1 that depends on this chunk alone. Taps tell for each axis how it is
	// computed, with samples counted in level 0; an axis that is not halved has none. If Made has no voxels
	// or no dimensions, there is no level 1.
	Made zarr.Region
	Taps []filter.Taps
	// Strips are the parts of the chunk that neighbouring chunks need as well.
	Strips []zarr.Region
}

// StoredChunk is a chunk of level 0 that the caller has encoded.
type StoredChunk struct {
	Stored zarr.Stored
	Made   []byte   // the elements of Part.Made
	Strips [][]byte // those of Part.Strips
}

// Part returns the contribution to level 1 of the chunk of level 0 with the given index in the chunk grid.
func (w *Writer) Part(index []int) Part {
	g := w.pyramid.given(padded(index, 0))
	l := w.pyramid.levels[0]
	if l.lattice == nil {
		return Part{}
	}
	p := Part{Made: l.area(g.made), Taps: make([]filter.Taps, l.dims)}
	for d := range p.Taps {
		if a := l.lattice.axes[rank-l.dims+d]; a.halved {
			lo, hi := p.Made.Start[d], p.Made.Start[d]+p.Made.Shape[d]
			p.Taps[d] = filter.Taps{Lo: a.Lo[lo:hi], Hi: a.Hi[lo:hi], W0: a.W0[lo:hi], W1: a.W1[lo:hi], Even: a.Even}
		}
	}
	for _, s := range g.strips {
		p.Strips = append(p.Strips, l.area(s.box))
	}
	return p
}

// StoreTile stores a tile like [Writer.WriteTile] from chunks, in C order, that the caller has encoded and
// downsampled.
func (w *Writer) StoreTile(ctx context.Context, start, shape []int, chunks []StoredChunk) error {
	given := make([]*given, len(chunks))
	return w.chunks(ctx, start, shape, func(i int, at point) error {
		return w.pyramid.storedTile(ctx, at, chunks[i].Stored, given[i])
	}, func(units box) error {
		n := units.shape()
		if want := n.volume(); len(chunks) != want {
			return fmt.Errorf("tile of shape %v has %d chunks, must be %d", shape, len(chunks), want)
		}
		for i := range chunks {
			at, r := units.lo, i
			for d := rank - 1; d >= 0; d-- {
				at[d] += r % n[d]
				r /= n[d]
			}
			given[i] = w.pyramid.given(at)
			if err := given[i].take(&chunks[i], w.pyramid.elem); err != nil {
				return fmt.Errorf("chunk %v of level 0: %w", at[rank-w.pyramid.levels[0].dims:], err)
			}
		}
		return nil
	})
}

// given replaces the elements of an encoded chunk of level 0.
type given struct {
	made   box // of level 1
	out    memory
	strips []strip
}

// strip returns the strip with the chunk's samples of a seam.
type strip struct {
	box  box
	axis int
	in   memory
}

// given plans the contribution of a chunk of level 0 to level 1.
func (p *pyramid) given(index point) *given {
	l := p.levels[0]
	g := &given{}
	if l.lattice == nil {
		return g
	}
	for d, c := range l.cut {
		if s := c.tiles[index[d]]; s.first == s.end {
			return g // level 1 needs nothing of the chunk
		}
	}
	extent := l.clipped(index)
	for d, c := range l.cut {
		low, high := extent, extent // strips at both ends
		low.hi[d], high.lo[d] = low.lo[d], high.hi[d]
		made := false
		for i := c.tiles[index[d]].first; i < c.tiles[index[d]].end; i++ {
			switch s := c.segments[i]; {
			case !s.seam && !made:
				g.made.lo[d], g.made.hi[d], made = s.out0, s.out1, true
			case !s.seam:
				g.made.hi[d] = s.out1
			case s.tile == index[d]:
				high.lo[d] = min(high.lo[d], s.in0)
			default:
				low.hi[d] = max(low.hi[d], s.in1)
			}
		}
		for _, b := range []box{low, high} {
			if b.lo[d] < b.hi[d] {
				g.strips = append(g.strips, strip{box: b, axis: d})
			}
		}
	}
	return g
}

// take sets the elements.
func (g *given) take(c *StoredChunk, elem int) error {
	shape := g.made.shape()
	if want := shape.volume() * elem; len(c.Made) != want {
		return fmt.Errorf("%d bytes of level 1, must be %d", len(c.Made), want)
	}
	g.out = memory{data: c.Made, origin: g.made.lo, stride: contiguous(shape)}
	if len(c.Strips) != len(g.strips) {
		return fmt.Errorf("%d strips for neighbours, must be %d", len(c.Strips), len(g.strips))
	}
	for i := range g.strips {
		s := &g.strips[i]
		shape := s.box.shape()
		if want := shape.volume() * elem; len(c.Strips[i]) != want {
			return fmt.Errorf("%d bytes for a neighbour, must be %d", len(c.Strips[i]), want)
		}
		s.in = memory{data: c.Strips[i], origin: s.box.lo, stride: contiguous(shape)}
	}
	return nil
}

// strip returns the one that has the chunk's samples of a seam.
func (g *given) strip(b box) memory {
	for _, s := range g.strips {
		if s.box.lo[s.axis] <= b.lo[s.axis] && b.hi[s.axis] <= s.box.hi[s.axis] {
			return s.in
		}
	}
	panic("ngff: a seam without a strip") // the two are planned by the same cuttings
}
