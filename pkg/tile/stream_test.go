package tile

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

func mustNew(t *testing.T, src Source, opts ...Option) *Loader[int32] {
	t.Helper()
	l, err := New[int32](src, opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

// within fails the test if f does not end: a test of what must not dead-lock.
func within(t *testing.T, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() { defer close(done); f() }()
	select {
	case <-done:
	case <-time.After(30 * time.Second):
		buf := make([]byte, 1<<16)
		t.Fatalf("dead-locked\n%s", buf[:runtime.Stack(buf, true)])
	}
}

func square() *numbers { return newNumbers([]int{9, 9}, []int{2, 2}, grid5) }

// TestSingleViewsDoNotDeadlock is FastLoader's trap: there is nothing to finish.
func TestSingleViewsDoNotDeadlock(t *testing.T) {
	within(t, func() {
		l := mustNew(t, square(), Radius(1))
		n := 0
		for v, err := range l.Views(t.Context(), []Request{{0, []int{1, 2}}, {0, []int{0, 0}}}) {
			if err != nil {
				t.Error(err)
				return
			}
			n++
			v.Release()
		}
		for range l.Views(t.Context(), nil) {
			t.Error("a view that nobody asked for")
		}
		v, err := l.View(t.Context(), 0, []int{3, 3})
		if err != nil || n != 2 {
			t.Errorf("%d views, then %v", n, err)
			return
		}
		v.Release()
	})
}

// TestStreamsInTurn reads several streams alternately in one goroutine, with
// fewer views than streams: what one loaded ahead must not stop the other.
func TestStreamsInTurn(t *testing.T) {
	for _, order := range []Option{Ordered(), AsReady()} {
		for available := 1; available <= 4; available++ {
			for threads := 1; threads <= 3; threads++ {
				within(t, func() {
					l := mustNew(t, square(), Radius(1), ViewsAvailable(available), LoaderThreads(threads), order, Checked())
					seen := map[string]int{}
					var pulls [3]func() (*View[int32], error, bool)
					for k := range pulls {
						next, stop := iter.Pull2(l.AllViews(t.Context(), 0))
						defer stop()
						pulls[k] = next
					}
					for range 25 {
						for k, pull := range pulls {
							v, err, ok := pull()
							if err != nil || !ok {
								t.Errorf("stream %d ended: %v", k, err)
								return
							}
							if want := expect(square(), []int{2, 2}, []int{1, 1}, v.Index, Zero, 0); !slices.Equal(v.Data(), want) {
								t.Errorf("view %v is wrong", v.Index)
							}
							seen[fmt.Sprint(k, v.Index)]++
							v.Release()
							if k == 0 { // and a single one in between
								v, err := l.View(t.Context(), 0, []int{4, 4})
								if err != nil {
									t.Error(err)
									return
								}
								v.Release()
							}
						}
					}
					if len(seen) != 75 {
						t.Errorf("%d views of 3 streams of 25", len(seen))
					}
				})
			}
		}
	}
}

func TestWaitingForAViewEndsWithTheContext(t *testing.T) {
	l := mustNew(t, square(), Radius(1))
	held, err := l.View(t.Context(), 0, []int{0, 0})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if _, err := l.View(ctx, 0, []int{0, 1}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("single view: %v", err)
	}
	n := 0
	for v, err := range l.AllViews(ctx, 0) {
		if n++; v != nil || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("stream: view %v, %v", v, err)
		}
	}
	if n != 1 {
		t.Errorf("%d results, want the error alone", n)
	}
	held.Release()
}

func TestRequestsOutsideTheImage(t *testing.T) {
	for _, mode := range []Option{Inline(), LoaderThreads(1)} {
		src := square()
		l := mustNew(t, src, mode)
		for _, r := range []Request{{0, []int{5, 0}}, {0, []int{0, -1}}, {0, []int{0}}, {0, []int{0, 0, 0}}, {1, []int{0, 0}}, {-1, []int{0, 0}}} {
			if _, err := l.View(t.Context(), r.Level, r.Index); err == nil {
				t.Errorf("%v was loaded", r)
			}
			if _, err := l.Geometry(r.Level, r.Index); err == nil {
				t.Errorf("%v has a geometry", r)
			}
			n := 0
			for v, err := range l.Views(t.Context(), []Request{{0, []int{0, 0}}, r}) {
				if n++; err == nil || v != nil {
					t.Errorf("%v in a stream: %v, %v", r, v, err)
				}
			}
			if n != 1 {
				t.Errorf("%v in a stream: %d results", r, n)
			}
		}
		for _, err := range l.AllViews(t.Context(), 1) {
			if err == nil {
				t.Error("level 1 was streamed")
			}
		}
		if src.loads.Load() != 0 {
			t.Error("wrong requests loaded something")
		}
	}
}

// TestFaults: one tile cannot be read. The views that need it fail and name it,
// all others come.
func TestFaults(t *testing.T) {
	broken := errors.New("input/output error")
	for _, mode := range []Option{Inline(), LoaderThreads(1), LoaderThreads(3)} {
		for _, order := range []Option{Ordered(), AsReady()} {
			for radius := range 2 {
				src := square()
				src.fault = func(index []int) error {
					if slices.Equal(index, []int{2, 1}) {
						return broken
					}
					return nil
				}
				l := mustNew(t, src, Radius(radius), mode, order, ViewsAvailable(2))
				failed, whole := 0, 0
				for v, err := range l.AllViews(t.Context(), 0) {
					if err == nil {
						whole++
						v.Release()
						continue
					}
					failed++
					var e *Error
					if !errors.Is(err, broken) || !errors.As(err, &e) || !slices.Equal(e.Tile, []int{2, 1}) || !strings.Contains(err.Error(), "[2 1]") {
						t.Errorf("the error does not name its tile: %v", err)
					}
				}
				want := 1
				if radius == 1 {
					want = 9
				}
				if failed != want || whole != 25-want {
					t.Errorf("radius %d: %d views failed and %d came, want %d and %d", radius, failed, whole, want, 25-want)
				}
			}
		}
	}
}

func TestFaultOfTheNthLoad(t *testing.T) {
	for nth := int64(1); nth <= 25; nth++ {
		src := square()
		var n atomic.Int64 // of its own: two loaders may count src.loads before either looks
		src.fault = func([]int) error {
			if n.Add(1) == nth {
				return errors.New("once")
			}
			return nil
		}
		l := mustNew(t, src, Radius(1), LoaderThreads(2), ViewsAvailable(3))
		failed, whole := 0, 0
		for v, err := range l.AllViews(t.Context(), 0) {
			if err != nil {
				failed++
				continue
			}
			whole++
			v.Release()
		}
		if failed < 1 || failed+whole != 25 {
			t.Errorf("load %d failed: %d views failed, %d came", nth, failed, whole)
		}
		// and everything can be had afterwards
		for v, err := range l.AllViews(t.Context(), 0) {
			if err != nil {
				t.Fatal(err)
			}
			v.Release()
		}
	}
}

func TestReloadFailureReleases(t *testing.T) {
	src := square()
	src.fault = func(index []int) error {
		if index[0] == 1 {
			return errors.New("broken")
		}
		return nil
	}
	l := mustNew(t, src)
	v, err := l.View(t.Context(), 0, []int{0, 0})
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Reload(t.Context(), v, []int{0, 1}); err != nil || v.Data()[0] != 3 {
		t.Fatalf("reloaded: %v, %v", v.Data(), err)
	}
	if err := l.Reload(t.Context(), v, []int{1, 1}); err == nil {
		t.Fatal("the broken tile was loaded")
	}
	if v.Data() != nil || !errors.Is(v.Release(), ErrReleased) {
		t.Error("the view outlived the failure")
	}
	if err := l.Reload(t.Context(), v, []int{0, 0}); !errors.Is(err, ErrReleased) {
		t.Errorf("a released view was reloaded: %v", err)
	}
	// its slot is free again
	if v, err = l.View(t.Context(), 0, []int{0, 0}); err != nil {
		t.Fatal(err)
	}
	if err := l.Reload(t.Context(), v, []int{9, 9}); err == nil {
		t.Error("a tile outside was loaded")
	}
	if v, err = l.View(t.Context(), 0, []int{0, 0}); err != nil {
		t.Fatal(err)
	}
	other := mustNew(t, src)
	if err := other.Reload(t.Context(), v, []int{0, 0}); err == nil {
		t.Error("a view of another loader was reloaded")
	}
	v.Release()
}

func TestReleaseIsCounted(t *testing.T) {
	l := mustNew(t, square(), Radius(1), ReleaseCount(3))
	v, err := l.View(t.Context(), 0, []int{1, 1})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := v.Release(); err != nil {
			t.Fatal(err)
		}
		if v.Data() == nil {
			t.Fatal("the view went before its last release")
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		if _, err := l.View(ctx, 0, []int{0, 0}); err == nil {
			t.Error("its memory was used again before the last release")
		}
		cancel()
	}
	if err := v.Release(); err != nil {
		t.Error(err)
	}
	if v.Data() != nil || v.Center() != nil {
		t.Error("a released view shows pixels")
	}
	next, err := l.View(t.Context(), 0, []int{0, 0})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := v.Release(); !errors.Is(err, ErrReleased) || !strings.Contains(err.Error(), "[1 1]") {
			t.Errorf("released too often: %v", err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if _, err := l.View(ctx, 0, []int{0, 2}); err == nil {
		t.Error("releasing too often freed somebody else's view")
	}
	for range 3 {
		next.Release()
	}
}

func TestUseAfterReleaseIsCaught(t *testing.T) {
	l := mustNew(t, square(), Radius(1), Checked())
	v, err := l.View(t.Context(), 0, []int{0, 0})
	if err != nil {
		t.Fatal(err)
	}
	kept := v.Data()
	if kept[5] != 1 {
		t.Fatalf("pixels %v", kept)
	}
	v.Release()
	for _, p := range kept {
		if p != -1 {
			t.Fatalf("a released view still shows %d", p)
		}
	}
	kept[3] = 7 // too late
	if _, err := l.View(t.Context(), 0, []int{0, 1}); err == nil || !strings.Contains(err.Error(), "after its release") {
		t.Errorf("writing after release: %v", err)
	}
	if v, err = l.View(t.Context(), 0, []int{0, 1}); err != nil {
		t.Fatalf("reported more than once: %v", err)
	}
	v.Release()
}

func TestOrder(t *testing.T) {
	cube := func() *numbers {
		return newNumbers([]int{9, 9, 9}, []int{6, 4, 3}, func(p []int) int32 { return int32(100*p[0] + 10*p[1] + p[2]) })
	}
	for name, opts := range map[string][]Option{
		"ordered, 4 threads":             {Ordered(), LoaderThreads(4), ViewsAvailable(5)},
		"as ready, 1 thread and view":    {AsReady()},
		"as ready, 1 thread and 5 views": {AsReady(), ViewsAvailable(5)},
	} {
		src := cube()
		if strings.HasPrefix(name, "ordered") {
			src.fault = func(index []int) error { // the earlier, the slower
				time.Sleep(time.Duration(18-linear([]int{2, 3, 3}, index)) * 100 * time.Microsecond)
				return nil
			}
		}
		l := mustNew(t, src, append(opts, Radius(1))...)
		if !slices.Equal(l.Grid(0), []int{2, 3, 3}) {
			t.Fatalf("grid %v", l.Grid(0))
		}
		var got [][]int
		for v, err := range l.AllViews(t.Context(), 0) {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, v.Index)
			v.Release()
		}
		if !slices.EqualFunc(got, Naive([]int{2, 3, 3}), slices.Equal) {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestAsReadyOvertakes: a slow tile does not hold up the others.
func TestAsReadyOvertakes(t *testing.T) {
	src := newNumbers([]int{3}, []int{1}, func(p []int) int32 { return int32(p[0]) })
	last := make(chan struct{})
	src.fault = func(index []int) error {
		if index[0] == 0 {
			<-last
		}
		return nil
	}
	l := mustNew(t, src, LoaderThreads(2), ViewsAvailable(3))
	var got []int
	for v, err := range l.AllViews(t.Context(), 0) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, v.Index[0])
		if v.Index[0] == 2 {
			close(last)
		}
		v.Release()
	}
	if !slices.Equal(got, []int{1, 2, 0}) {
		t.Errorf("order %v", got)
	}
}

func TestCancellation(t *testing.T) {
	for _, mode := range []Option{Inline(), LoaderThreads(3)} {
		for stopAt := range 6 {
			l := mustNew(t, square(), Radius(1), mode, ViewsAvailable(2))
			ctx, cancel := context.WithCancel(t.Context())
			n, ended := 0, false
			for v, err := range l.AllViews(ctx, 0) {
				if ended {
					t.Error("results after the end")
				}
				if err != nil {
					if !errors.Is(err, context.Canceled) {
						t.Error(err)
					}
					ended = true
					continue
				}
				if n++; n > stopAt {
					cancel()
				}
				v.Release()
			}
			cancel()
			if !ended || n != stopAt+1 {
				t.Errorf("%d views, then ended: %v", n, ended)
			}
			// all memory is back
			for range 2 {
				v, err := l.View(t.Context(), 0, []int{0, 0})
				if err != nil {
					t.Fatal(err)
				}
				defer v.Release()
			}
		}
	}
}

// TestCancelWhileLoading cancels while the source is at work.
func TestCancelWhileLoading(t *testing.T) {
	g := newGate()
	l := mustNew(t, g, LoaderThreads(2))
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-g.begun; cancel() }()
	n := 0
	for v, err := range l.AllViews(ctx, 0) {
		if n++; v != nil || !errors.Is(err, context.Canceled) {
			t.Errorf("%v, %v", v, err)
		}
	}
	if n != 1 {
		t.Errorf("%d results", n)
	}
}

func TestNoGoroutineOutlivesItsStream(t *testing.T) {
	before := runtime.NumGoroutine()
	for k := range 50 {
		l := mustNew(t, square(), Radius(1), LoaderThreads(4), ViewsAvailable(3))
		n := 0
		for v, err := range l.AllViews(t.Context(), 0) {
			if err != nil {
				t.Fatal(err)
			}
			v.Release()
			if n++; n > k {
				break
			}
		}
	}
	for wait := time.Millisecond; runtime.NumGoroutine() > before; wait *= 2 { // those of context.AfterFunc end by themselves
		if wait > 4*time.Second {
			t.Fatalf("%d goroutines, %d before", runtime.NumGoroutine(), before)
		}
		time.Sleep(wait)
	}
}

func TestClose(t *testing.T) {
	l := mustNew(t, square(), Radius(1), ViewsAvailable(3), LoaderThreads(2))
	held, err := l.View(t.Context(), 0, []int{0, 0})
	if err != nil {
		t.Fatal(err)
	}
	n, ended := 0, false
	for v, err := range l.AllViews(t.Context(), 0) {
		if err != nil {
			ended = errors.Is(err, ErrClosed)
			continue
		}
		if n++; n == 3 {
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
		}
		if v.Data()[5] == 0 && v.Index[0] == 1 && v.Index[1] == 1 {
			t.Error("a view lost its pixels")
		}
		v.Release()
	}
	if !ended {
		t.Error("the stream did not end with ErrClosed")
	}
	if held.Data()[5] != 1 {
		t.Error("a view that is held lost its pixels")
	}
	if err := held.Release(); err != nil {
		t.Error(err)
	}
	if _, err := l.View(t.Context(), 0, []int{0, 0}); !errors.Is(err, ErrClosed) {
		t.Errorf("a view of a closed loader: %v", err)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
}

// TestMemoryLimit runs every access pattern at once under a limit that leaves
// the caches a tile or two.
func TestMemoryLimit(t *testing.T) {
	src := newNumbers([]int{200, 200}, []int{32, 32}, grid5) // a tile is a page
	const page = 4096
	view := 3 * page // 52² pixels
	for _, tiles := range []int64{1, 2, 5, 1000} {
		limit := int64(3*view) + tiles*page
		l := mustNew(t, src, Radius(10), Border(Wrap), ViewsAvailable(3), CacheBytes(1<<30), LoaderThreads(3), MemoryLimit(limit))
		if got := int64(l.levels[0].cache.capacity); got != min(tiles, 49) {
			t.Errorf("%d tiles, want %d", got, tiles)
		}
		within(t, func() {
			var wg sync.WaitGroup
			for k := range 3 {
				wg.Go(func() {
					n := 0
					for v, err := range l.AllViews(t.Context(), 0) {
						if err != nil {
							t.Error(err)
							return
						}
						if k == 0 && linear(l.Grid(0), v.Index)%6 == 0 {
							if want := expect(src, src.Tile, []int{10, 10}, v.Index, Wrap, 0); !slices.Equal(v.Data(), want) {
								t.Errorf("view %v is wrong", v.Index)
							}
						}
						v.Release()
						if n++; n > 20 {
							return
						}
					}
				})
				wg.Go(func() {
					for i := range 20 {
						v, err := l.View(t.Context(), 0, []int{(i * 3) % 7, (i*5 + k) % 7})
						if err != nil {
							t.Error(err)
							return
						}
						v.Release()
					}
				})
			}
			wg.Wait()
		})
		if l.PeakMemory() > limit || l.PeakMemory() > l.MaxMemory() || l.MaxMemory() > limit {
			t.Errorf("%d bytes used, %d promised, limit %d", l.PeakMemory(), l.MaxMemory(), limit)
		}
		if l.PeakMemory() < int64(view)+page {
			t.Errorf("%d bytes cannot be all", l.PeakMemory())
		}
	}
	if _, err := New[int32](src, Radius(10), ViewsAvailable(3), MemoryLimit(int64(3*view))); err == nil {
		t.Error("a limit without room for a tile was accepted")
	}
	// views of radius 0 need no cache
	if _, err := New[int32](src, ViewsAvailable(3), MemoryLimit(3*page)); err != nil {
		t.Errorf("a limit with room for the views: %v", err)
	}
}
