package compute

import "sync"

// turns lets pieces of work that run concurrently finish in order.
type turns struct {
	mu   sync.Mutex
	next *sync.Cond
	at   int
}

func newTurns() *turns {
	t := new(turns)
	t.next = sync.NewCond(&t.mu)
	return t
}

// wait waits until all pieces before piece i have ended. They must have begun.
func (t *turns) wait(i int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for t.at < i {
		t.next.Wait()
	}
}

// end waits until all pieces before piece i have ended, and then ends piece i.
func (t *turns) end(i int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for t.at < i {
		t.next.Wait()
	}
	t.at = i + 1
	t.next.Broadcast()
}
