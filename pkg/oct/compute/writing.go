package compute

import (
	"sync"

	"strata/pkg/work"
)

// deviceWriting runs the goroutine that writes the results of a worker's pieces. Each result occupies a place
// until it is written.
type deviceWriting struct {
	tiles chan *deviceTile
	free  chan int // places
	close sync.Once
	done  sync.WaitGroup

	mu  sync.Mutex
	err error
}

// startWriting starts the goroutine. The caller must call end.
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

// place returns a free place. With wait, it waits for one; otherwise ok is false if there is none.
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

// write queues a tile to be written, which then frees its place.
func (w *deviceWriting) write(t *deviceTile) { w.tiles <- t }

// failed returns the error of writing a tile.
func (w *deviceWriting) failed() error {
	if w == nil {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}

// end waits until everything is written.
func (w *deviceWriting) end() error {
	if w == nil {
		return nil
	}
	w.close.Do(func() { close(w.tiles) })
	w.done.Wait()
	return w.failed()
}
