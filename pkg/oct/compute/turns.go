package compute

import "sync"

// turns lets those who do pieces of work at the same time finish them in order.
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

// wait waits until all pieces before piece i have ended, which have begun.
func (t *turns) wait(i int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for t.at < i {
		t.next.Wait()
	}
}

// end waits likewise, and ends piece i.
func (t *turns) end(i int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for t.at < i {
		t.next.Wait()
	}
	t.at = i + 1
	t.next.Broadcast()
}
