package canvas

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"strata/pkg/filter"
	"strata/pkg/oct"
)

// Blending selects the value of a voxel that several tiles cover.
type Blending string

// Values of Blending.
const (
	// BlendNone takes each pixel from the tile whose border is farthest, so that the seam runs through the middle of
	// the overlap.
	BlendNone Blending = "none"
	// BlendAverage takes the mean.
	BlendAverage Blending = "average"
	// BlendFeather weights tiles by the distance from their borders: [filter.Feather].
	BlendFeather Blending = "feather"
	// BlendDiffusion weights tiles by the solution of Laplace's equation on the overlap: [filter.Diffusion].
	BlendDiffusion Blending = "diffusion"
)

// Blendings lists all values of [Blending] as the flag spells them.
var Blendings = []string{string(BlendNone), string(BlendAverage), string(BlendFeather), string(BlendDiffusion)}

// situation holds everything that a tile's weights depend on.
type situation struct {
	blending Blending
	ny, nx   int
	others   []oct.Rectangle // relevant parts of overlapping tiles, in its coordinates
}

// situation returns a tile's situation, or nil if its weights are all 1.
func (f *Assembly) situation(t int) *situation {
	if f.Blending == BlendAverage || len(f.near[t]) == 0 {
		return nil
	}
	p := &f.Places[t]
	c := &situation{blending: f.Blending, ny: p.Y1 - p.Y0, nx: p.X1 - p.X0}
	if f.Blending == BlendDiffusion {
		for _, o := range f.near[t] {
			c.others = append(c.others, f.Places[o].Moved(-p.Y0, -p.X0).And(oct.Rect(-1, c.ny+1, -1, c.nx+1)))
		}
	}
	return c
}

// key returns a text that is the same for equal situations.
func (c *situation) key() string {
	var key strings.Builder
	fmt.Fprintf(&key, "%d %d", c.ny, c.nx)
	for _, r := range c.others {
		fmt.Fprintf(&key, " %d %d %d %d", r.Y0, r.X0, r.Y1, r.X1)
	}
	return key.String()
}

// fill computes the weights.
func (c *situation) fill(v []float32) {
	if c.blending == BlendDiffusion {
		others := make([]filter.Rect, len(c.others))
		for i, o := range c.others {
			others[i] = filter.Rect{Y0: o.Y0, X0: o.X0, Y1: o.Y1, X1: o.X1}
		}
		filter.Diffusion(v, c.ny, c.nx, others)
	} else {
		filter.Feather(v, c.ny, c.nx)
	}
}

// Overlapping returns, for each tile, the other tiles that overlap or touch it, in increasing order.
func Overlapping(places []Place) [][]int {
	out := make([][]int, len(places))
	Touching(places, func(a, b int) bool {
		out[a] = append(out[a], b)
		out[b] = append(out[b], a)
		return true
	})
	for t := range out {
		slices.Sort(out[t])
	}
	return out
}

// Touching calls visit for pairs of tiles that overlap or touch, until it returns false.
func Touching(places []Place, visit func(a, b int) bool) {
	var active []int // tiles whose rows may reach those of the next
	order := make([]int, len(places))
	for t := range order {
		order[t] = t
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Or(places[a].Y0-places[b].Y0, a-b) })
	for _, t := range order {
		p := places[t]
		if p.Empty() {
			continue // there is no tile
		}
		keep := active[:0]
		for _, o := range active {
			q := places[o]
			if q.Y1 < p.Y0 {
				continue
			}
			keep = append(keep, o)
			if q.X0 <= p.X1 && p.X0 <= q.X1 && !visit(o, t) {
				return
			}
		}
		active = append(keep, t)
	}
}
