package compute

import (
	"context"
	"sync"
	"time"

	"strata/pkg/oct"
	"strata/pkg/oct/compute/transfer"
	"strata/pkg/work"
)

// A Side is the work of either the host or the device when both share the pieces of a stage.
type Side[T any, W Worker] struct {
	Plan *Plan
	Do   func(w W, piece T)
	Next func() (T, bool) // takes a device's next piece from those that nobody has taken; nil: the one that the host would take
	Free func()           // releases what the side holds, after the work; nil: nothing
}

// RunBoth is [Run] for a stage that begins on the host while a device is being initialised ([oct.Resources.Coming]).
// The device joins when it is available; each of the given number of pieces of work then goes to the side that is free.
// join returns the device's side, given resources that have the device and the bytes of host memory that the host's
// workers leave. next and the side's Next are not called concurrently.
//
// A device whose side does not fit into memory does not join; a warning says so. Near the end, the device takes no
// piece that the host would finish earlier. It stops if host and device together are slower than the host was alone.
func RunBoth[T any, W Worker](ctx context.Context, host Side[T, W], pieces int, next func() (T, bool), join func(res oct.Resources, mem int64) (Side[T, W], error)) error {
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
	q := &sharedWork[T]{next: next, all: pieces, left: pieces, coming: res.Coming, host: taken{workers: host.Plan.atMost(workers), began: time.Now()}}
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
		return joinDevice(ctx, q, on, left, join)
	})
	return g.Wait()
}

// joinDevice does the device's part of the work.
func joinDevice[T any, W Worker](ctx context.Context, q *sharedWork[T], res oct.Resources, mem int64, join func(res oct.Resources, mem int64) (Side[T, W], error)) error {
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
		q.joined(side.Plan.atMost(workers), side.Next)
		return Run(ctx, side.Plan, q.byDevice, side.Do)
	}()
	if err == nil || q.device.pieces > 0 {
		return err
	}
	return transfer.Unjoined(ctx, &res, err)
}

// sharedWork hands out the pieces of work that host and device share.
type sharedWork[T any] struct {
	mu     sync.Mutex
	next   func() (T, bool)
	own    func() (T, bool) // of the device; nil: next
	all    int              // pieces
	left   int              // of them, that nobody has taken
	coming *oct.Coming
	host   taken
	device taken
	took   []time.Time // when the device took the latest pieces, as many as it has in hand at most
	alone  float64     // pieces a second that the host did before the device joined; 0: it is not known
	full   int         // pieces that both had taken when the device had done its first; 0: it has not
	since  time.Time   // of full
	over   bool        // the device has left
}

// taken counts the pieces that the host, or the device, has taken.
type taken struct {
	workers int // at most
	pieces  int
	began   time.Time
	last    time.Time // when it took the last
}

// inHand returns the maximum number of pieces in flight on the device: the number of slots of all its workers.
func (q *sharedWork[T]) inHand() int { return q.device.workers * transfer.MostSlots }

// byItself returns the number of pieces that the host had finished when it took its latest one, and the time that they
// took.
func (q *sharedWork[T]) byItself() (pieces int, took time.Duration) {
	return q.host.pieces - q.host.workers, q.host.last.Sub(q.host.began)
}

// joined records that a device with the given number of workers has joined. It takes its pieces from own, or from next
// if own is nil.
func (q *sharedWork[T]) joined(workers int, own func() (T, bool)) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.own = own
	q.device = taken{workers: workers, began: time.Now()}
	q.took = make([]time.Time, q.inHand()+workers) // each has one more, for which it then waits
	if done, took := q.byItself(); done >= q.host.workers {
		q.alone = float64(done) / took.Seconds()
	}
}

func (q *sharedWork[T]) byHost() (T, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.take(q.next, &q.host)
}

func (q *sharedWork[T]) byDevice() (piece T, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.over = q.over || q.withoutDevice() < q.latency() || q.inTheWay(); q.over {
		return piece, false
	}
	next := q.next
	if q.own != nil {
		next = q.own
	}
	if piece, ok = q.take(next, &q.device); ok {
		q.took[(q.device.pieces-1)%len(q.took)] = q.device.last
	}
	return piece, ok
}

func (q *sharedWork[T]) take(next func() (T, bool), by *taken) (piece T, ok bool) {
	if piece, ok = next(); ok {
		q.left--
		by.pieces++
		by.last = time.Now()
	}
	return piece, ok
}

// withoutDevice returns how long the host alone would take for the remaining pieces, at its measured speed, or at the
// expected speed before it has finished a piece.
func (q *sharedWork[T]) withoutDevice() time.Duration {
	done, took := q.byItself()
	if done <= 0 {
		done, took = max(q.all, 1), q.coming.Alone
	}
	return time.Duration(float64(q.left) / float64(done) * float64(took))
}

// latency returns how long the device takes for a piece of work, from taking to writing it: the measured duration of
// the latest piece, or the expected one before any has been written.
func (q *sharedWork[T]) latency() time.Duration {
	if d := q.device; d.pieces < len(q.took) {
		return q.coming.First + time.Duration(d.pieces/d.workers+1)*q.coming.Piece
	}
	return time.Since(q.took[q.device.pieces%len(q.took)])
}

// inTheWay reports whether host and device together finish fewer pieces per second than the host did alone, as when
// feeding the device occupies the host's processors. It returns false until the device has finished twice as many
// pieces as it has in flight.
func (q *sharedWork[T]) inTheWay() bool {
	both := q.host.pieces + q.device.pieces
	switch {
	case q.device.pieces <= q.inHand():
		return false
	case q.full == 0:
		q.full, q.since = both, time.Now()
		return false
	}
	return q.device.pieces > 2*q.inHand() && float64(both-q.full) < q.alone*time.Since(q.since).Seconds()
}
