package work

import (
	"context"
	"sync"
	"time"
)

// Hands are the processors that have no worker, because memory is too small for further workers or no piece of work is
// left. They help workers that can split their piece; see [Split].
type Hands struct {
	cores  int
	helped func(start time.Time)

	mu     sync.Mutex
	idle   int
	least  int   // of idle
	memory int64 // bytes that those who help may take together
}

// NewHands returns hands for a number of processors, so many of which are busy. memory is the number of bytes that
// helping goroutines may use together. helped, unless nil, is called when a goroutine that has helped since start ends.
func NewHands(cores, busy int, memory int64, helped func(start time.Time)) *Hands {
	return &Hands{cores: cores, helped: helped, idle: cores - busy, least: cores - busy, memory: memory}
}

// Busy adds n to the number of busy processors when workers begin; n is negative when workers end. Goroutines that help
// on these processors end after their current part.
func (h *Hands) Busy(n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.idle -= n
	h.least = min(h.least, h.idle)
}

// Most returns the largest number of processors that were busy at a time, helping ones included.
func (h *Hands) Most() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return min(h.cores, h.cores-h.least) // a worker may begin while hands help
}

// take reserves an idle processor and so many bytes. It returns false if there is no idle processor, or too little
// memory.
func (h *Hands) take(bytes int64) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.idle <= 0 || bytes > h.memory {
		return false
	}
	h.idle--
	h.least = min(h.least, h.idle)
	h.memory -= bytes
	return true
}

// give returns the processor and the memory that take has reserved.
func (h *Hands) give(bytes int64, since time.Time) {
	if h.helped != nil {
		h.helped(since)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.idle++
	h.memory += bytes
}

type handsKey struct{}

// WithHands returns a context in which [Split] finds the hands.
func WithHands(ctx context.Context, h *Hands) context.Context {
	return context.WithValue(ctx, handsKey{}, h)
}

// Idle returns how many processors would help at the moment: into how many parts it pays to split what costs more in
// parts.
func Idle(ctx context.Context) int {
	h, _ := ctx.Value(handsKey{}).(*Hands)
	if h == nil {
		return 0
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return max(0, h.idle)
}

// Split calls f for 0 to n−1, begun in this order: in the caller's goroutine, and by idle hands of the context as long
// as there are any, of which each takes so many bytes of their memory. It returns when all calls have ended, with the
// first error, or with that of ctx if pieces are left. Without hands it is a loop. What f does must not depend on who
// does it.
func Split(ctx context.Context, n int, bytes int64, f func(i int) error) error {
	pieces := counter{n: int64(n)}
	h, _ := ctx.Value(handsKey{}).(*Hands)
	if h == nil || n < 2 {
		for i := range pieces.of(ctx) {
			if err := f(i); err != nil {
				return err
			}
		}
		return pieces.unless(ctx)
	}
	g, within := WithContext(ctx)
	var do func() error
	helpers := counter{n: int64(n - 1)}
	do = func() error {
		for i := range pieces.of(within) {
			for pieces.left() && helpers.left() && h.take(bytes) {
				helpers.next.Add(1)
				g.Go(func() error {
					defer h.give(bytes, time.Now())
					return do()
				})
			}
			if err := f(i); err != nil {
				return err
			}
		}
		return nil
	}
	g.Go(do)
	if err := g.Wait(); err != nil {
		return err
	}
	return pieces.unless(ctx)
}
