package gpu

import (
	"runtime"

	"strata/pkg/work"
)

// thread is an OS thread on which a context is current. Calls of the driver are made
// there, one after the other.
type thread struct {
	calls chan func()
	ended chan struct{}
}

// newThread starts a thread; the first call on it is to make the context current.
func newThread() *thread {
	t := &thread{calls: make(chan func()), ended: make(chan struct{})}
	go func() {
		defer close(t.ended)
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		for f := range t.calls {
			f()
		}
	}()
	return t
}

// do runs f on the thread and waits for it; a panic of f continues in the caller.
func (t *thread) do(f func()) {
	done := make(chan error)
	t.calls <- func() { done <- work.Guard(func() error { f(); return nil }) }
	if err := <-done; err != nil {
		panic(err)
	}
}

// end lets the thread end and waits for that.
func (t *thread) end() {
	close(t.calls)
	<-t.ended
}
