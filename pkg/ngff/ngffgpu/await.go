package ngffgpu

import (
	"context"
	"errors"
	"sync"

	"strata/pkg/gpu"
)

// holding counts the tiles of a writer that hold memory, so that others can wait for it.
type holding struct {
	waiting sync.Mutex // held by the one that waits

	mu    sync.Mutex
	tiles int
	given int           // tiles that gave their memory back
	freed chan struct{} // closed by the next that does
}

// take counts a tile until its Release.
func (h *holding) take(t *Tile) {
	h.mu.Lock()
	defer h.mu.Unlock()
	t.holds = true
	h.tiles++
}

// give ends the count of a tile, once, and wakes the one that waits.
func (h *holding) give(t *Tile) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !t.holds {
		return
	}
	t.holds = false
	h.tiles--
	h.given++
	if h.freed != nil {
		close(h.freed)
		h.freed = nil
	}
}

// now returns how many tiles hold memory, how many have given theirs back, and a channel that the next one closes.
func (h *holding) now() (tiles, given int, freed <-chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.freed == nil {
		h.freed = make(chan struct{})
	}
	return h.tiles, h.given, h.freed
}

// Await is [Writer.Begin] for a tile that found too little page-locked memory: it waits while other tiles hold some.
// The caller must not hold tiles that are stored only after it returns. If no other tile holds memory, the error is
// [gpu.ErrMemory]. It waits for the stream.
func (w *Writer) Await(ctx context.Context, s *gpu.Stream, start, shape []int, src gpu.Span) (*Tile, error) {
	w.held.waiting.Lock() // two that get half of what they need would wait for each other
	defer w.held.waiting.Unlock()
	for {
		_, before, _ := w.held.now()
		t, err := w.Begin(s, start, shape, src)
		if !errors.Is(err, gpu.ErrMemory) {
			return t, err
		}
		if err := s.Wait(); err != nil { // then the tile gives back what it found
			return nil, err
		}
		tiles, given, freed := w.held.now()
		switch {
		case given > before+1: // others did, too
			continue
		case tiles == 0:
			return nil, err
		}
		select {
		case <-freed:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}
