package resample

import (
	"math"
	"slices"

	"strata/pkg/filter"
	"strata/pkg/ngff"
	"strata/pkg/oct"
	"strata/pkg/units"
)

// regrid describes how the axes of a mosaic change.
type regrid struct {
	axes        [3]regridAxis
	corner      bool
	scale       []float64 // voxel size of the output, in the unit of the mosaic
	translation []float64 // centre of its first voxel; nil: not stated
}

// regridAxis describes one axis: whole tiles, optionally followed by a partial one.
type regridAxis struct {
	n, tile int // voxels of the mosaic and of its tile
	out     int // voxels of a resampled tile
	outEdge int // voxels of the resampled partial tile; 0: there is none
}

func (a regridAxis) whole() int  { return a.n / a.tile }
func (a regridAxis) length() int { return a.whole()*a.out + a.outEdge }

// span returns the start and length of tile i in the mosaic and in the output.
func (a regridAxis) span(i int) (start, n, outStart, out int) {
	if start = i * a.tile; i < a.whole() {
		return start, a.tile, i * a.out, a.out
	}
	return start, a.n - start, i * a.out, a.outEdge
}

// weights returns the weights of axis d for a whole tile or, with edge, for a partial one; nil if there is none.
// Samples of a partial tile have the spacing of those of a whole one, except with corner, where they reach from
// its first voxel to its last.
func (g *regrid) weights(d int, edge bool) *filter.Weights {
	a := g.axes[d]
	n, out := a.tile, a.out
	if edge {
		n, out = a.n%a.tile, a.outEdge
	}
	switch {
	case n == 0:
		return nil
	case g.corner:
		return filter.CornerAligned(n, out, filter.AntiAliasSigma(n, out), filter.Reflect)
	}
	return filter.CentreSpaced(n, out, a.tile, a.out, filter.AntiAliasSigma(a.tile, a.out), filter.Reflect)
}

// newRegrid plans the resampling; messages call the flag of the voxel size by the given name.
func newRegrid(m *oct.Mosaic, to Options, flag string) (*regrid, error) {
	resolution := to.Resolution
	level := m.Image.Levels[0]
	g := &regrid{corner: to.Corner, translation: slices.Clone(level.Translation)}
	if g.translation == nil && !g.corner {
		g.translation = make([]float64, len(g.axes))
	}
	bytes, before := float64(m.DType.Size()), float64(m.DType.Size())
	most := 64.0 // of the numbers that the memory of a tile is counted with
	for d := range g.axes {
		name := m.Image.Axes[d].Name
		um, _, ok := ngff.Micrometres(m.Image.Unit[d])
		if !ok {
			return nil, oct.BadInput("%s: axis %s is not an axis of space: its voxel size is not known", m.Where, name)
		}
		size := m.Image.VoxelSize[d]
		if err := units.CheckVoxel(resolution[d]); err != nil {
			return nil, oct.LayoutErrorf("%s along %s: %w", flag, name, err)
		}
		a := &g.axes[d]
		a.n, a.tile = m.Shape[d], m.Chunk[d]
		if d == 0 {
			a.tile = a.n // a tile has the full depth, however it is stored
		} else if !g.corner {
			a.tile = min(a.tile, a.n) // a chunk may be larger than the image
		}
		scaled := func(n int) float64 { return max(1, math.RoundToEven(float64(n)*(size/resolution[d]))) }
		out, outEdge := scaled(a.tile), 0.0
		if edge := a.n % a.tile; edge > 0 && g.corner {
			outEdge = scaled(edge)
		} else if edge > 0 {
			outEdge = max(1, math.RoundToEven(float64(edge)*(out/float64(a.tile))))
		}
		length := out*float64(a.whole()) + outEdge
		if length > 1<<40 {
			return nil, oct.LayoutErrorf("%s: %s %v µm makes an axis %s of %.3g voxels", m.Where, flag, resolution[d], name, length)
		}
		a.out, a.outEdge = int(out), int(outEdge)
		if g.corner {
			g.scale = append(g.scale, resolution[d]/um)
		} else {
			g.scale = append(g.scale, float64(level.Scale[d]*(float64(a.tile)/out))) // rounded: the same number on every machine
			g.translation[d] += 0.5 * (g.scale[d] - level.Scale[d])
		}
		bytes *= length
		before *= float64(a.n)
		most *= max(out, float64(a.tile))
	}
	if bytes > oct.VastBytes && bytes > 8*before {
		return nil, oct.LayoutErrorf("%s: %s %v µm makes an image of %v voxels, %.1f TiB, %.0f times the mosaic: is it meant to be in µm?",
			m.Where, flag, resolution, g.shape(), bytes/oct.VastBytes, bytes/before)
	}
	if max(bytes, most) > math.MaxInt64 {
		return nil, oct.BadInput("%s: tiles of %v voxels, to become %v, have more bytes than can be counted", m.Where,
			[]int{g.axes[0].tile, g.axes[1].tile, g.axes[2].tile}, g.tile())
	}
	return g, nil
}

// shape returns the shape of the output.
func (g *regrid) shape() []int {
	return []int{g.axes[0].length(), g.axes[1].length(), g.axes[2].length()}
}

// tile returns the shape of a resampled tile.
func (g *regrid) tile() []int { return []int{g.axes[0].out, g.axes[1].out, g.axes[2].out} }
