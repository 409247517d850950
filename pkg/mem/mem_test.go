package mem

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"
)

func TestBudgetIsNeverExceeded(t *testing.T) {
	p := NewPool(1 << 20)
	defer p.Close()
	var mu sync.Mutex
	var held, worst int
	var wg sync.WaitGroup
	for w := range 8 {
		wg.Go(func() {
			for i := range 200 {
				n := 1000 + (w*7919+i*104729)%300000
				b, err := p.Get(context.Background(), n)
				if err != nil {
					t.Error(err)
					return
				}
				if len(b.B) != n {
					t.Errorf("asked for %d bytes, got %d", n, len(b.B))
				}
				mu.Lock()
				held += len(b.full)
				worst = max(worst, held)
				mu.Unlock()
				b.B[0], b.B[n-1] = 1, 1
				mu.Lock()
				held -= len(b.full)
				mu.Unlock()
				b.Release()
			}
		})
	}
	wg.Wait()
	if worst > 1<<20 || p.Peak() > 1<<20 {
		t.Errorf("held %d bytes, pool %d, of a budget of %d", worst, p.Peak(), 1<<20)
	}
}

func TestBuffersAreRecycled(t *testing.T) {
	p := NewPool(1 << 20)
	defer p.Close()
	a, err := p.Get(context.Background(), 100_000)
	if err != nil {
		t.Fatal(err)
	}
	first := &a.B[0]
	a.Release()
	a.Release() // a second time does nothing
	b, err := p.Get(context.Background(), 99_000)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Release()
	if &b.B[0] != first {
		t.Error("a released buffer of the same class was not used again")
	}
}

func TestGetWaitsAndCanBeCancelled(t *testing.T) {
	p := NewPool(64 << 10)
	defer p.Close()
	a, err := p.Get(context.Background(), 60<<10)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	if _, err := p.Get(ctx, 60<<10); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("got %v, want the deadline", err)
	}
	got := make(chan error, 1)
	go func() {
		b, err := p.Get(context.Background(), 60<<10)
		if err == nil {
			b.Release()
		}
		got <- err
	}()
	a.Release()
	if err := <-got; err != nil {
		t.Fatal(err)
	}
	if _, err := p.Get(context.Background(), 1<<20); err == nil {
		t.Error("a buffer above the whole budget was promised")
	}
}

func TestClassWastesLittle(t *testing.T) {
	for n := 1; n < 1<<24; n = n*5/4 + 1 {
		c := class(n)
		if c < n || c%page != 0 || (n >= 1<<17 && float64(c) > 1.07*float64(n)) {
			t.Errorf("class(%d) = %d", n, c)
		}
	}
}

func TestTryGetDoesNotWait(t *testing.T) {
	p := NewPool(64 << 10)
	defer p.Close()
	a, err := p.TryGet(60 << 10)
	if err != nil || len(a.B) != 60<<10 {
		t.Fatal(a, err)
	}
	if b, err := p.TryGet(8 << 10); b != nil || err != nil {
		t.Errorf("got %v, %v from a spent budget", b, err)
	}
	a.Release()
	b, err := p.TryGet(8 << 10)
	if b == nil || err != nil {
		t.Errorf("got %v, %v after a release", b, err)
	}
	b.Release()
	if b, err := p.TryGet(1 << 20); b != nil || err != nil {
		t.Errorf("got %v, %v for more than the budget", b, err)
	}
	if p.Peak() > p.Limit() {
		t.Errorf("peak %d of %d", p.Peak(), p.Limit())
	}
}

// What is released beyond what may lie idle goes back to the system at once.
func TestKeep(t *testing.T) {
	held := 0
	p := NewPoolOf(1<<20, func(n int) ([]byte, error) { held += n; return make([]byte, n), nil }, func(b []byte) { held -= len(b) }).Keep(64 << 10)
	var taken []*Buffer
	for _, n := range []int{16 << 10, 32 << 10, 64 << 10, 128 << 10} {
		b, err := p.TryGet(n)
		if err != nil || b == nil {
			t.Fatal(b, err)
		}
		taken = append(taken, b)
	}
	for _, b := range taken {
		b.Release()
	}
	if held > 64<<10 {
		t.Errorf("%d bytes are held, at most %d may lie idle", held, 64<<10)
	}
	if p.Keep(0); held != 0 {
		t.Errorf("%d bytes are held where none may lie idle", held)
	}
}

// Populate keeps what memory holds, wherever the slice begins.
func TestPopulateKeepsContent(t *testing.T) {
	b, err := Alloc(1 << 20)
	if err != nil {
		t.Fatal(err)
	}
	defer Free(b)
	for i := range b {
		b[i] = byte(i * 7)
	}
	heap := make([]byte, 3*page)
	for _, part := range [][]byte{b, b[1:], b[5 : len(b)-3], b[:1], nil, heap[1:], heap[:10]} {
		Populate(part)
	}
	for i := range b {
		if b[i] != byte(i*7) {
			t.Fatalf("byte %d is %d", i, b[i])
		}
	}
}
