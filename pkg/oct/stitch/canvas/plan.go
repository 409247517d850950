package canvas

import (
	"slices"
	"unsafe"

	"strata/pkg/mem"
	"strata/pkg/oct"
	"strata/pkg/oct/compute/fusion"
)

// schedule determines the order in which tiles are read, and its cost.
//
// A stitched slice is written in columns of units (chunks or shards), stacked along z. A column begins when the
// first of its tiles is read, and is written when the last has been added. Tiles are read in order, row by row, so
// memory holds about the overlap of two rows of tiles and one row of units. If that exceeds the budget, the canvas
// is cut into blocks along x (tiles across a cut are read twice) or slabs along z (all tiles, or at least their
// chunks, are read again).
type schedule struct {
	unit    [3]int
	columns []fusion.Column // row by row
	across  int             // columns along x
	workers int
	window  int   // maximum number of tiles in flight
	blocks  []int // first column (along x) of each block, and the end
	slab    int   // units along z at a time
	bytes   int64 // maximum memory of columns
	total   int64 // memory of all
}

// Bytes returns the least memory for the columns of a canvas of that size (y, x), with chunks of unit.
func Bytes(size [2]int, unit [3]int) int64 {
	return int64(mem.Product((size[0]-1)/unit[1]+1, (size[1]-1)/unit[2]+1, int(unsafe.Sizeof(fusion.Column{}))))
}

// makeColumns divides a canvas into columns.
func makeColumns(size [2]int, unit [3]int, places []Place, seams bool) (columns []fusion.Column, across int) {
	across = (size[1] + unit[2] - 1) / unit[2]
	down := (size[0] + unit[1] - 1) / unit[1]
	columns = make([]fusion.Column, across*down)
	for k := range columns {
		y, x := k/across*unit[1], k%across*unit[2]
		columns[k].Box = oct.Rect(y, min(y+unit[1], size[0]), x, min(x+unit[2], size[1]))
	}
	for t, p := range places {
		for y := p.Y0 / unit[1]; y*unit[1] < p.Y1; y++ {
			for x := p.X0 / unit[2]; x*unit[2] < p.X1; x++ {
				c := &columns[y*across+x]
				c.Tiles = append(c.Tiles, t)
			}
		}
	}
	for k := range columns {
		c := &columns[k]
		c.Regions = arrange(c.Box, places, c.Tiles)
		for i := range c.Regions {
			r := &c.Regions[i]
			if len(r.Who) > 1 {
				c.Shared += r.Area()
			}
			if seams && len(r.Who) == 2 {
				pair := [2]int(r.Who)
				if r.Seam = slices.Index(c.Seams, pair); r.Seam < 0 {
					r.Seam = len(c.Seams)
					c.Seams = append(c.Seams, pair)
				}
			}
		}
	}
	return columns, across
}

// Holes returns the number of a plane's pixels that no tile covers.
func (p *schedule) Holes() (n int64) {
	for k := range p.columns {
		for _, r := range p.columns[k].Regions {
			if len(r.Who) == 0 {
				n += int64(r.Area())
			}
		}
	}
	return n
}

// plan chooses workers, blocks and slabs to minimise reading, which dominates the cost. least is the memory of the
// smallest plan; ok is false if that exceeds the limit.
func (p *schedule) plan(depth int, m fusion.Memory) (least int64, ok bool) {
	units := (depth + p.unit[0] - 1) / p.unit[0]
	best, bestTotal := -1.0, int64(0)
	least = -1
	try := *p
	for k := 2*m.Workers + 1; k >= 2; k-- {
		// a tile more than there are workers may begin, so that none waits
		w := k / 2
		if w != m.Workers && w&(w-1) != 0 {
			continue
		}
		for slab := units; slab >= 1; slab = shrink(slab) {
			for n := 1; n <= p.across; n = grow(n, p.across) {
				try.workers, try.window, try.slab = w, w+k&1, slab
				try.blocks = cutEvenly(p.across, n)
				need, tiles := try.peak(depth, m)
				total := need + m.Fixed + int64(w)*(m.Worker+int64(min(slab*p.unit[0], depth))*m.Plane)
				if least < 0 || total < least {
					least = total
				}
				if total > m.Limit {
					continue
				}
				// pieces that are read, per worker
				reads := 0
				for z := 0; z < depth; z += slab * p.unit[0] {
					end := min(z+slab*p.unit[0], depth)
					reads += (end+m.Piece-1)/m.Piece - z/m.Piece
				}
				// of plans that cost the same, the first, or the smallest where they are larger than what all programs
				// have
				if cost := float64(reads) * float64(tiles) / float64(w); best < 0 || cost < best || cost == best && total < bestTotal && bestTotal > mem.Assured {
					best, bestTotal = cost, total
					*p = try
					p.bytes, p.total = need, total
				}
			}
		}
	}
	return least, best >= 0
}

// limitFor returns about the smallest memory with which plan uses all workers.
func (p *schedule) limitFor(depth int, m fusion.Memory) int64 {
	return oct.Least(m.Limit, func(limit int64) bool {
		try := *p
		m.Limit = limit
		_, ok := try.plan(depth, m)
		return ok && try.workers == m.Workers
	})
}

func shrink(n int) int {
	if n == 1 {
		return 0
	}
	return (n + 1) / 2
}

// grow returns the next number of blocks worth trying.
func grow(n, most int) int {
	if n < 4 || n == most {
		return n + 1
	}
	return min(n+n/2, most)
}

// cutEvenly divides n columns into approximately the given number of blocks of equal length.
func cutEvenly(n, blocks int) []int {
	each := (n + blocks - 1) / blocks
	out := []int{0}
	for x := each; x < n; x += each {
		out = append(out, x)
	}
	return append(out, n)
}

// peak returns the maximum memory of columns in any block, and the number of tiles read, counted again for each
// block.
func (p *schedule) peak(depth int, m fusion.Memory) (most int64, tiles int) {
	planes := min(p.slab*p.unit[0], depth)
	var order, position []int
	for b := range len(p.blocks) - 1 {
		order, position = p.order(p.blocks[b], p.blocks[b+1], order, position)
		tiles += len(order)
		change := make([]int64, len(order)+p.window+2)
		p.each(p.blocks[b], p.blocks[b+1], func(c *fusion.Column) {
			if len(c.Tiles) == 0 {
				return
			}
			n := m.Column(c, planes)
			first, last := position[c.Tiles[0]], position[c.Tiles[len(c.Tiles)-1]]
			change[max(first-p.window+1, 0)] += n
			change[last+1] -= n
		})
		now := int64(0)
		for _, d := range change {
			now += d
			most = max(most, now)
		}
	}
	return most, tiles
}

// each visits the columns of a block.
func (p *schedule) each(first, end int, visit func(*fusion.Column)) {
	for row := 0; row < len(p.columns); row += p.across {
		for x := first; x < end; x++ {
			visit(&p.columns[row+x])
		}
	}
}

// order returns the tiles on the columns of a block, increasing, and the position of each tile in the list, or
// −1. It reuses the given slices.
func (p *schedule) order(first, end int, order, position []int) ([]int, []int) {
	position = position[:0]
	p.each(first, end, func(c *fusion.Column) {
		for _, t := range c.Tiles {
			for len(position) <= t {
				position = append(position, -1)
			}
			position[t] = 0
		}
	})
	order = order[:0]
	for t, used := range position {
		if used == 0 {
			position[t] = len(order)
			order = append(order, t)
		}
	}
	return order, position
}
