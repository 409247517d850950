package machine

import (
	"sync"

	"strata/pkg/work"
)

// deviceWriting is the goroutine that writes what the pieces of a worker left on the host. Each lies at a place until it is written.
type deviceWriting struct {
	tiles chan *deviceTile
	free  chan int // places
	close sync.Once
	done  sync.WaitGroup

	mu  sync.Mutex
	err error
}

// startWriting starts it; end ends it.
func startWriting(places int) *deviceWriting {
	w := &deviceWriting{tiles: make(chan *deviceTile, places), free: make(chan int, places)}
	for i := range places {
		w.free <- i
	}
	work.Go(&w.done, func() error {
		for t := range w.tiles {
			if t.write != nil && w.failed() == nil {
				err := work.Guard(t.write)
				w.mu.Lock()
				w.err = err
				w.mu.Unlock()
			}
			w.free <- t.place
		}
		return nil
	}, func(error) {})
	return w
}

// place is one where nothing lies; with wait, it waits until there is one.
func (w *deviceWriting) place(wait bool) (place int, ok bool) {
	if wait {
		return <-w.free, true
	}
	select {
	case place = <-w.free:
		return place, true
	default:
		return 0, false
	}
}

// write takes a tile to be written. Its place is free again after that.
func (w *deviceWriting) write(t *deviceTile) { w.tiles <- t }

// failed is the error of the first tile that could not be written.
func (w *deviceWriting) failed() error {
	if w == nil {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}

// end waits until all is written.
func (w *deviceWriting) end() error {
	if w == nil {
		return nil
	}
	w.close.Do(func() { close(w.tiles) })
	w.done.Wait()
	return w.failed()
}
