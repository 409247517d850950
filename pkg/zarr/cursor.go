package zarr

import (
	"sync"
)

// cursor walks the work of one call: the chunk files that a region touches, in C order, and the units of each
// (inner chunks, or pieces of plain elements). The workers of the call share it.
type cursor struct {
	mu      sync.Mutex
	region  Region
	chunk   []int  // shape of a chunk file
	unit    []int  // nil: chunk files only
	reads   bool   // nothing is written
	dst     []byte // where all of it goes in C order; nil: elsewhere
	seq     int
	files   int        // chunk files entered
	entered *sync.Cond // of files; nil: nobody waits for them
	begun   bool
	done    bool

	file          []int // index of the current chunk file
	lo, hi        []int // its part of the region, in elements of the array
	part          []int // index of the current unit in it
	first, beyond []int // of the units, per dimension
}

// task is one unit of work.
type task struct {
	seq          int   // 0, 1, 2, …
	file         []int // index of the chunk file
	start, shape []int // box in elements of the array
}

// newTask returns a task whose vectors come from the worker's scratch memory.
func (w *worker) newTask(rank int) *task {
	v := w.vector(3 * rank)
	return &task{0, v[:rank:rank], v[rank : 2*rank : 2*rank], v[2*rank:]}
}

// newCursor returns a cursor whose vectors come from the worker's scratch memory.
func (w *worker) newCursor(r Region, chunk, unit []int) *cursor {
	n := len(chunk)
	v := w.vector(6 * n)
	c := &cursor{region: r, chunk: chunk, unit: unit}
	c.file, c.lo, c.hi, c.part, c.first, c.beyond = v[:n], v[n:2*n], v[2*n:3*n], v[3*n:4*n], v[4*n:5*n], v[5*n:]
	for d := range chunk {
		c.file[d] = r.Start[d] / chunk[d]
		if r.Shape[d] == 0 {
			c.done = true
		}
	}
	return c
}

// readCursor returns the cursor of a reading call.
func (w *worker) readCursor(r Region, a *Array) *cursor {
	c := w.newCursor(r, a.meta.Chunks, a.unit)
	c.reads = true
	return c
}

// tasks returns the number of tasks, capped at limit because the true number may overflow.
func (c *cursor) tasks(limit int) int {
	n := 1
	step := c.unit
	if step == nil {
		step = c.chunk
	}
	for d, s := range step {
		if c.region.Shape[d] == 0 {
			return 0
		}
		last := c.region.Start[d] + c.region.Shape[d] - 1
		// units of the last chunk file may be cut: a bound is enough
		n = min(n*min(last/s-c.region.Start[d]/s+1, limit), limit)
	}
	return n
}

// next stores the next task in t, or returns false after the last one.
func (c *cursor) next(t *task) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.done {
		return false
	}
	if !c.begun {
		c.begun = true
		c.enter()
	} else if !c.advance() {
		c.done = true
		return false
	}
	t.seq = c.seq
	c.seq++
	copy(t.file, c.file)
	for d := range c.chunk {
		lo, hi := c.lo[d], c.hi[d]
		if c.unit != nil {
			origin := c.file[d]*c.chunk[d] + c.part[d]*c.unit[d]
			lo, hi = max(lo, origin), min(hi-origin, c.unit[d])+origin
		}
		t.start[d], t.shape[d] = lo, hi-lo
	}
	return true
}

// enter intersects the current chunk file with the region and goes to its first unit.
func (c *cursor) enter() {
	c.files++
	if c.entered != nil {
		c.entered.Broadcast()
	}
	for d, n := range c.chunk {
		origin := c.file[d] * n
		end := c.region.Start[d] + c.region.Shape[d]
		c.lo[d] = max(origin, c.region.Start[d])
		c.hi[d] = origin + min(n, end-origin)
		if c.unit != nil {
			c.first[d] = (c.lo[d] - origin) / c.unit[d]
			c.beyond[d] = (c.hi[d]-origin-1)/c.unit[d] + 1
			c.part[d] = c.first[d]
		}
	}
}

func (c *cursor) advance() bool {
	if c.unit != nil {
		for d := len(c.part) - 1; d >= 0; d-- {
			if c.part[d]++; c.part[d] < c.beyond[d] {
				return true
			}
			c.part[d] = c.first[d]
		}
	}
	for d := len(c.file) - 1; d >= 0; d-- {
		if c.file[d]++; c.file[d] <= (c.region.Start[d]+c.region.Shape[d]-1)/c.chunk[d] {
			c.enter()
			return true
		}
		c.file[d] = c.region.Start[d] / c.chunk[d]
	}
	return false
}
