package run

import (
	"context"
	"os"
	"os/signal"
	"sync"
	"syscall"
)

// signalError is the result of a run that a signal ended.
type signalError struct{ sig syscall.Signal }

func (e *signalError) Error() string {
	name := map[syscall.Signal]string{syscall.SIGINT: "SIGINT", syscall.SIGTERM: "SIGTERM", syscall.SIGHUP: "SIGHUP", syscall.SIGQUIT: "SIGQUIT"}[e.sig]
	return "interrupted by " + name
}

// watcher waits for signals while a command runs.
type watcher struct {
	signals chan os.Signal
	quit    chan struct{}
	cancel  context.CancelCauseFunc
	dump    func() // shows what the process is doing, on SIGQUIT
	wg      sync.WaitGroup

	mu    sync.Mutex
	first error
}

// watchSignals gives a context that the first SIGINT, SIGTERM, SIGHUP or SIGQUIT
// cancels; the last one calls dump before. The second kills the process at once, as if nobody had listened.
func watchSignals(dump func()) (context.Context, *watcher) {
	ctx, cancel := context.WithCancelCause(context.Background())
	w := &watcher{signals: make(chan os.Signal, 2), quit: make(chan struct{}), cancel: cancel, dump: dump}
	signal.Notify(w.signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGQUIT)
	if !signal.Ignored(syscall.SIGHUP) { // nohup
		signal.Notify(w.signals, syscall.SIGHUP)
	}
	w.wg.Go(w.watch)
	return ctx, w
}

func (w *watcher) watch() {
	direct, byRelay, acted := 0, 0, 0
	for {
		var s os.Signal
		select {
		case s = <-w.signals:
			direct++
		case s = <-relayed:
			byRelay++
		case <-w.quit:
			return
		}
		// One to the whole process group comes on both ways.
		if n := max(direct, byRelay); n > acted {
			acted = n
			sig := s.(syscall.Signal)
			if sig == syscall.SIGQUIT {
				w.dump()
			}
			w.mu.Lock()
			again := w.first != nil
			if !again {
				err := &signalError{sig}
				w.first = &coded{128 + int(sig), err}
				w.cancel(err)
			}
			w.mu.Unlock()
			if again {
				if sig == syscall.SIGQUIT { // by itself, Go's runtime would dump all goroutines and exit with 2
					os.Exit(128 + int(sig))
				}
				signal.Reset(sig)
				_ = syscall.Kill(os.Getpid(), sig)
			}
		}
	}
}

// got is the error of the first signal; nil if there was none.
func (w *watcher) got() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.first
}

// stop ends the watch, after which signals act as if nobody had listened, and is got.
func (w *watcher) stop() error {
	signal.Stop(w.signals)
	close(w.quit)
	w.wg.Wait()
	w.cancel(nil)
	return w.got()
}
