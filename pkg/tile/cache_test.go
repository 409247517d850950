package tile

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"strata/pkg/dtype"
	"strata/pkg/mem"
)

// testCache makes a cache whose tiles hold their own number.
func testCache(t *testing.T, grid []int, capacity, pixels int) *cache[int32] {
	t.Helper()
	pool := mem.NewPool(1 << 26)
	c := newCache(grid, capacity, pixels*4, pool, func(_ context.Context, index []int, buf *mem.Buffer) ([]int32, error) {
		data := convert[int32](dtype.Int32, buf.B, pixels)
		for i := range data {
			data[i] = int32(linear(grid, index))
		}
		return data, nil
	})
	t.Cleanup(func() { c.close(); pool.Close() })
	return c
}

func (c *cache[T]) pooled() int { return c.capacity - len(c.tiles) }

func (c *cache[T]) lru() (numbers []int) {
	for t := c.front.after; t != &c.front; t = t.after {
		numbers = append(numbers, t.number)
	}
	return numbers
}

func TestCacheFacts(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for _, axes := range []int{1, 3, 5, 7} {
		for _, asked := range []int{0, 1, 10} {
			for _, per := range []int{5, 10} {
				t.Run(fmt.Sprintf("%d axes of %d, %d tiles", axes, per, asked), func(t *testing.T) {
					grid := slices.Repeat([]int{per}, axes)
					c := testCache(t, grid, asked, 1+rng.IntN(100))
					want := asked
					if asked == 0 {
						want = 18
					}
					want = min(want, product(grid))
					if c.capacity != want || c.hits != 0 || c.misses != 0 || len(c.lru()) != 0 || len(c.tiles) != 0 || c.pooled() != want {
						t.Fatalf("a fresh cache: capacity %d (want %d), %d hits, %d misses, %d in the list, %d in the map",
							c.capacity, want, c.hits, c.misses, len(c.lru()), len(c.tiles))
					}
					index := make([]int, axes)
					for a := range index {
						index[a] = rng.IntN(per)
					}
					tile, fresh, err := c.get(t.Context(), index)
					if err != nil || !fresh || c.pooled() != want-1 || c.lru()[0] != linear(grid, index) {
						t.Fatalf("first access: fresh %v, %d in the pool, list %v, error %v", fresh, c.pooled(), c.lru(), err)
					}
					c.unpin(tile)
					tile, fresh, err = c.get(t.Context(), index)
					if err != nil || fresh || c.pooled() != want-1 || c.hits != 1 || c.misses != 1 {
						t.Fatalf("second access: fresh %v, %d in the pool, %d hits, %d misses, error %v", fresh, c.pooled(), c.hits, c.misses, err)
					}
					c.unpin(tile)
					for a := range axes {
						for _, bad := range []int{-1, per} {
							wrong := slices.Clone(index)
							wrong[a] = bad
							if _, _, err := c.get(t.Context(), wrong); err == nil {
								t.Errorf("index %v was accepted", wrong)
							}
						}
					}
					if _, _, err := c.get(t.Context(), append(index, 0)); err == nil {
						t.Error("an index with an axis too many was accepted")
					}
				})
			}
		}
	}
}

func TestCacheDropsTheOldest(t *testing.T) {
	c := testCache(t, []int{9}, 3, 10)
	touch := func(i int) bool {
		tile, fresh, err := c.get(t.Context(), []int{i})
		if err != nil {
			t.Fatal(err)
		}
		if tile.data[9] != int32(i) {
			t.Fatalf("tile %d holds %d", i, tile.data[9])
		}
		c.unpin(tile)
		return fresh
	}
	for _, step := range []struct {
		tile  int
		fresh bool
		lru   []int
	}{
		{0, true, []int{0}}, {1, true, []int{1, 0}}, {2, true, []int{2, 1, 0}}, {0, false, []int{0, 2, 1}},
		{3, true, []int{3, 0, 2}}, {1, true, []int{1, 3, 0}}, {0, false, []int{0, 1, 3}},
	} {
		if fresh := touch(step.tile); fresh != step.fresh || !slices.Equal(c.lru(), step.lru) {
			t.Errorf("tile %d: fresh %v, list %v; want %v, %v", step.tile, fresh, c.lru(), step.fresh, step.lru)
		}
	}
}

// TestPinnedTilesStay asks for another tile while all are pinned.
func TestPinnedTilesStay(t *testing.T) {
	c := testCache(t, []int{9}, 2, 10)
	a, _, _ := c.get(t.Context(), []int{0})
	b, _, _ := c.get(t.Context(), []int{1})
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if _, _, err := c.get(ctx, []int{2}); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("all tiles are pinned, but a third came: %v", err)
	}
	got := make(chan int32)
	go func() {
		tile, _, err := c.get(t.Context(), []int{2})
		if err != nil {
			t.Error(err)
			close(got)
			return
		}
		got <- tile.data[0]
		c.unpin(tile)
	}()
	if a.data[0] != 0 || b.data[0] != 1 {
		t.Error("a pinned tile changed")
	}
	c.unpin(b)
	if v := <-got; v != 2 {
		t.Errorf("the third tile holds %d", v)
	}
	if a.data[0] != 0 {
		t.Error("the tile that stayed pinned was recycled")
	}
	c.unpin(a)
}

// gate is a source whose loads wait until they may go on.
type gate struct {
	*numbers
	begun chan []int
	open  chan error
}

func (g gate) LoadTile(ctx context.Context, level int, index []int, dst []byte) error {
	g.begun <- index
	select {
	case err := <-g.open:
		if err != nil {
			return err
		}
	case <-ctx.Done():
		return ctx.Err()
	}
	return g.numbers.LoadTile(ctx, level, index, dst)
}

func newGate() gate {
	return gate{newNumbers([]int{4}, []int{4}, func(p []int) int32 { return int32(p[0]) }), make(chan []int, 8), make(chan error)}
}

// loadTwice starts a load and a second request for the same tile, which waits
// for the first.
func loadTwice(t *testing.T, g gate, first context.Context) (l *Loader[int32], results [2]chan error) {
	l, err := New[int32](g, Radius(1), ViewsAvailable(2))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	for k, ctx := range []context.Context{first, t.Context()} {
		results[k] = make(chan error, 1)
		go func() {
			v, err := l.View(ctx, 0, []int{0})
			if err == nil {
				if !slices.Equal(v.Data(), []int32{0, 0, 1, 2, 3, 0}) {
					t.Errorf("view %v", v.Data())
				}
				err = v.Release()
			}
			results[k] <- err
		}()
		if k == 0 {
			<-g.begun
			continue
		}
		c := l.levels[0].cache
		for waiting := false; !waiting; time.Sleep(time.Millisecond) {
			c.mu.Lock()
			waiting = c.hits == 1
			c.mu.Unlock()
		}
	}
	return l, results
}

func TestLoadsInFlightAreShared(t *testing.T) {
	g := newGate()
	_, results := loadTwice(t, g, t.Context())
	g.open <- nil
	for k := range results {
		if err := <-results[k]; err != nil {
			t.Error(err)
		}
	}
	if n := g.loads.Load(); n != 1 {
		t.Errorf("%d loads of one tile", n)
	}
}

func TestFailedLoadsAreSharedButNotKept(t *testing.T) {
	g := newGate()
	l, results := loadTwice(t, g, t.Context())
	broken := errors.New("broken")
	g.open <- broken
	for k := range results {
		if err := <-results[k]; !errors.Is(err, broken) {
			t.Errorf("request %d: %v", k, err)
		}
	}
	go func() { <-g.begun; g.open <- nil }()
	v, err := l.View(t.Context(), 0, []int{0})
	if err != nil {
		t.Fatalf("after the failure: %v", err)
	}
	v.Release()
}

// TestCancelledLoadIsTakenOver cancels the request that loads while another
// one waits for the same tile.
func TestCancelledLoadIsTakenOver(t *testing.T) {
	g := newGate()
	ctx, cancel := context.WithCancel(t.Context())
	_, results := loadTwice(t, g, ctx)
	cancel()
	if err := <-results[0]; !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled request: %v", err)
	}
	<-g.begun
	g.open <- nil
	if err := <-results[1]; err != nil {
		t.Errorf("the other request: %v", err)
	}
}

func TestTilesAreReadOnceWhileTheCacheHoldsARing(t *testing.T) {
	for _, tr := range []Traversal{Naive, Snake, Spiral, Hilbert, Diagonal, ZigZag} {
		src := newNumbers([]int{19, 23}, []int{4, 3}, grid5)
		tiles := product(grid(src.Size, src.Tile))
		l, err := New[int32](src, Radius(2), Traverse(tr), LoaderThreads(3), ViewsAvailable(4), CacheBytes(1<<20))
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			for v, err := range l.AllViews(t.Context(), 0) {
				if err != nil {
					t.Fatal(err)
				}
				v.Release()
			}
		}
		if n := int(src.loads.Load()); n != tiles {
			t.Errorf("%d loads of %d tiles", n, tiles)
		}
		l.Close()
	}
	// a cache of two rows and a tile is enough for C order
	src := newNumbers([]int{20, 20}, []int{4, 4}, grid5)
	l, err := New[int32](src, Radius(2), CacheBytes(3*5*64))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for v, err := range l.AllViews(t.Context(), 0) {
		if err != nil {
			t.Fatal(err)
		}
		v.Release()
	}
	if n := src.loads.Load(); n != 25 {
		t.Errorf("%d loads of 25 tiles by a cache of 15", n)
	}
}

func TestConcurrentCache(t *testing.T) {
	const tiles = 20
	c := testCache(t, []int{tiles}, 4, 50)
	var bad atomic.Int64
	var wg sync.WaitGroup
	for w := range 4 { // as many as fit when each pins one
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(9, uint64(w)))
			for range 500 {
				i := rng.IntN(tiles)
				tile, _, err := c.get(t.Context(), []int{i})
				if err != nil {
					t.Error(err)
					return
				}
				for _, v := range tile.data {
					if v != int32(i) {
						bad.Add(1)
					}
				}
				c.unpin(tile)
			}
		})
	}
	wg.Wait()
	if bad.Load() > 0 {
		t.Errorf("%d pixels of tiles that were recycled while pinned", bad.Load())
	}
}
