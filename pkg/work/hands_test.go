package work

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// most returns how many calls of f's pieces were going on at a time.
func most(t *testing.T, ctx context.Context, n int, bytes int64, during func(i int)) int {
	t.Helper()
	var mu sync.Mutex
	at, top := 0, 0
	seen := make([]atomic.Int32, n)
	err := Split(ctx, n, bytes, func(i int) error {
		seen[i].Add(1)
		mu.Lock()
		at++
		top = max(top, at)
		mu.Unlock()
		time.Sleep(time.Second)
		during(i)
		mu.Lock()
		at--
		mu.Unlock()
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	for i := range seen {
		if k := seen[i].Load(); k != 1 {
			t.Errorf("%d was done %d times", i, k)
		}
	}
	return top
}

func TestSplit(t *testing.T) {
	nothing := func(int) {}
	for _, c := range []struct {
		idle, n, want int
		bytes, memory int64
	}{
		{0, 5, 1, 1, 10}, {3, 5, 4, 1, 10}, {9, 3, 3, 1, 10}, {9, 1, 1, 1, 10}, {9, 9, 3, 4, 10}, {9, 9, 1, 11, 10}, {9, 0, 0, 1, 10}, {-1, 5, 1, 0, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			h := NewHands(9, 9-c.idle, c.memory, nil)
			if got := most(t, WithHands(t.Context(), h), c.n, c.bytes, nothing); got != c.want {
				t.Errorf("%+v: %d at a time", c, got)
			}
			if want := min(9, 9-c.idle+max(c.want-1, 0)); h.Most() != want {
				t.Errorf("%+v: %d were busy, want %d", c, h.Most(), want)
			}
			if h.idle != c.idle || h.memory != c.memory {
				t.Errorf("%+v: %d hands with %d bytes are back", c, h.idle, h.memory)
			}
		})
	}
	synctest.Test(t, func(t *testing.T) { // without hands in the context
		if got := most(t, t.Context(), 4, 0, nothing); got != 1 {
			t.Errorf("%d at a time", got)
		}
	})
	synctest.Test(t, func(t *testing.T) { // hands that become idle on the way
		h := NewHands(1, 1, 0, nil)
		if got := most(t, WithHands(t.Context(), h), 9, 0, func(i int) {
			if i == 1 {
				h.Busy(-2)
			}
		}); got != 3 {
			t.Errorf("%d at a time", got)
		}
	})
	synctest.Test(t, func(t *testing.T) { // two that split share them
		ctx := WithHands(t.Context(), NewHands(4, 2, 0, nil))
		var wg sync.WaitGroup
		var tops [2]int
		for k := range tops {
			wg.Go(func() { tops[k] = most(t, ctx, 20, 0, nothing) })
		}
		wg.Wait()
		if sum := tops[0] + tops[1]; sum < 4 {
			t.Errorf("%v at a time", tops)
		}
	})
}

func TestSplitStops(t *testing.T) {
	broken := errors.New("broken")
	for _, idle := range []int{0, 3} {
		h := NewHands(4, 4-idle, 0, nil)
		var begun atomic.Int32
		err := Split(WithHands(t.Context(), h), 1<<20, 0, func(i int) error {
			if begun.Add(1); i == 7 {
				return broken
			}
			return nil
		})
		if !errors.Is(err, broken) || begun.Load() == 1<<20 || h.idle != idle {
			t.Errorf("%d hands: %v after %d, %d are back", idle, err, begun.Load(), h.idle)
		}
		ctx, cancel := context.WithCancel(WithHands(t.Context(), h))
		err = Split(ctx, 1<<20, 0, func(i int) error {
			if i == 7 {
				cancel()
			}
			return nil
		})
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%d hands: %v", idle, err)
		}
		wantPanic(t, Guard(func() error {
			return Split(WithHands(t.Context(), h), 100, 0, func(int) error { burst(nil); return nil })
		}))
	}
}
