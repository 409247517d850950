package oct

import (
	"context"
	"iter"
	"math"
	"slices"
	"sync"
	"time"

	"strata/pkg/host"
	"strata/pkg/mem"
	"strata/pkg/meter"
	"strata/pkg/units"
	"strata/pkg/work"
)

// available is replaced by tests.
var available = host.Available

// A Team describes the workers that a part of a stage wants, for [Resources.Crew].
type Team struct {
	What    string // the work, for messages
	Workers int    // how many fit into memory
	Pieces  int    // of work, which a worker does one at a time; 0: more than there are workers
	Each    int64  // bytes of a worker
	All     int64  // Mem at which memory would hold all workers that have work
}

// A Crew is the workers of a part of a stage, planned by [Resources.Crew].
type Crew struct {
	Workers int // at most, at least 1
	each    int64
	atOnce  int   // workers that begin without looking; the others begin as pieces of work end
	cores   int   // that they, and the hands that help them, keep busy; 0: nobody helps
	memory  int64 // bytes that hands may take
	meter   *meter.Meter
}

// Crew plans the workers of a part of a stage. It logs their number and memory, and passes both to Crewed.
//
// If Mem is shared with other programs, only the workers that a quarter of it holds begin at once. Each further worker
// begins after a piece of work has ended, that is after running workers have touched their memory, and only if the
// machine still has several times the memory that the worker needs. Programs that start at the same time thus notice
// each other.
func (r *Resources) Crew(t Team) *Crew {
	if t.Pieces > 0 {
		t.Workers = min(t.Workers, t.Pieces)
	}
	c := &Crew{Workers: max(t.Workers, 1), each: max(t.Each, 1), cores: r.Busy(0), memory: mem.Unplanned() / 2 / int64(max(r.parts, 1)), meter: r.Meter}
	c.atOnce = c.Workers
	if r.Shared {
		c.atOnce = int(max(1, min(int64(c.Workers), r.Mem/4/c.each)))
	}
	r.Decided("%s: %d at a time, each with %s of the %s for buffers", t.What, c.Workers, units.FormatSize(t.Each), units.FormatSize(r.Mem))
	r.crewed(min(c.Workers, r.Workers), r.Busy(t.Pieces), t.All)
	return c
}

// OnDevice returns a crew of workers that compute on the device. Their memory is planned elsewhere.
func (r *Resources) OnDevice(workers int) *Crew { return &Crew{Workers: workers, atOnce: math.MaxInt} }

// crewed calls Crewed, if set, with the planned workers of the CPU.
func (r *Resources) crewed(workers, useful int, all int64) {
	if r.Crewed == nil || r.Device != nil {
		return
	}
	r.Crewed(workers, useful, r.withHeld(all)+r.Besides)
}

// withHeld returns the Mem at which a stage has n bytes left after it has kept the buffers in Holds.
func (r *Resources) withHeld(n int64) int64 {
	most := n
	for range 2 * len(r.Holds) { // each time there may be room for one more
		left := most
		for _, bytes := range r.Holds {
			if bytes <= left/2 {
				left -= bytes
			}
		}
		if left >= n {
			break
		}
		most += n - left
	}
	return most
}

// Would returns resources with a further optional buffer of n bytes in Holds, which the stage keeps only if there is
// room.
func (r Resources) Would(n int64) Resources {
	r.Holds = append(slices.Clip(r.Holds), n)
	return r
}

// Busy returns how many workers keep the processors busy with the given number of pieces of work (0: any number).
func (r *Resources) Busy(pieces int) int {
	n := r.Workers
	if r.Cores > 0 {
		n = min(n, r.Cores)
	}
	if pieces > 0 {
		n = min(n, pieces)
	}
	return n
}

// ForAll returns the Mem at which a part of Mem has the given number of bytes. granted is the present size of that
// part: Mem less a fixed number of bytes, or a fixed fraction of Mem.
func (r *Resources) ForAll(bytes, granted int64) int64 {
	scaled := float64(bytes) * float64(r.Mem) / float64(max(granted-1, 1)) // fractions are rounded down
	return max(bytes+r.Mem-granted, int64(min(math.Ceil(scaled), math.MaxInt64/4)))
}

// Least returns roughly (to a sixteenth) the smallest number of bytes for which enough returns true. short is a number
// of bytes that is known to be too small.
func Least(short int64, enough func(bytes int64) bool) int64 {
	low, high := short, 2*max(short, 1)
	for ; high < math.MaxInt64/4 && !enough(high); high *= 2 {
		low = high
	}
	for range 4 { // to a sixteenth
		if middle := low + (high-low)/2; enough(middle) {
			high = middle
		} else {
			low = middle
		}
	}
	return high
}

// Spare returns the part of Mem that a stage may spend to save time, for example to keep voxels that it reads again:
// all of Mem if the user set it, otherwise a share that leaves memory to other programs.
func (r *Resources) Spare() int64 {
	if !r.Shared {
		return r.Mem
	}
	n := int64(max(r.parts, 1))
	return min(r.Mem, max(mem.Assured, r.Mem*n/4)/n)
}

// Assured returns the part of Mem that depends neither on the machine nor on other programs. A decision that affects
// results must use no more than that.
func (r *Resources) Assured() int64 {
	if !r.Shared {
		return r.Mem
	}
	return min(r.Mem, mem.Assured/int64(max(r.parts, 1)))
}

// Part returns the resources of one of n pieces of work that run at the same time.
func (r Resources) Part(n int) Resources {
	whole := r
	r.Mem, r.Workers, r.parts = r.Mem/int64(n), max(1, r.Workers/n), n*max(r.parts, 1)
	if r.Cores > 0 {
		r.Cores = max(1, r.Cores/n)
	}
	r.Besides, r.Holds = r.Besides/int64(n), nil
	for _, bytes := range whole.Holds {
		r = r.Would(bytes / int64(n))
	}
	if whole.Crewed != nil {
		r.Crewed = func(workers, useful int, most int64) { whole.Crewed(workers*n, useful*n, most*int64(n)) }
	}
	return r
}

// A Gate lets the workers of a crew begin one piece of work that they share out.
type Gate struct {
	crew  *Crew
	ended chan struct{} // a token: a piece has ended since a worker began
	once  sync.Once
	over  chan struct{} // closed when a worker has left

	mu    sync.Mutex
	fresh map[int]bool // workers that were let in and have not ended a piece: their memory may not be taken yet
	hands *work.Hands  // processors without a worker
}

// Gate returns the gate for a number of workers, and the context in which they work. Processors without a worker,
// because memory or pieces are too few, help workers that can split their pieces ([work.Split]).
func (c *Crew) Gate(ctx context.Context, workers int) (*Gate, context.Context) {
	g := &Gate{crew: c, ended: make(chan struct{}, 1), over: make(chan struct{}), fresh: map[int]bool{}}
	if c.cores > 0 {
		g.hands = work.NewHands(c.cores, min(workers, c.atOnce, c.cores), c.memory, func(start time.Time) { c.meter.Since(meter.Compute, start) })
		ctx = work.WithHands(ctx, g.hands)
	}
	return g, ctx
}

// Admit waits until worker number (counted from 0) may allocate its memory, and returns true; the worker must then call
// Leave. It returns false if no pieces remain for the worker, or ctx is done. Workers beyond the number of processors
// do not count as busy, because they wait for storage.
func (g *Gate) Admit(ctx context.Context, number int) bool {
	if !g.wait(ctx, number) {
		return false
	}
	if g.hands != nil && number >= g.crew.atOnce && number < g.crew.cores {
		g.hands.Busy(1)
	}
	return true
}

func (g *Gate) wait(ctx context.Context, number int) bool {
	for number >= g.crew.atOnce {
		select {
		case <-g.ended:
			if g.room(number) {
				return true
			}
		case <-g.over:
			return false
		case <-ctx.Done():
			return false
		}
	}
	return true
}

// room reports whether the machine has memory for one more worker, and lets it in.
func (g *Gate) room(number int) bool {
	const times = 4 // programs that may begin a worker at the same moment
	g.mu.Lock()
	defer g.mu.Unlock()
	have := available()
	if have != 0 && have/times < g.crew.each*int64(len(g.fresh)+1) {
		return false
	}
	g.fresh[number] = true
	return true
}

// Ended tells the gate that a worker has finished a piece of work, and so has touched all the memory that it needs.
func (g *Gate) Ended(worker int) {
	if g.crew.atOnce >= g.crew.Workers {
		return
	}
	g.mu.Lock()
	delete(g.fresh, worker)
	g.mu.Unlock()
	select {
	case g.ended <- struct{}{}:
	default:
	}
}

// Leave tells the gate that a worker has left, because no pieces remain.
func (g *Gate) Leave(number int) {
	g.once.Do(func() { close(g.over) })
	if g.hands != nil && number < g.crew.cores {
		g.crew.meter.AtOnce(g.hands.Most())
		g.hands.Busy(-1)
	}
}

// Share works like [work.Share] for the workers of the crew.
func (c *Crew) Share(ctx context.Context, n int, run func(ctx context.Context, worker int, pieces iter.Seq[int]) error) error {
	g, ctx := c.Gate(ctx, min(c.Workers, n))
	return work.Share(ctx, c.Workers, n, func(ctx context.Context, worker int, pieces iter.Seq[int]) error {
		if !g.Admit(ctx, worker) {
			return nil
		}
		defer g.Leave(worker)
		return run(ctx, worker, func(yield func(int) bool) {
			for i := range pieces {
				if !yield(i) {
					return
				}
				g.Ended(worker)
			}
		})
	})
}

// Each works like [work.Each] for the workers of the crew.
func (c *Crew) Each(ctx context.Context, n int, f func(worker, i int) error) error {
	return c.Share(ctx, n, func(_ context.Context, worker int, pieces iter.Seq[int]) error {
		for i := range pieces {
			if err := f(worker, i); err != nil {
				return err
			}
		}
		return nil
	})
}
