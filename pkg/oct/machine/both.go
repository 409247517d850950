package machine

import (
	"context"
	"errors"
	"sync"
	"time"

	"strata/pkg/gpu"
	"strata/pkg/oct"
	"strata/pkg/oct/machine/transfer"
	"strata/pkg/work"
)

// A Side is what one machine does of the work that host and device share.
type Side[T any] struct {
	Plan *Plan
	Do   func(w Worker, piece T)
	Next func() (T, bool) // takes a device's next piece from those that nobody has taken; nil: the one that the host would take
	Free func()           // releases what the side holds, after the work; nil: nothing
}

// RunBoth is [Run] for a stage that begins on the host while a device is being taken into use ([oct.Resources.Coming]). The
// device joins when it is there, and each piece of work, of which there is the given number, goes to whoever is free. join
// returns the device's side: resources that have the device, and the bytes of host memory that the host's workers leave. next and
// the side's Next are not called concurrently.
//
// A device for whose side there is too little memory does not join, with a warning. Near the end it takes no piece that the
// host would have done before.
func RunBoth[T any](ctx context.Context, host Side[T], pieces int, next func() (T, bool), join func(res oct.Resources, mem int64) (Side[T], error)) error {
	res := host.Plan.Source.res
	if res.Coming == nil {
		return Run(ctx, host.Plan, next, host.Do)
	}
	left, err := host.Plan.Check()
	if err != nil {
		return err
	}
	_, workers, err := host.Plan.begin() // as Check has
	if err != nil {
		return err
	}
	q := &sharedWork[T]{next: next, all: pieces, left: pieces, workers: host.Plan.atMost(workers), began: time.Now(), first: res.Coming.First, alone: res.Coming.Alone}
	g, ctx := work.WithContext(ctx)
	over, end := context.WithCancel(ctx)
	g.Go(func() error {
		defer end()
		return Run(ctx, host.Plan, q.byHost, host.Do)
	})
	g.Go(func() error {
		select {
		case <-res.Coming.Known():
		case <-over.Done():
			return nil
		}
		on, there := res.WithDevice()
		if !there {
			return nil
		}
		return q.join(ctx, on, left, join)
	})
	return g.Wait()
}

// join does the device's part of the work.
func (q *sharedWork[T]) join(ctx context.Context, res oct.Resources, mem int64, join func(res oct.Resources, mem int64) (Side[T], error)) error {
	err := func() error {
		side, err := join(res, mem)
		if side.Free != nil {
			defer side.Free()
		}
		if err != nil {
			return err
		}
		_, workers, err := side.Plan.begin()
		if err != nil {
			return err
		}
		q.joined(side.Plan.atMost(workers)*transfer.MostSlots, side.Next)
		return Run(ctx, side.Plan, q.byDevice, side.Do)
	}()
	var call *gpu.Error
	if err == nil || ctx.Err() != nil || q.device > 0 || errors.As(err, &call) {
		return err
	}
	res.Warnf("the GPU does not join the CPU: %v", err)
	return nil
}

// sharedWork hands out the pieces of work that host and device share.
type sharedWork[T any] struct {
	mu      sync.Mutex
	next    func() (T, bool)
	last    func() (T, bool) // of the device; nil: next
	all     int              // pieces
	left    int              // of them, that nobody has taken
	began   time.Time        // the host
	workers int              // of the host, at most: each has a piece in hand
	alone   time.Duration    // that the host is expected to take for all
	host    int              // pieces that it has taken
	first   time.Duration    // that the first pieces may take on the device
	since   time.Time        // when the device joined
	most    int              // pieces that it has in hand at a time
	device  int              // pieces that it has taken
}

// joined says that a device has joined, which has so many pieces in hand at most and takes them by last, unless that is nil.
func (q *sharedWork[T]) joined(most int, last func() (T, bool)) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.since, q.most, q.last = time.Now(), most, last
}

func (q *sharedWork[T]) byHost() (T, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.take(q.next, &q.host)
}

func (q *sharedWork[T]) byDevice() (piece T, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.withoutDevice() < q.latency() {
		return piece, false
	}
	if q.last != nil {
		return q.take(q.last, &q.device)
	}
	return q.take(q.next, &q.device)
}

func (q *sharedWork[T]) take(next func() (T, bool), by *int) (piece T, ok bool) {
	if piece, ok = next(); ok {
		q.left--
		*by++
	}
	return piece, ok
}

// withoutDevice returns how long the host would take for what is left: at the rate at which it has done pieces, or as
// expected before it has done any.
func (q *sharedWork[T]) withoutDevice() time.Duration {
	done, took := float64(q.host-q.workers), time.Since(q.began)
	if done <= 0 {
		done, took = float64(max(q.all, 1)), q.alone
	}
	return time.Duration(float64(q.left) / done * float64(took))
}

// latency returns how long a piece of work takes on the device from when it is taken until it is written: as many as there are
// in hand, at the rate at which those before were done.
func (q *sharedWork[T]) latency() time.Duration {
	done := q.device - q.most
	if done <= 0 {
		return q.first
	}
	return time.Duration(float64(q.most) * float64(time.Since(q.since)) / float64(done))
}
