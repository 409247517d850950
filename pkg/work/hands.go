package work

import (
	"context"
	"sync"
)

// Hands are processors that no worker keeps busy: memory does not hold a worker for them, or no piece of work is left for one.
// They help those whose piece of work can be split; see [Split].
type Hands struct {
	mu     sync.Mutex
	idle   int
	memory int64 // bytes that those who help may take together
}

// NewHands returns idle processors, with the bytes of memory that those who help may take.
func NewHands(idle int, memory int64) *Hands { return &Hands{idle: idle, memory: memory} }

// Add makes n more processors idle, as when workers end; with a negative n, fewer, as when workers begin. Those that help then end
// what they have begun.
func (h *Hands) Add(n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.idle += n
}

// take reports whether there is an idle processor, with so many bytes, and takes both.
func (h *Hands) take(bytes int64) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.idle <= 0 || bytes > h.memory {
		return false
	}
	h.idle--
	h.memory -= bytes
	return true
}

// give returns what was taken.
func (h *Hands) give(bytes int64) {
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

// Split calls f for 0 to n−1, begun in this order: in the caller's goroutine, and by idle hands of the context as long as there are
// any, of which each takes so many bytes of their memory. It returns when all calls have ended, with the first error, or with that of
// ctx if pieces are left. Without hands it is a loop. What f does must not depend on who does it.
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
	do = func() error {
		for i := range pieces.of(within) {
			for pieces.left() && h.take(bytes) {
				g.Go(func() error {
					defer h.give(bytes)
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
