package smooth

import (
	"cmp"
	"math"
	"slices"

	"strata/pkg/dtype"
	"strata/pkg/filter"
	"strata/pkg/mem"
	"strata/pkg/oct"
)

// smoothTiling describes how an image is cut into tiles for filters with halos, and what is in memory.
type smoothTiling struct {
	tile    []int // of the loader: whole chunks of the output
	grid    []int // number of tiles
	order   []int // axes from the fastest to the slowest of the walk
	workers int
	each    int64 // bytes of a worker
	cache   int64 // bytes of tiles
}

// tiles returns the number of tiles.
func (t *smoothTiling) tiles() int { return mem.Product(t.grid...) }

// tileSmooth chooses the cheapest tiling that fits in memory.
func tileSmooth[T dtype.Element, F float32 | float64](p *smoothPlan) error {
	chunk := 2 * int64(p.out.Size())
	for _, n := range p.chunks {
		chunk *= int64(n)
	}
	scratch := smoothScratch[T, F](p)
	choose := func(granted int64) (t smoothTiling, pyramid int64, least float64) {
		q := *p
		pyramid = max(granted/4, chunk+16<<10)
		c := tilingChoice{plan: &q, available: float64(granted - pyramid), least: math.Inf(1), cost: math.Inf(1), chunk: float64(chunk), scratch: scratch}
		c.try(slices.Clone(p.chunks), p.lead)
		return q.smoothTiling, pyramid, c.least
	}
	unlimited, _, _ := choose(math.MaxInt64 / 4)
	p.useful = min(max(unlimited.workers, 1), p.res.Busy(0)) // with fewer tiles than that nobody is idle for want of memory
	busy := func(t smoothTiling) bool { return t.tile != nil && t.workers >= p.useful }
	var least float64
	if p.smoothTiling, p.pyramidMem, least = choose(p.res.Spare()); !busy(p.smoothTiling) { // else more is not worth while
		p.smoothTiling, p.pyramidMem, least = choose(p.res.Mem)
	}
	p.useful = max(p.useful, p.workers)
	p.all = p.res.Mem
	if p.tile != nil && !busy(p.smoothTiling) {
		p.all = oct.Least(p.res.Mem, func(granted int64) bool {
			t, _, _ := choose(granted)
			return busy(t)
		})
	}
	if p.tile == nil {
		return p.res.TooLittle(int64(min(max(least*4/3, least+float64(p.pyramidMem)), math.MaxInt64/2)), "%s: filtering chunks of %v voxels with %v voxels around them", p.where,
			p.chunks, p.radius[3-len(p.shape)+p.lead:])
	}
	return nil
}

// tilingChoice searches for a tiling of a plan.
type tilingChoice struct {
	plan             *smoothPlan
	available, chunk float64 // bytes
	scratch          func(shape [3]int) int64
	cost             float64 // of the best so far
	least            float64 // memory of the smallest tiling
}

// try weighs all tiles that are 1, 2, 4 … of the given chunks long along axis d and the axes after it.
func (c *tilingChoice) try(tile []int, d int) {
	if d == len(tile) {
		c.weigh(tile)
		return
	}
	first := tile[d]
	for {
		c.try(tile, d+1)
		if tile[d] == c.plan.shape[d] {
			break
		}
		tile[d] = min(2*tile[d], c.plan.shape[d])
	}
	tile[d] = first
}

// Costs of a tiling in units of the time to filter a voxel.
const (
	costOfLoading = 0.5  // a voxel, from its chunk
	costOfTile    = 4000 // asking for a view, writing a tile
	costOfSize    = 0.05 // of a voxel, for each doubling of a view beyond what a core's own caches hold
	betterSize    = 4 << 20
)

// weigh keeps a tiling if it is better than the best so far.
func (c *tilingChoice) weigh(tile []int) {
	p := c.plan
	t := smoothTiling{tile: slices.Clone(tile)}
	voxels, wide, tiles := 1.0, 1.0, 1.0
	shape := [3]int{1, 1, 1}
	for d, n := range tile {
		t.grid = append(t.grid, (p.shape[d]+n-1)/n)
		tiles *= float64(t.grid[d])
		voxels *= float64(n)
		if s := d + 3 - len(tile); d >= p.lead {
			shape[s] = n
			n += 2 * p.radius[s]
			t.order = append(t.order, d)
		}
		wide *= float64(n)
	}
	slices.SortStableFunc(t.order, func(a, b int) int { return cmp.Compare(t.grid[a], t.grid[b]) })
	for d := p.lead - 1; d >= 0; d-- {
		t.order = append(t.order, d)
	}
	size := float64(p.dtype.Size())
	if 8*wide > 1<<40 {
		c.least = min(c.least, 8*wide)
		return
	}
	view, held := pooled(wide*size), pooled(voxels*size) // the latter is a tile in the cache
	parts := 1.0
	if len(p.array.Codecs()) == 0 { // the loader cuts tiles into parts, and keeps a quarter of the cache for those at their ends
		parts = 4. / 3
	}
	held *= parts
	each := view + voxels*float64(p.out.Size()) + c.chunk + float64(c.scratch(shape)+p.array.ScratchBytes(false))
	c.least = min(c.least, each+held)
	for w := min(float64(p.res.Workers), tiles); w >= 1; w = math.Floor(w / 2) {
		cached := min(math.Floor((c.available-w*each)/held), tiles)
		if cached < min(w, tiles) {
			continue
		}
		loads, needed := t.loads(p, cached-w)
		cost := wide/voxels*(1+costOfSize*max(0, math.Log2(view/betterSize))) + costOfLoading*loads*p.decoded(tile) + costOfTile/voxels
		cost *= math.Ceil(tiles/w) / tiles
		if cost < c.cost {
			c.cost = cost
			t.workers, t.each, t.cache = int(w), int64(each), int64(min(cached, needed+w)*voxels*size*parts)
			p.smoothTiling = t
		}
	}
}

// pooled returns the memory that the loader takes for a buffer of the given size.
func pooled(bytes float64) float64 { return float64(mem.Size(int(bytes))) }

// loads returns how often a tile is loaded if the given number of tiles is cached, and the number with which each
// is loaded once: the walk returns to the neighbours of a tile that it has passed.
func (t *smoothTiling) loads(p *smoothPlan, cached float64) (times, enough float64) {
	times = 1
	span := func(d int) float64 {
		r := p.radius[d+3-len(t.tile)]
		return float64(min(1+2*((r+t.tile[d]-1)/t.tile[d]), t.grid[d]))
	}
	axes := t.order[:len(t.order)-p.lead]
	for _, d := range axes {
		times *= span(d)
	}
	enough = times
	holds := true
	for _, d := range axes {
		if holds = holds && cached >= enough; holds {
			times /= span(d)
		}
		enough *= float64(t.grid[d]) / span(d)
	}
	last := axes[len(axes)-1]
	return times, enough / float64(t.grid[last]) * span(last)
}

// decoded returns the number of decoded voxels per voxel of a tile.
func (p *smoothPlan) decoded(tile []int) float64 {
	factor := 1.0
	if len(p.array.Codecs()) == 0 {
		return factor
	}
	for d, c := range p.array.Chunks() {
		if n := tile[d]; n%c != 0 && n < p.shape[d] {
			chunks := 1.0
			if c%n != 0 {
				chunks = math.Ceil(float64(n)/float64(c)) + 1
			}
			factor *= chunks * float64(c) / float64(n)
		}
	}
	return factor
}

// smoothScratch returns a function that computes a worker's memory besides the view, for the space of a tile.
func smoothScratch[T dtype.Element, F float32 | float64](p *smoothPlan) func(shape [3]int) int64 {
	median, stencil := filter.NewMedianFilter[T](p.window), filter.NewStencil[F](p.kernels[0], p.kernels[1])
	size := int64(dtype.Of[F]().Size())
	return func(shape [3]int) (bytes int64) {
		inner, wide := int64(1), shape
		for d, n := range shape {
			wide[d] = n + 2*p.around[d]
			inner *= int64(wide[d])
		}
		if p.medians() {
			bytes += inner*int64(p.dtype.Size()) + median.Bytes(wide)
		}
		if p.linear {
			bytes += stencil.Bytes(shape) + int64(elements(shape))*size
			if dtype.Of[T]() != dtype.Of[F]() {
				bytes += inner * size
			}
		}
		return bytes
	}
}
