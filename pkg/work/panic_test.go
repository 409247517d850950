package work

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// burst panics as a slip in a decoder would.
func burst(b []byte) byte { return b[8] }

// wantPanic checks that err is the panic of burst, with the stack of its goroutine.
func wantPanic(t *testing.T, err error) {
	t.Helper()
	var p *Panic
	if !errors.As(err, &p) {
		t.Fatalf("error %v, want a Panic", err)
	}
	if want := "this is a bug: runtime error: index out of range [8] with length 0"; err.Error() != want {
		t.Errorf("message %q, want %q", err, want)
	}
	if !strings.Contains(string(p.Stack), "work.burst") {
		t.Errorf("the stack does not name burst:\n%s", p.Stack)
	}
	var r runtime.Error
	if !errors.As(err, &r) {
		t.Error("the panic's value is not found in the error")
	}
}

func TestPanicsBecomeErrors(t *testing.T) {
	fail := func() error { burst(nil); return nil }
	wantPanic(t, Guard(fail))

	g, ctx := WithContext(context.Background())
	g.Go(fail)
	g.Go(func() error { <-ctx.Done(); return nil }) // ends because the other panicked
	wantPanic(t, g.Wait())

	var wg sync.WaitGroup
	var err error
	Go(&wg, fail, func(e error) { err = e })
	wg.Wait()
	wantPanic(t, err)

	wantPanic(t, Guard(func() error { Async(func() int { return int(burst(nil)) })(); return nil }))
	if v := Async(func() int { return 3 })(); v != 3 {
		t.Errorf("Async returns %d, want 3", v)
	}
	if err := Guard(func() error { return nil }); err != nil {
		t.Error(err)
	}
}

// A panic of any worker, the caller's own too, ends the others and is the result.
func TestEachPanics(t *testing.T) {
	for _, workers := range []int{1, 4} {
		var begun atomic.Int32
		wantPanic(t, Each(context.Background(), workers, 1<<20, func(_, i int) error {
			if begun.Add(1); i == 7 {
				burst(nil)
			}
			return nil
		}))
		if begun.Load() == 1<<20 {
			t.Errorf("%d workers: all were begun", workers)
		}
	}
}
