package canvas

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"strata/pkg/oct/compute/fusion"
	"strata/pkg/work"
)

// pass holds the state of the work on one box: the tiles in progress and the columns.
type pass struct {
	*Assembly
	passBox
	tiles  []int // in the order of processing
	worker fusion.Pass

	// mu guards the following fields and the progress of the columns; moved is signalled when any of it changes
	mu       sync.Mutex
	moved    sync.Cond
	written  map[*fusion.Column]bool
	live     map[*fusion.Column]*liveColumn
	next     int    // next tile to take
	finished []bool // tiles
	oldest   int    // first unfinished one
	own      []bool // tiles that columns in memory have been given, or get although the rest is handed over
	before   []int  // planes of each tile that were reported as progress before the pass
	handed   bool   // a device makes all columns that were not in memory
	short    error  // of memory; no more tiles are begun
	failed   bool
}

// liveColumn is a column in memory.
type liveColumn struct {
	*fusion.ColumnMemory
	done []int // for each of its tiles: planes below this one have been added
	left int   // tiles missing
}

func newPass(f *Assembly, box passBox, written map[*fusion.Column]bool) *pass {
	p := &pass{Assembly: f, passBox: box, written: written, live: map[*fusion.Column]*liveColumn{}}
	p.worker = fusion.Pass{Plan: f.fusion, Z0: box.z0, Z1: box.z1}
	p.moved.L = &p.mu
	needed := make([]bool, len(f.Places))
	f.each(box.x0, box.x1, func(c *fusion.Column) {
		if !written[c] {
			for _, t := range c.Tiles {
				needed[t] = true
			}
		}
	})
	for t, yes := range needed {
		if yes {
			p.tiles = append(p.tiles, t)
		}
	}
	p.finished, p.own = make([]bool, len(p.tiles)), make([]bool, len(p.tiles))
	p.before = slices.Clone(f.shown)
	return p
}

// run makes the columns. If a device runs out of memory, the columns that are complete by then are written.
func (p *pass) run(ctx context.Context, workers int) error {
	gate, ctx := p.crew.Gate(ctx, min(workers, len(p.tiles)))
	g, gctx := work.WithContext(ctx)
	stop := context.AfterFunc(gctx, func() { p.change(func() { p.failed = true }) })
	defer stop()
	for i := range min(workers, len(p.tiles)) {
		g.Go(func() error {
			if !gate.Admit(gctx, i) {
				return nil
			}
			defer gate.Leave(i)
			return p.runsShort(p.worker.Work(gctx, func(w fusion.Fuser) { p.work(w, func() { gate.Ended(i) }) }))
		})
	}
	err := g.Wait()
	for _, c := range p.live {
		c.Release()
	}
	if err = errors.Join(err, p.worker.Close()); err == nil {
		err = p.short
	}
	return err
}

// change calls f with mu held, and wakes waiting workers.
func (p *pass) change(f func()) {
	p.mu.Lock()
	f()
	p.mu.Unlock()
	p.moved.Broadcast()
}

// runsShort handles an error of a worker. If the device is out of memory, it stops the pass from beginning more
// tiles and returns nil; other errors it returns.
func (p *pass) runsShort(err error) error {
	var short fusion.ShortOfMemory
	if !errors.As(err, &short) {
		return err
	}
	p.change(func() {
		if p.short == nil {
			p.short = err
		}
	})
	return nil
}

// stopped reports whether no more work should begin. p.mu must be held.
func (p *pass) stopped() bool { return p.failed || p.short != nil }

// work adds one tile after another until none is left, and calls ended after each.
func (p *pass) work(w fusion.Fuser, ended func()) {
	for {
		k, ok := p.take()
		if !ok || !p.add(w, k) {
			return
		}
		p.change(func() { p.end(k) })
		ended()
	}
}

// end records that the k-th tile is done with. p.mu must be held.
func (p *pass) end(k int) {
	p.finished[k] = true
	for p.oldest < len(p.finished) && p.finished[p.oldest] {
		p.oldest++
	}
	p.moved.Broadcast()
}

// take returns the index of the next tile in the order, after waiting until it is not too far ahead of the oldest
// unfinished one: the plan's memory depends on that.
func (p *pass) take() (k int, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.next < len(p.tiles) && !p.stopped() {
		k = p.next
		p.next++
		for k >= p.oldest+p.window && !p.stopped() && !p.skips(k) {
			p.moved.Wait()
		}
		if !p.skips(k) {
			return k, !p.stopped()
		}
		p.end(k)
	}
	return 0, false
}

// skips reports whether a tile is only a device's. p.mu must be held.
func (p *pass) skips(k int) bool { return p.handed && !p.own[k] }

// untouched counts the tiles on columns that are neither in memory nor written, and those that are done with. p.mu must
// be held.
func (p *pass) untouched() (n, finished int) {
	needed := map[int]bool{}
	p.each(p.x0, p.x1, func(c *fusion.Column) {
		if !p.written[c] && p.live[c] == nil {
			for _, t := range c.Tiles {
				needed[t] = true
			}
		}
	})
	for _, done := range p.finished {
		if done {
			finished++
		}
	}
	return len(needed), finished
}

// hand stops the pass from beginning further columns. It returns the columns that the pass has written or will still
// complete, by adding their remaining tiles. p.mu must be held.
func (p *pass) hand() (kept map[*fusion.Column]bool) {
	kept = maps.Clone(p.written)
	needed := map[int]bool{}
	for c := range p.live {
		kept[c] = true
		for _, t := range c.Tiles {
			needed[t] = true
		}
	}
	for k, t := range p.tiles {
		p.own[k] = p.own[k] || needed[t]
	}
	p.each(0, p.across, func(c *fusion.Column) { p.Seams.of(c) }) // from now on there are two who ask for them
	p.handed = true
	p.moved.Broadcast()
	return kept
}

// tell passes on to d, the assembly that does the remaining work, which planes of each tile are blank and which are
// already reported as done. p.mu must be held.
func (p *pass) tell(d *Assembly) {
	copy(d.shown, p.before)
	busy := map[int]bool{}
	for k, t := range p.tiles {
		busy[t] = !p.finished[k]
		if p.own[k] {
			d.shown[t] = max(d.shown[t], p.z1)
		}
	}
	for t := range d.blank {
		if !busy[t] {
			d.blank[t] = p.blank[t]
		}
	}
}

// begin allocates a column, or returns nil if there is no memory. p.mu must be held.
func (p *pass) begin(w fusion.Fuser, c *fusion.Column) *liveColumn {
	m := &liveColumn{done: slices.Repeat([]int{p.z0}, len(c.Tiles)), left: len(c.Tiles)}
	if m.ColumnMemory = w.Column(c, p.Seams.of(c)); m.ColumnMemory == nil {
		return nil
	}
	return m
}

// await waits until another tile of a column has been added up to plane z. It returns false if that will not
// happen.
func (p *pass) await(w fusion.Fuser, v *visit, tile, z int) bool {
	i := slices.Index(v.Tiles, tile)
	p.mu.Lock()
	defer p.mu.Unlock()
	for v.done[i] < z && !p.stopped() {
		start := time.Now()
		p.moved.Wait()
		w.Waited(time.Since(start))
	}
	return !p.stopped()
}

// advance records that a tile has been added up to plane z.
func (p *pass) advance(v *visit, z int) {
	p.change(func() { v.done[v.self] = z })
}

// complete returns the columns that lacked only this tile.
func (p *pass) complete(visits []visit) (columns []*fusion.ColumnMemory) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range visits {
		v := &visits[i]
		if v.left--; v.left == 0 {
			columns = append(columns, v.ColumnMemory)
		}
	}
	return columns
}

// gone records that a column has been written.
func (p *pass) gone(m *fusion.ColumnMemory) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.live, m.Column)
	p.written[m.Column] = true
}
