// Package projection averages the tiles of a mosaic grid along z, for comparing neighbours.
package projection

import (
	"context"
	"fmt"
	"slices"

	"strata/pkg/dtype"
	"strata/pkg/oct"
	"strata/pkg/oct/compute"
)

// Projector computes the average projections of tiles, with the same bits on every machine. On a device each tile
// is uploaded once, and its projection and 16 bytes come back. Neighbours are compared on the host: projections
// are small, and the decisions must not depend on a device's order of summation.
type Projector struct {
	mosaic  *oct.Mosaic
	res     oct.Resources
	source  *compute.Source
	depths  [2]int            // first plane of those that are averaged, and the one after the last
	counted []bool            // tiles whose bytes were reported as progress, in this pass or another
	done    func(bytes int64) // reports progress
}

// New returns a projector that averages planes depths[0] to depths[1]−1; counted marks the tiles already
// reported as progress.
func New(m *oct.Mosaic, depths [2]int, counted []bool, res oct.Resources) (*Projector, error) {
	p := &Projector{mosaic: m, res: res, depths: depths, counted: counted, done: res.Done}
	p.res.Progress = nil // tiles come again, and count once
	var err error
	if p.source, err = compute.NewSource(m, &p.res, res.Meter); err != nil {
		return nil, err
	}
	p.source.InBands()
	return p, nil
}

// Indices of a worker's blocks.
const (
	sumsBlock = iota // float64, of a part of a tile
	meanBlock        // float32, likewise
)

// Project returns the projections of tiles, nil for empty ones. Workers get half of the memory; the other half is
// for the projections.
func (p *Projector) Project(ctx context.Context, tiles []int) ([][]float32, error) {
	m, n := p.mosaic, p.source.Pixels()
	plan := &compute.Plan{
		What: fmt.Sprintf("projecting tiles of %v voxels", m.Tile()), Source: p.source, Most: len(tiles), Pieces: len(tiles),
		Memory: compute.Memory{
			Host: p.res.Mem / 2, Blocks: []int64{sumsBlock: 8 * n, meanBlock: 4 * n},
			Brought: 4*int64(m.Chunk[1])*int64(m.Chunk[2]) + 8*p.source.MostParts(),
		},
		NonFinite: func(int64) {}, // counted where they are stitched
	}
	out := make([][]float32, len(tiles))
	next := -1
	err := compute.Run(ctx, plan, func() (int, bool) { next++; return next, next < len(tiles) }, func(w compute.Projector, k int) {
		p.one(w, tiles[k], &out[k])
	})
	return out, err
}

// one projects tile t into out, which stays nil if all sums are zero.
func (p *Projector) one(w compute.Projector, t int, out *[]float32) {
	_, nx := p.mosaic.Tiles()
	tile := p.mosaic.Extent(t/nx, t%nx)
	projection, some := make([]float32, 0, tile.Area()), false
	for _, part := range p.source.Parts(tile) {
		pixels := part.Area()
		sums, mean := w.Block(sumsBlock).From(0, 8*int64(pixels)), w.Block(meanBlock).From(0, 4*int64(pixels))
		plane := int64(pixels * p.mosaic.DType.Size())
		w.Stream(part, func(z, n int, planes compute.Block) {
			if from, to := max(z, p.depths[0]), min(z+n, p.depths[1]); from < to {
				w.AddPlanes(sums, planes.From(int64(from-z)*plane, int64(to-from)*plane), to-from, pixels, from == p.depths[0])
			}
		})
		w.Mean(mean, sums, p.depths[1]-p.depths[0], pixels)
		w.AnySum(sums, func(any bool) { some = some || any })
		w.Bring(mean, func(b []byte) {
			projection = append(projection, dtype.Slice[float32](b)...)
			if len(projection) < tile.Area() {
				return
			}
			if some {
				*out = slices.Clip(projection)
			}
			if !p.counted[t] {
				p.counted[t] = true
				p.done(int64(tile.Area()) * int64(p.mosaic.Shape[0]) * int64(p.mosaic.DType.Size()))
			}
		})
	}
}
