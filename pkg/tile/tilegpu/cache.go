package tilegpu

import (
	"context"
	"errors"
	"fmt"

	"strata/pkg/gpu"
	"strata/pkg/work"
	"strata/pkg/zarr"
)

// hold finds tiles in memory, or loads them there, and keeps them until drop. A tile is
// loaded once for all who ask for it meanwhile.
func (l *Loader) hold(ctx context.Context, s *gpu.Stream, numbers []int) (map[int]*cached, error) {
	for {
		held, mine, err := l.claim(ctx, s, numbers)
		if err == nil {
			err = work.Each(ctx, cap(l.lanes), len(mine), func(_, i int) error { return l.load(ctx, mine[i]) })
			for _, t := range mine { // those that no worker came to
				l.settle(t, err)
			}
		}
		again := false
		for _, t := range held {
			select {
			case <-t.ready:
			case <-ctx.Done():
				err = ctx.Err()
				continue
			}
			if t.err != nil && err == nil {
				// another gave up for reasons of its own
				again = errors.Is(t.err, context.Canceled) || errors.Is(t.err, context.DeadlineExceeded)
				err = t.err
			}
		}
		if err == nil {
			return held, nil
		}
		l.drop(held)
		if !again || ctx.Err() != nil {
			return nil, err
		}
	}
}

// claim keeps tiles in memory: those that are there, and room for those, mine, that the
// caller has to load. Room is claimed by one at a time, so that nobody waits for another with
// a part of what it needs.
func (l *Loader) claim(ctx context.Context, s *gpu.Stream, numbers []int) (held map[int]*cached, mine []*cached, err error) {
	select {
	case l.turn <- struct{}{}:
	default:
		// what this one holds already is what the other may wait for
		if err := s.Wait(); err != nil {
			return nil, nil, err
		}
		select {
		case l.turn <- struct{}{}:
		case <-ctx.Done():
			return nil, nil, ctx.Err()
		}
	}
	defer func() { <-l.turn }()
	held = map[int]*cached{}
	waited := false
	for _, number := range numbers {
		for held[number] == nil {
			t, fresh, room := l.find(number)
			switch {
			case t != nil:
				held[number] = t
				if fresh {
					mine = append(mine, t)
				}
				continue
			case !waited:
				waited = true
				err = s.Wait()
			default:
				select {
				case <-room:
				case <-ctx.Done():
					err = ctx.Err()
				}
			}
			if err != nil {
				for _, t := range mine {
					l.settle(t, err)
				}
				l.drop(held)
				return nil, nil, err
			}
		}
	}
	return held, mine, nil
}

// find keeps a tile that is there or on its way, or makes room for it; else room says when
// to look again.
func (l *Loader) find(number int) (t *cached, fresh bool, room chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.clock++
	if t := l.tiles[number]; t != nil {
		t.pins++
		t.used = l.clock
		return t, false, nil
	}
	if len(l.free) == 0 {
		var oldest *cached
		for _, t := range l.tiles {
			if t.pins == 0 && (oldest == nil || t.used < oldest.used) {
				oldest = t
			}
		}
		if oldest == nil {
			room = make(chan struct{})
			l.waiting = append(l.waiting, room)
			return nil, false, room
		}
		delete(l.tiles, oldest.number)
		l.free = append(l.free, oldest.at)
	}
	n := len(l.free) - 1
	t = &cached{number: number, region: l.region(number), at: l.free[n], pins: 1, used: l.clock, ready: make(chan struct{})}
	l.free = l.free[:n]
	l.tiles[number] = t
	return t, true, nil
}

// region is where a tile lies in the array.
func (l *Loader) region(number int) zarr.Region {
	r := zarr.Region{Start: make([]int, len(l.grid)), Shape: make([]int, len(l.grid))}
	for d := len(l.grid) - 1; d >= 0; d-- {
		r.Start[d] = number % l.grid[d] * l.tile[d]
		r.Shape[d] = min(l.tile[d], l.shape[d]-r.Start[d])
		number /= l.grid[d]
	}
	return r
}

// load brings a tile into its place.
func (l *Loader) load(ctx context.Context, t *cached) error {
	var x *lane
	select {
	case x = <-l.lanes:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { l.lanes <- x }()
	err := x.slot.Fetch(ctx, t.region)
	if err == nil {
		x.slot.Into(x.stream, l.memory.From(t.at, l.reader.Bytes(t.region.Shape)))
		err = x.stream.Wait()
	}
	if err != nil {
		err = fmt.Errorf("tile %v: %w", t.region, err)
	}
	l.settle(t, err)
	return err
}

// settle tells those who wait for a tile that it is there, or why not. The first call
// counts.
func (l *Loader) settle(t *cached, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-t.ready:
		return
	default:
	}
	if t.err = err; err != nil {
		delete(l.tiles, t.number) // who comes later tries again
	}
	close(t.ready)
}

// drop gives tiles up that were held.
func (l *Loader) drop(held map[int]*cached) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, t := range held {
		if t.pins--; t.pins == 0 && l.tiles[t.number] != t {
			l.free = append(l.free, t.at) // it could not be loaded
		}
	}
	for _, w := range l.waiting {
		close(w)
	}
	l.waiting = nil
}
