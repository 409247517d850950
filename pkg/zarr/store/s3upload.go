package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/minio/minio-go/v7"

	"strata/pkg/work"
)

// What [S3Store.Begin] finds in its way.
var (
	ErrOccupied = errors.New("is taken")             // by a node, or by a run that has not completed one: it may be replaced
	ErrForeign  = errors.New("must not be replaced") // what is no Zarr, and whole buckets
)

// markName is the object that says that a node is being written.
const markName = ".strata-incomplete"

// nodeNames are the documents that make a prefix a node of a Zarr hierarchy.
var nodeNames = []string{"zarr.json", ".zgroup", ".zarray", ".zattrs"}

// S3Upload writes a Zarr node below a prefix of a bucket so that readers see it
// when it is complete: its own metadata documents are kept back until Commit. It
// reads what it wrote, and those too.
//
// Put copies what it is given and returns before it is sent: up to [AtOnce] objects,
// of [queueBytes] together, are on their way. So does Commit of an object that was written
// piece by piece, with up to [queueFiles] of them. An error comes out of a later call, at the
// latest of Commit of the upload.
type S3Upload struct {
	*S3Store

	mu      sync.Mutex
	held    map[string][]byte // metadata documents of the node itself
	sending map[string]bool   // objects on their way, by key
	failed  error             // of the first that did not arrive
	changed sync.Cond         // of sending, queued and failed
	queued  int64             // bytes on their way
	files   int               // objects on their way that are temporary files
	sent    sync.WaitGroup
	ctx     context.Context // of Begin
}

// queueFiles is how many objects that are temporary files are on their way at a time.
const queueFiles = 4

// queueBytes is how much data of small objects is on its way at a time.
const queueBytes = 64 << 20

var _ Writer = (*S3Upload)(nil)

// Begin claims the store's prefix for a node. Where there is a node already, or
// one that another run has not completed, it is ErrOccupied, unless it may be
// replaced: then it is removed here, since a bucket cannot swap two of them.
// Where there is anything else, and for a bucket as a whole, it is ErrForeign.
// owner is who writes, for the message that others get meanwhile.
func (s *S3Store) Begin(ctx context.Context, owner string, replace bool) (*S3Upload, error) {
	if s.prefix == "" {
		return nil, fmt.Errorf("%s: a bucket as a whole %w: want s3://%s/NAME", s.web.shown, ErrForeign, s.bucket)
	}
	if err := s.mayBegin(ctx, replace); err != nil {
		return nil, err
	}
	if replace { // the node is no longer one before its parts go
		if err := s.remove(ctx, func(key string) bool { return slices.Contains(nodeNames, key) }); err != nil {
			return nil, err
		}
		if err := s.remove(ctx, nil); err != nil {
			return nil, err
		}
	}
	if err := s.mark(ctx, owner); err != nil {
		return nil, err
	}
	u := &S3Upload{S3Store: s, held: map[string][]byte{}, sending: map[string]bool{}, ctx: ctx}
	u.changed.L = &u.mu
	return u, nil
}

// mark writes the mark, unless another run has.
func (s *S3Store) mark(ctx context.Context, owner string) error {
	options := minio.PutObjectOptions{}
	options.SetMatchETagExcept("*") // of two runs that begin at once, one finds the other's
	err := s.change(ctx, markName, func(ctx context.Context) error {
		put := func() error {
			_, err := s.client.PutObject(ctx, s.bucket, s.prefix+markName, strings.NewReader(owner), int64(len(owner)), "", "", options)
			return err
		}
		err := put()
		switch minio.ToErrorResponse(err).StatusCode {
		case http.StatusNotImplemented: // a server without conditions
			options = minio.PutObjectOptions{}
			err = put()
		case http.StatusPreconditionFailed, http.StatusConflict:
			return ErrOccupied
		}
		return err
	})
	if !errors.Is(err, ErrOccupied) {
		return err
	}
	// It may be ours: of a request whose answer was lost.
	if there, e := s.Get(ctx, markName, nil, 1<<10); e == nil && string(there) == owner {
		return nil
	}
	return fmt.Errorf("%s: %w: another run began to write there just now", s.web.shown, ErrOccupied)
}

// mayBegin looks at what is there.
func (s *S3Store) mayBegin(ctx context.Context, replace bool) error {
	list, err := s.List(ctx, "")
	if errors.Is(err, fs.ErrNotExist) && !strings.Contains(err.Error(), "there is no bucket") {
		return nil
	}
	if err != nil {
		return err
	}
	has := func(name string) bool {
		return slices.ContainsFunc(list, func(e Entry) bool { return e.Name == name && !e.Dir })
	}
	switch {
	case has(markName) && !replace:
		who, err := s.Get(ctx, markName, nil, 1<<10)
		if err != nil {
			return err
		}
		return fmt.Errorf("%s: %w: %s is writing there, or was killed", s.web.shown, ErrOccupied, printable(string(who)))
	case has(markName):
	case !slices.ContainsFunc(nodeNames, has):
		return fmt.Errorf("%s: what is there is no Zarr and %w", s.web.shown, ErrForeign)
	case !replace:
		return fmt.Errorf("%s: %w: there is a Zarr hierarchy", s.web.shown, ErrOccupied)
	}
	return nil
}

// printable is text for a terminal.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return '?'
		}
		return r
	}, text)
}

// remove removes the objects below the prefix; of those, which picks, if it is not
// nil, from the ones that are directly there.
func (s *S3Store) remove(ctx context.Context, which func(key string) bool) error {
	return s.try(ctx, "", func(ctx context.Context) error {
		var failed, listed error
		objects := make(chan minio.ObjectInfo)
		var listing sync.WaitGroup
		work.Go(&listing, func() error { // ends before the results do
			for o := range s.client.ListObjectsIter(ctx, s.bucket, minio.ListObjectsOptions{Prefix: s.prefix, Recursive: which == nil}) {
				if o.Err != nil {
					return o.Err
				}
				if which == nil || which(strings.TrimPrefix(o.Key, s.prefix)) {
					objects <- minio.ObjectInfo{Key: o.Key}
				}
			}
			return nil
		}, func(err error) {
			listed = err
			close(objects)
		})
		for r := range s.client.RemoveObjectsWithResult(ctx, s.bucket, objects, minio.RemoveObjectsOptions{}) {
			if failed == nil {
				failed = r.Err
			}
		}
		for range objects { // of a removal that ended early
		}
		listing.Wait()
		return cmp.Or(ctx.Err(), listed, failed)
	})
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
		if err := u.arrived(key); err != nil {
			return err
		}
		return u.S3Store.Put(ctx, key, parts...)
	}
	return u.send(key, size, parts)
}

// send queues an object, after one of the same key has arrived.
func (u *S3Upload) send(key string, size int64, parts [][]byte) error {
	u.mu.Lock()
	for u.failed == nil && (u.sending[key] || len(u.sending) >= u.Requests() || u.queued > 0 && u.queued+size > queueBytes) {
		u.changed.Wait()
	}
	if u.failed != nil {
		defer u.mu.Unlock()
		return u.failed
	}
	u.sending[key] = true
	u.queued += size
	u.mu.Unlock()
	body := make([]byte, 0, size)
	for _, p := range parts {
		body = append(body, p...)
	}
	u.behind(key, func() error { return u.S3Store.Put(u.ctx, key, body) }, func() { u.queued -= size })
	return nil
}

// behind sends an object that is noted as on its way, and calls sent, which has the lock,
// when it is not any more. [S3Upload.end] waits for it.
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

// arrived waits until an object is not on its way any more.
func (u *S3Upload) arrived(key string) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	for u.sending[key] {
		u.changed.Wait()
	}
	return u.failed
}

// idle waits until nothing is on its way.
func (u *S3Upload) idle() error {
	u.mu.Lock()
	defer u.mu.Unlock()
	for len(u.sending) > 0 {
		u.changed.Wait()
	}
	return u.failed
}

// end is idle for the last call, when nobody puts anything any more.
func (u *S3Upload) end() error {
	u.sent.Wait()
	return u.idle()
}

// Create begins an object; see [Writer].
func (u *S3Upload) Create(ctx context.Context, key string) (PendingObject, error) {
	if err := u.check(ctx, key); err != nil {
		return nil, err
	}
	if err := u.arrived(key); err != nil {
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

// Commit queues the object, after one of the same key has arrived.
func (p *pendingBehind) Commit() error {
	u := p.upload
	u.mu.Lock()
	for u.failed == nil && (u.sending[p.key] || u.files >= queueFiles) {
		u.changed.Wait()
	}
	if u.failed != nil {
		defer u.mu.Unlock()
		return errors.Join(u.failed, p.Abort())
	}
	if !p.begin() {
		defer u.mu.Unlock()
		return p.ended()
	}
	u.sending[p.key] = true
	u.files++
	u.mu.Unlock()
	u.behind(p.key, func() error { return p.send(u.ctx) }, func() { u.files-- })
	return nil
}

// Open opens an object that has arrived.
func (u *S3Upload) Open(ctx context.Context, key string) (Object, error) {
	if err := u.arrived(key); err != nil {
		return nil, err
	}
	return u.S3Store.Open(ctx, key)
}

// Expect prepares reads of an object that has arrived.
func (u *S3Upload) Expect(ctx context.Context, key string, size int64) (Object, error) {
	if err := u.arrived(key); err != nil {
		return nil, err
	}
	return u.S3Store.Expect(ctx, key, size)
}

// List lists what has arrived.
func (u *S3Upload) List(ctx context.Context, prefix string) ([]Entry, error) {
	if err := u.idle(); err != nil {
		return nil, err
	}
	return u.S3Store.List(ctx, prefix)
}

// Get reads an object, also one that is kept back.
func (u *S3Upload) Get(ctx context.Context, key string, dst []byte, limit int64) ([]byte, error) {
	u.mu.Lock()
	held, ok := u.held[key]
	u.mu.Unlock()
	switch {
	case !ok:
		if err := u.arrived(key); err != nil {
			return nil, err
		}
		return u.S3Store.Get(ctx, key, dst, limit)
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
	if err := u.arrived(key); err != nil {
		return err
	}
	return u.S3Store.Delete(ctx, key)
}

// Commit makes the node one: it writes what was kept back, the document that a
// reader looks for first last, and removes the mark.
func (u *S3Upload) Commit(ctx context.Context) error {
	if err := u.end(); err != nil {
		return err
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	// .zattrs, .zgroup, zarr.json: the names' order is the right one
	for _, key := range slices.Sorted(maps.Keys(u.held)) {
		if err := u.S3Store.Put(ctx, key, u.held[key]); err != nil {
			return err
		}
	}
	return u.S3Store.Delete(ctx, markName)
}

// Abort removes all that was written, also after a Commit.
func (u *S3Upload) Abort(ctx context.Context) error {
	_ = u.end() // the reason of the Abort, or no matter
	err := u.remove(ctx, func(key string) bool { return slices.Contains(nodeNames, key) })
	return errors.Join(err, u.remove(ctx, nil))
}
