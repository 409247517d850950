package ngff

import (
	"context"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"strata/pkg/mem"
	"strata/pkg/meter"
	"strata/pkg/zarr"
)

// level is one resolution of a pyramid under construction. Its unit is the chunk, which is encoded and passed
// down as a whole.
type level struct {
	array *zarr.Array
	dims  int   // of the array; its indices are the last of a point
	shape point // of the level
	unit  point // shape of a chunk
	shard point // chunks in a shard; zero where chunks are files of their own

	// how the next level is made from this one; nil in the last level
	lattice *lattice
	cut     [rank]*cutting // by chunks of this level and of the next

	mu      sync.Mutex
	waiting map[point]*unit // chunks of this level that are not complete

	shardMu sync.Mutex
	shards  map[point]*openShard // shards of this level that are not complete
}

// unit is a chunk of a level below 0 while parts of it are missing.
type unit struct {
	level  int
	index  point // in the grid of chunks
	region box   // the voxels, clipped to the level

	// guarded by the level's mu
	left    int  // parts to come: pairs of a box and a tile that takes part in it
	active  int  // goroutines that work in buf or in a seam's buffer
	spilled bool // will be made from the stored level above
	buf     *mem.Buffer
	seams   map[point]*seam // by the segments' indices

	// guarded by the shardMu of the level above
	inputs int // shards that must be complete before this can be made from them
}

// seam gathers the input samples of outputs that lie between several tiles.
type seam struct {
	left  int // tiles to come
	input box
	buf   *mem.Buffer
}

// pyramid makes levels 1 and up from tiles of level 0.
//
// Tiles come in any order, from any goroutine; the work for a tile, including
// all units of all levels that it completes, is done by the goroutine that
// brings it. Nothing waits for memory while it holds some: a unit or seam that
// finds the budget spent is spilled, that is, its parts are only counted, and
// when the last has arrived all its input is stored and it is made from there,
// in memory that is set aside for that.
type pyramid struct {
	levels []*level
	elem   int
	shrink shrinker
	meter  *meter.Meter
	pool   *mem.Pool
	held   *mem.Pool // encoded chunks that come before their turn in a shard
	spare  spare
	spills atomic.Int64 // units made from stored data
}

// spare is memory for making one unit from stored data when the pool is
// empty. It is allocated when it is first needed.
type spare struct {
	turn      chan struct{} // holds a token while nobody works in the spare memory
	out, in   int           // sizes
	outB, inB []byte
}

// geometry is the shape of a level, of its chunks, and, in elements, of its
// shards (nil when there are none, or none are written).
type geometry struct {
	shape, chunk, shard []int
}

// defaultBudget is enough for a row of chunks of most images.
const defaultBudget = 256 << 20

// newPyramid plans a pyramid. budget bounds the memory for all that waits or
// is made from stored data (0: a default); the arrays of the levels are set by the caller.
func newPyramid(spec *ImageSpec, geo []geometry, budget int64) (*pyramid, error) {
	p := &pyramid{elem: spec.DType.Size(), meter: spec.Meter}
	sharded := false
	for k, g := range geo {
		l := &level{
			dims: len(g.shape), shape: padded(g.shape, 1), unit: padded(g.chunk, 1),
			waiting: map[point]*unit{}, shards: map[point]*openShard{},
		}
		if g.shard != nil {
			sharded = true
			l.shard = padded(g.shard, 1)
			for d := range l.shard {
				l.shard[d] /= l.unit[d]
			}
		}
		p.levels = append(p.levels, l)
		if k > 0 || g.shard != nil { // level 0 is given, at most copied into a shard
			p.spare.out = max(p.spare.out, l.clipped(point{}).shape().volume()*p.elem)
		}
	}
	if len(geo) > 1 {
		if err := p.checkTables(spec.Axes, budget); err != nil {
			return nil, err
		}
		if err := p.connect(spec); err != nil {
			return nil, err
		}
	}
	need := p.least()
	if budget <= 0 {
		budget = max(defaultBudget, 4*need)
	}
	if budget < need {
		return nil, fmt.Errorf("a memory budget of %d bytes is too small for a pyramid of these chunks (at least %d bytes)", budget, need)
	}
	rest := budget - need
	if sharded {
		p.held = mem.NewPool(rest / 4)
		rest -= rest / 4
	}
	p.pool = mem.NewPool(rest)
	p.spare.turn = make(chan struct{}, 1)
	p.spare.turn <- struct{}{}
	return p, nil
}

// least returns the memory for making one unit from stored data, without which there is no way on.
func (p *pyramid) least() int64 { return int64(pages(p.spare.in) + pages(p.spare.out)) }

// leastTables is the memory that tables may take whatever the budget is: those of axes of 200,000 voxels.
const leastTables = 32 << 20

// checkTables refuses axes whose tables (see [taps]) do not fit into memory, since their length is a number
// in a header.
func (p *pyramid) checkTables(axes []Axis, budget int64) error {
	halve, err := halvedAxes(axes)
	if err != nil {
		return err
	}
	if budget <= 0 {
		budget = defaultBudget
	}
	budget = max(budget, leastTables)
	total := int64(0)
	for k, l := range p.levels[1:] {
		for d, n := range l.shape {
			if !halve[d] {
				continue
			}
			if in := p.levels[k].shape[d]; in > math.MaxInt32 {
				return fmt.Errorf("an axis of %d samples is too long for a pyramid (at most %d)", in, math.MaxInt32)
			}
			total += int64(n) * tapBytes
		}
	}
	if total > budget {
		return fmt.Errorf("a memory budget of %d bytes is too small for a pyramid of axes this long (at least %d bytes)", budget, total)
	}
	return nil
}

// connect works out how each level is made from the one above it.
func (p *pyramid) connect(spec *ImageSpec) error {
	halve, err := halvedAxes(spec.Axes)
	if err != nil {
		return err
	}
	if p.shrink, err = shrinkerOf(spec.DType, spec.Label != nil); err != nil {
		return err
	}
	for k, l := range p.levels[:len(p.levels)-1] {
		l.lattice = newLattice(l.shape, halve)
		largest := p.elem
		for d := range rank {
			l.cut[d] = cut(l.lattice.axes[d], l.unit[d], p.levels[k+1].unit[d])
			largest *= l.cut[d].longest
		}
		p.spare.in = max(p.spare.in, largest)
	}
	return nil
}

// options returns the options of the levels' arrays.
func (p *pyramid) options() []zarr.Option {
	return []zarr.Option{zarr.Workers(1), zarr.Meter(p.meter), zarr.Hold(p.held)}
}

// pages rounds up to whole pages of memory.
func pages(n int) int { return (n + 4095) &^ 4095 }

// clipped returns the box of the unit at an index.
func (l *level) clipped(index point) (b box) {
	for d := range rank {
		b.lo[d] = index[d] * l.unit[d]
		b.hi[d] = min(b.lo[d]+l.unit[d], l.shape[d])
	}
	return b
}

// area returns a box in the array's own dimensions.
func (l *level) area(b box) zarr.Region {
	s := b.shape()
	return zarr.Region{Start: append([]int(nil), b.lo[rank-l.dims:]...), Shape: append([]int(nil), s[rank-l.dims:]...)}
}

// tile stores one chunk of level 0 (unless it is stored already), passes it to the level below, and continues
// with what that completes, down to the last level. src holds at least the chunk.
func (p *pyramid) tile(ctx context.Context, index point, src memory, stored bool) error {
	var done []*unit
	var err error
	if !stored {
		done, err = p.put(ctx, 0, index, src, nil)
	}
	if err == nil {
		done, err = p.feed(ctx, 0, index, src, nil, done)
	}
	return p.finishAll(ctx, done, err)
}

// storedTile works like tile for a chunk that is encoded already.
func (p *pyramid) storedTile(ctx context.Context, index point, chunk zarr.Stored, g *given) error {
	done, err := p.putStored(ctx, index, chunk, nil)
	if err == nil {
		done, err = p.feed(ctx, 0, index, memory{}, g, done)
	}
	return p.finishAll(ctx, done, err)
}

// finishAll finishes units, and those that they complete, unless there is an error.
func (p *pyramid) finishAll(ctx context.Context, done []*unit, err error) error {
	for err == nil && len(done) > 0 {
		// the last first: it is the smallest, and frees its memory soonest
		u := done[len(done)-1]
		done = done[:len(done)-1]
		done, err = p.finish(ctx, u, done)
	}
	for _, u := range done {
		u.buf.Release()
	}
	return err
}

// finish stores a complete unit and hands it down. It appends the units that
// this completes to done.
func (p *pyramid) finish(ctx context.Context, u *unit, done []*unit) ([]*unit, error) {
	shape := u.region.shape()
	var data []byte
	if u.spilled {
		if p.deferred(u) {
			return done, nil
		}
		w, err := p.workspace(ctx, shape.volume()*p.elem)
		if err != nil {
			return done, err
		}
		defer w.release()
		if err := p.remake(ctx, u, w); err != nil {
			return done, err
		}
		data = w.out
	} else {
		defer u.buf.Release()
		data = u.buf.B
	}
	src := memory{data: data, origin: u.region.lo, stride: contiguous(shape)}
	done, err := p.put(ctx, u.level, u.index, src, done)
	if err != nil {
		return done, err
	}
	return p.feed(ctx, u.level, u.index, src, nil, done)
}

// feed computes from one unit of level k everything possible of level k+1, and keeps what needs a neighbour.
// With g in place of the unit's samples there is no src.
func (p *pyramid) feed(ctx context.Context, k int, index point, src memory, g *given, done []*unit) ([]*unit, error) {
	l := p.levels[k]
	if l.lattice == nil {
		return done, nil
	}
	var spans [rank]span
	for d := range rank {
		if spans[d] = l.cut[d].tiles[index[d]]; spans[d].first == spans[d].end {
			return done, nil // the level below needs nothing of this tile
		}
	}
	extent := l.clipped(index)
	for it := newSegmentWalk(&l.cut, spans); it.next(); {
		u, err := p.part(ctx, k+1, it, extent, src, g)
		if u != nil {
			done = append(done, u)
		}
		if err != nil {
			return done, err
		}
	}
	return done, nil
}

// part does what one tile contributes to one box of a unit of level k, and
// returns the unit when that was the last.
func (p *pyramid) part(ctx context.Context, k int, it *segmentWalk, extent box, src memory, g *given) (*unit, error) {
	above, l := p.levels[k-1], p.levels[k]
	l.mu.Lock()
	u, err := p.unitOf(k, it.unit)
	if err != nil {
		l.mu.Unlock()
		return nil, err
	}
	var s *seam
	if !u.spilled && it.tiles > 1 {
		if s, err = p.seamOf(u, it); err != nil {
			l.mu.Unlock()
			return nil, err
		}
	}
	if u.spilled {
		defer l.mu.Unlock()
		return p.arrived(u), nil
	}
	u.active++
	l.mu.Unlock()

	start := time.Now()
	dst := memory{data: u.buf.B, origin: u.region.lo, stride: contiguous(u.region.shape())}
	switch {
	case s == nil && g != nil:
		copyBox(dst, g.out, it.out, p.elem)
	case s == nil:
		err = p.shrinkSplit(ctx, above.lattice, dst, src, it.out)
	default:
		input := memory{data: s.buf.B, origin: s.input.lo, stride: contiguous(s.input.shape())}
		b := intersect(s.input, extent)
		if g != nil {
			src = g.strip(b)
		}
		copyBox(input, src, b, p.elem)
		l.mu.Lock()
		s.left--
		last := s.left == 0 && !u.spilled
		if last {
			delete(u.seams, it.at)
		}
		l.mu.Unlock()
		if last {
			err = p.shrinkSplit(ctx, above.lattice, dst, input, it.out)
			s.buf.Release()
		}
	}
	p.meter.Since(meter.Compute, start)

	l.mu.Lock()
	defer l.mu.Unlock()
	if u.active--; u.spilled && u.active == 0 {
		u.drop()
	}
	return p.arrived(u), err
}

// unitOf finds the unit that waits at an index, or makes it. The level's mu is held.
func (p *pyramid) unitOf(k int, index point) (*unit, error) {
	l := p.levels[k]
	if u := l.waiting[index]; u != nil {
		return u, nil
	}
	u := &unit{level: k, index: index, region: l.clipped(index), left: 1}
	for d, c := range p.levels[k-1].cut {
		u.left *= c.parts[index[d]]
	}
	buf, err := p.pool.TryGet(u.region.shape().volume() * p.elem)
	if err != nil {
		return nil, err
	}
	u.buf, u.spilled = buf, buf == nil
	l.waiting[index] = u
	return u, nil
}

// seamOf finds or makes the seam of a box; without memory for it, the unit is
// spilled. The level's mu is held.
func (p *pyramid) seamOf(u *unit, it *segmentWalk) (*seam, error) {
	if s := u.seams[it.at]; s != nil {
		return s, nil
	}
	buf, err := p.pool.TryGet(it.in.shape().volume() * p.elem)
	if err != nil {
		return nil, err
	}
	if buf == nil {
		u.spilled = true
		if u.active == 0 {
			u.drop()
		}
		return nil, nil
	}
	s := &seam{left: it.tiles, input: it.in, buf: buf}
	if u.seams == nil {
		u.seams = map[point]*seam{}
	}
	u.seams[it.at] = s
	return s, nil
}

// arrived counts a part and returns the unit when it was the last. The level's
// mu is held.
func (p *pyramid) arrived(u *unit) *unit {
	if u.left--; u.left > 0 {
		return nil
	}
	delete(p.levels[u.level].waiting, u.index)
	return u
}

// drop releases a unit's memory. Nobody works in it, and its level's mu is held, or nobody else knows it any
// more.
func (u *unit) drop() {
	u.buf.Release()
	for _, s := range u.seams {
		s.buf.Release()
	}
	u.buf, u.seams = nil, nil
}

// close releases all memory and gives up incomplete shards. No call is in flight.
func (p *pyramid) close() {
	for _, l := range p.levels {
		for _, s := range l.shards {
			s.w.Abort()
		}
		clear(l.shards)
		if l.array != nil {
			l.array.Close()
		}
		for _, u := range l.waiting {
			u.drop()
		}
		clear(l.waiting)
	}
	p.pool.Close()
	if p.held != nil {
		p.held.Close()
	}
	mem.Free(p.spare.outB)
	mem.Free(p.spare.inB)
	p.spare.outB, p.spare.inB = nil, nil
}

// unfinished reports chunks that wait although all tiles came: there are none
// unless this package is wrong, and an image with holes must not look complete.
func (p *pyramid) unfinished() error {
	for k, l := range p.levels {
		if n := len(l.waiting) + len(l.shards); n > 0 {
			return fmt.Errorf("%d chunks or shards of level %d are incomplete", n, k)
		}
	}
	return nil
}
