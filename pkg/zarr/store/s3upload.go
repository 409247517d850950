package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"strata/pkg/work"
)

// S3Upload writes a Zarr node below a prefix of a bucket so that readers see it only when it is complete: it
// keeps back the node's own metadata documents until Commit, and writes beside an existing node. It can read
// what it has written and what it keeps back.
//
// Put copies its arguments and returns before they are sent: up to [AtOnce] objects of [QueueBytes] together
// are in flight. Commit of an object that was written piece by piece does the same, for up to [queueFiles] of
// them. Errors surface in a later call, at the latest in Commit of the upload.
type S3Upload struct {
	*S3Store           // where objects are written: the place itself, or beside it
	place     *S3Store // of the node
	mark      mark
	ctx       context.Context // of Begin, for what is sent behind
	cancel    context.CancelFunc
	committed bool
	foreign   []Foreign // asked before a node is replaced

	mu      sync.Mutex
	held    map[string][]byte // metadata documents of the node itself
	sending map[string]bool   // objects in flight, by key
	failed  error             // of the first that did not arrive
	changed sync.Cond         // of sending, queued and failed
	queued  int64             // bytes in flight
	files   int               // objects in flight that are temporary files
	sent    sync.WaitGroup
}

// queueFiles is the maximum number of objects in flight that are temporary files.
const queueFiles = 4

// QueueBytes is the default limit on bytes of small objects in flight; [Queue] changes it.
const QueueBytes = 64 << 20

var _ Writer = (*S3Upload)(nil)

// newUpload returns an upload to a store's place.
func newUpload(ctx context.Context, place *S3Store, m mark) *S3Upload {
	u := &S3Upload{S3Store: place, place: place, mark: m, held: map[string][]byte{}, sending: map[string]bool{}}
	u.ctx, u.cancel = context.WithCancel(ctx)
	u.changed.L = &u.mu
	return u
}

// Put writes an object, or keeps back a document of the node itself.
func (u *S3Upload) Put(ctx context.Context, key string, parts ...[]byte) error {
	if err := u.check(ctx, key); err != nil {
		return err
	}
	if slices.Contains(nodeNames, key) {
		u.mu.Lock()
		defer u.mu.Unlock()
		u.held[key] = slices.Concat(parts...)
		return nil
	}
	var size int64
	for _, p := range parts {
		size += int64(len(p))
	}
	if size > partSize { // sent in parts, several at once
		if err := u.arrived(ctx, key); err != nil {
			return err
		}
		return u.S3Store.Put(ctx, key, parts...)
	}
	return u.send(ctx, key, size, parts)
}

// wait waits while busy returns true and then calls then under the lock. It fails if a transfer has failed or
// ctx has ended.
func (u *S3Upload) wait(ctx context.Context, busy func() bool, then func()) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.failed == nil && busy() {
		stop := context.AfterFunc(ctx, func() {
			u.mu.Lock()
			defer u.mu.Unlock()
			u.changed.Broadcast()
		})
		defer stop()
	}
	for u.failed == nil && busy() {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("%s: %w", u.place.web.shown, err)
		}
		u.changed.Wait()
	}
	if u.failed == nil && then != nil {
		then()
	}
	return u.failed
}

// send queues an object, after any earlier one with the same key has arrived.
func (u *S3Upload) send(ctx context.Context, key string, size int64, parts [][]byte) error {
	err := u.wait(ctx, func() bool {
		return u.sending[key] || len(u.sending) >= u.Requests() || u.queued > 0 && u.queued+size > u.web.queue
	}, func() {
		u.sending[key] = true
		u.queued += size
	})
	if err != nil {
		return err
	}
	body := make([]byte, 0, size)
	for _, p := range parts {
		body = append(body, p...)
	}
	u.behind(key, func() error { return u.S3Store.Put(u.ctx, key, body) }, func() { u.queued -= size })
	return nil
}

// behind sends, in the background, an object that is recorded as in flight, and then calls sent under the
// lock. [S3Upload.Abort] waits for it.
func (u *S3Upload) behind(key string, send func() error, sent func()) {
	work.Go(&u.sent, send, func(err error) {
		u.mu.Lock()
		defer u.mu.Unlock()
		delete(u.sending, key)
		sent()
		if err != nil && u.failed == nil {
			u.failed = err
		}
		u.changed.Broadcast()
	})
}

// arrived waits until an object is no longer in flight.
func (u *S3Upload) arrived(ctx context.Context, key string) error {
	return u.wait(ctx, func() bool { return u.sending[key] }, nil)
}

// allArrived waits until nothing is in flight.
func (u *S3Upload) allArrived(ctx context.Context) error {
	return u.wait(ctx, func() bool { return len(u.sending) > 0 }, nil)
}

// Create begins an object; see [Writer].
func (u *S3Upload) Create(ctx context.Context, key string) (PendingObject, error) {
	if err := u.check(ctx, key); err != nil {
		return nil, err
	}
	if err := u.arrived(ctx, key); err != nil {
		return nil, err
	}
	p, err := u.S3Store.Create(ctx, key)
	if err != nil {
		return nil, err
	}
	return &pendingBehind{p.(*pendingS3), u}, nil
}

// pendingBehind is an object whose Commit returns before it is sent.
type pendingBehind struct {
	*pendingS3
	upload *S3Upload
}

// Commit queues the object, after any earlier one with the same key has arrived.
func (p *pendingBehind) Commit() error {
	u, first := p.upload, false
	err := u.wait(p.ctx, func() bool { return u.sending[p.key] || u.files >= queueFiles }, func() {
		if first = p.begin(); first {
			u.sending[p.key] = true
			u.files++
		}
	})
	if err != nil {
		return errors.Join(err, p.Abort())
	}
	if !first {
		return p.ended()
	}
	u.behind(p.key, func() error { return p.send(u.ctx) }, func() { u.files-- })
	return nil
}

// Open waits until the object has arrived and opens it.
func (u *S3Upload) Open(ctx context.Context, key string) (Object, error) {
	if err := u.arrived(ctx, key); err != nil {
		return nil, err
	}
	return u.S3Store.Open(ctx, key)
}

// Expect waits until the object has arrived and prepares reads without a request.
func (u *S3Upload) Expect(ctx context.Context, key string, size int64) (Object, error) {
	if err := u.arrived(ctx, key); err != nil {
		return nil, err
	}
	return u.S3Store.Expect(ctx, key, size)
}

// Start waits until the object has arrived, opens it and reads its beginning.
func (u *S3Upload) Start(ctx context.Context, key string, memory []byte) (StartedObject, error) {
	if err := u.arrived(ctx, key); err != nil {
		return nil, err
	}
	return u.S3Store.Start(ctx, key, memory)
}

// List waits until all objects have arrived and lists the children of prefix.
func (u *S3Upload) List(ctx context.Context, prefix string) ([]Entry, error) {
	if err := u.allArrived(ctx); err != nil {
		return nil, err
	}
	return u.S3Store.List(ctx, prefix)
}

// Get reads an object, including one that is kept back.
func (u *S3Upload) Get(ctx context.Context, key string, dst []byte, limit int64) ([]byte, error) {
	u.mu.Lock()
	held, ok := u.held[key]
	u.mu.Unlock()
	switch {
	case !ok:
		if err := u.arrived(ctx, key); err != nil {
			return nil, err
		}
		return u.web.Get(ctx, key, dst, limit)
	case limit >= 0 && int64(len(held)) > limit:
		return nil, tooLarge(u.Location(key), int64(len(held)), limit)
	}
	return append(dst[:0], held...), nil
}

// Delete removes an object, or forgets one that is kept back.
func (u *S3Upload) Delete(ctx context.Context, key string) error {
	u.mu.Lock()
	delete(u.held, key)
	u.mu.Unlock()
	if err := u.arrived(ctx, key); err != nil {
		return err
	}
	return u.S3Store.Delete(ctx, key)
}
