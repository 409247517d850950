package work

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
)

func TestEach(t *testing.T) {
	for _, c := range []struct{ workers, n int }{{1, 0}, {1, 1}, {0, 5}, {3, 2}, {4, 1000}} {
		seen := make([]atomic.Int32, c.n)
		busy := make([]atomic.Int32, max(1, c.workers))
		err := Each(context.Background(), c.workers, c.n, func(worker, i int) error {
			if busy[worker].Add(1) != 1 {
				t.Error("a worker does two things at a time")
			}
			seen[i].Add(1)
			busy[worker].Add(-1)
			return nil
		})
		if err != nil {
			t.Error(err)
		}
		for i := range seen {
			if k := seen[i].Load(); k != 1 {
				t.Errorf("%d workers: %d was done %d times", c.workers, i, k)
			}
		}
	}
}

func TestEachStops(t *testing.T) {
	broken := errors.New("broken")
	for _, workers := range []int{1, 4} {
		var begun atomic.Int32
		err := Each(context.Background(), workers, 1<<20, func(_, i int) error {
			if begun.Add(1); i == 7 {
				return broken
			}
			return nil
		})
		if !errors.Is(err, broken) || begun.Load() == 1<<20 {
			t.Errorf("%d workers: %v after %d", workers, err, begun.Load())
		}
		ctx, cancel := context.WithCancel(context.Background())
		begun.Store(0)
		err = Each(ctx, workers, 1<<20, func(_, i int) error {
			if begun.Add(1); i == 7 {
				cancel()
			}
			return nil
		})
		if !errors.Is(err, context.Canceled) || begun.Load() == 1<<20 {
			t.Errorf("%d workers: %v after %d", workers, err, begun.Load())
		}
	}
}
