package oct

import (
	"context"
	"errors"
	"iter"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"strata/pkg/mem"
	"strata/pkg/meter"
	"strata/pkg/work"
)

func TestMemoryThatMayBeTaken(t *testing.T) {
	const mib, gib = 1 << 20, 1 << 30
	for _, c := range []struct {
		res            Resources
		spare, assured int64
	}{
		{Resources{Mem: 100 * mib}, 100 * mib, 100 * mib},
		{Resources{Mem: 12 * gib}, 12 * gib, 12 * gib},
		{Resources{Mem: 12 * gib, Shared: true}, 3 * gib, 512 * mib},
		{Resources{Mem: gib, Shared: true}, 512 * mib, 512 * mib},
		{Resources{Mem: 128 * mib, Shared: true}, 128 * mib, 128 * mib},
		{Resources{Mem: 16 * gib, Shared: true, Workers: 8}.Part(4), gib, 128 * mib},
		{Resources{Mem: 16 * gib, Workers: 8}.Part(4), 4 * gib, 4 * gib},
	} {
		if spare, assured := c.res.Spare(), c.res.Assured(); spare != c.spare || assured != c.assured {
			t.Errorf("%+v: %d to spare, %d assured; want %d and %d", c.res, spare, assured, c.spare, c.assured)
		}
	}
}

// ForAll is enough, whether what is granted is a share of the memory, or all but something, or the smaller of both.
func TestForAll(t *testing.T) {
	for name, granted := range map[string]func(mem int64) int64{
		"all":                      func(mem int64) int64 { return mem },
		"half":                     func(mem int64) int64 { return mem / 2 },
		"all but some":             func(mem int64) int64 { return mem - 1000 },
		"three quarters, or less":  func(mem int64) int64 { return mem - max(mem/4, 700) },
		"what a part of it leaves": func(mem int64) int64 { return mem - mem/16 - 300 },
	} {
		for _, mem := range []int64{1500, 2000, 2801, 10007} {
			for _, want := range []int64{granted(mem) + 1, 5 * mem, 100003} {
				res := Resources{Mem: mem}
				if n := res.ForAll(want, granted(mem)); want > granted(mem) && granted(n)+2 < want {
					t.Errorf("%s: of %d there are %d for a part, which then has %d of %d", name, mem, n, granted(n), want)
				}
			}
		}
	}
	if n := Least(100, func(n int64) bool { return n >= 1000 }); n < 1000 || n > 1100 {
		t.Errorf("%d is about the least that is enough, want 1000", n)
	}
}

func TestCrewSaysWhoWorks(t *testing.T) {
	var workers, useful int
	var most int64
	res := Resources{Mem: 1000, Workers: 8, Besides: 50, Crewed: func(w, u int, m int64) { workers, useful, most = w, u, m }}
	for name, c := range map[string]struct {
		res             Resources
		team            Team
		workers, useful int
		most            int64
	}{
		"memory limits":              {res, Team{Workers: 3, All: 3000}, 3, 8, 3050},
		"pieces limit":               {res, Team{Workers: 8, Pieces: 2, All: 500}, 2, 2, 550},
		"both":                       {res, Team{Workers: 3, Pieces: 5, All: 2000}, 3, 5, 2050},
		"more than there are cores":  {Resources{Mem: 1000, Workers: 32, Cores: 4, Crewed: res.Crewed}, Team{Workers: 3, All: 2000}, 3, 4, 2000},
		"one of four at a time":      {res.Part(4), Team{Workers: 1, All: 500}, 4, 8, 2048},
		"what would be held besides": {Resources{Mem: 1000, Workers: 8, Holds: []int64{600}, Crewed: res.Crewed}, Team{Workers: 3, All: 3000}, 3, 8, 3600},
		"two such things":            {Resources{Mem: 1000, Workers: 8, Holds: []int64{600, 700}, Crewed: res.Crewed}, Team{Workers: 3, All: 3000}, 3, 8, 4300},
		"what would not":             {Resources{Mem: 1000, Workers: 8, Holds: []int64{2000}, Crewed: res.Crewed}, Team{Workers: 3, All: 3000}, 3, 8, 3000},
	} {
		if c.res.Crew(c.team); workers != c.workers || useful != c.useful || most != c.most {
			t.Errorf("%s: %d of %d work, all with %d; want %d, %d, %d", name, workers, useful, most, c.workers, c.useful, c.most)
		}
	}
}

// run counts the workers that a crew has begun, each with pieces of a second.
func runCrew(ctx context.Context, c *Crew, pieces int, begun *atomic.Int32) error {
	return c.Share(ctx, pieces, func(_ context.Context, _ int, pieces iter.Seq[int]) error {
		begun.Add(1)
		for range pieces {
			time.Sleep(time.Second)
		}
		return nil
	})
}

// Where memory is shared, workers beyond a part of it begin one by one, as pieces end and the machine has room.
func TestWorkersBeginAsMemoryIsThere(t *testing.T) {
	defer func() { available = func() int64 { return 0 } }()
	have := int64(64 << 30)
	available = func() int64 { return atomic.LoadInt64(&have) }
	plan := func(shared bool) *Crew {
		res := Resources{Mem: 4 * mem.Assured, Workers: 8, Shared: shared}
		return res.Crew(Team{Workers: 8, Each: mem.Assured / 2})
	}
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []struct {
			name   string
			shared bool
			have   int64
			after  []int32 // workers that have begun after each second
		}{
			{"granted", false, 0, []int32{8, 8}},
			{"shared", true, 64 << 30, []int32{2, 4, 8, 8}},
			{"shared, and the system does not say", true, 0, []int32{2, 4, 8, 8}},
			{"shared, and others have some", true, 2 * mem.Assured, []int32{2, 3, 4, 5}},
			{"shared, and others have it", true, mem.Assured, []int32{2, 2, 2, 2}},
		} {
			atomic.StoreInt64(&have, c.have)
			var begun atomic.Int32
			done := make(chan error)
			go func() { done <- runCrew(t.Context(), plan(c.shared), 100, &begun) }()
			time.Sleep(time.Second / 2)
			for i, want := range c.after {
				synctest.Wait()
				if got := begun.Load(); got != want {
					t.Errorf("%s: %d workers after %d s, want %d", c.name, got, i, want)
				}
				time.Sleep(time.Second)
			}
			if err := <-done; err != nil {
				t.Error(c.name, err)
			}
		}
		// nobody waits for ever: not for pieces that do not end, and not after an error
		atomic.StoreInt64(&have, 1)
		var begun atomic.Int32
		if err := runCrew(t.Context(), plan(true), 2, &begun); err != nil || begun.Load() != 2 {
			t.Errorf("%d workers for two pieces, %v", begun.Load(), err)
		}
		broken := errors.New("broken")
		err := plan(true).Each(t.Context(), 100, func(worker, i int) error {
			if i == 7 {
				return broken
			}
			return nil
		})
		if !errors.Is(err, broken) {
			t.Errorf("%v, want %v", err, broken)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := runCrew(ctx, plan(true), 100, &begun); !errors.Is(err, context.Canceled) {
			t.Errorf("%v after it was cancelled", err)
		}
	})
}

// Processors without a worker help those that have one, and so do those whose worker has left.
func TestIdleProcessorsHelp(t *testing.T) {
	for _, c := range []struct{ workers, cores, pieces, want int }{{2, 8, 2, 8}, {2, 8, 20, 8}, {8, 8, 2, 8}, {3, 3, 9, 3}, {1, 1, 3, 1}} {
		var count meter.Meter
		res := Resources{Mem: 1 << 30, Workers: c.cores, Cores: c.cores, Meter: &count}
		crew := res.Crew(Team{Workers: c.workers, Pieces: c.pieces, Each: 1})
		synctest.Test(t, func(t *testing.T) {
			var at, most atomic.Int32
			err := crew.Share(t.Context(), c.pieces, func(ctx context.Context, _ int, pieces iter.Seq[int]) error {
				for range pieces {
					if err := work.Split(ctx, 40, 1, func(int) error {
						if n := at.Add(1); n > most.Load() {
							most.Store(n)
						}
						time.Sleep(time.Second)
						at.Add(-1)
						return nil
					}); err != nil {
						return err
					}
				}
				return nil
			})
			if err != nil || int(most.Load()) != c.want || count.MostAtOnce() != c.want || count.Busy(meter.Compute) == 0 != (c.want == 1 || c.want == 3) {
				t.Errorf("%+v: %d at a time, the meter says %d and %v, %v", c, most.Load(), count.MostAtOnce(), count.Busy(meter.Compute), err)
			}
		})
	}
}
