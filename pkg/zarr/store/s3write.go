package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"slices"
	"sync"
	"time"

	"strata/pkg/work"
)

const (
	// partSize is the size of a part of an object that is sent in several. The
	// protocol's least is 5 MiB; it allows 10,000 parts.
	partSize = 16 << 20
	maxParts = 10_000
	// partsAtOnce is the number of parts of one object in flight.
	partsAtOnce = 4
	// abortTimeout is the maximum time for aborting the parts of a failed upload; after that, the bucket's
	// own rules have to.
	abortTimeout = 30 * time.Second
	// lateTimeout is the maximum time for a request that makes an object after the run has ended.
	lateTimeout = 5 * time.Second
	// cleanTimeout is the maximum time for removing what a failed run wrote.
	cleanTimeout = 2 * time.Minute
)

// Put stores parts as the object key; see [Writer].
func (s *S3Store) Put(ctx context.Context, key string, parts ...[]byte) error {
	if err := s.check(ctx, key); err != nil {
		return err
	}
	var size int64
	for _, p := range parts {
		size += int64(len(p))
	}
	switch {
	case size > partSize:
		return s.upload(ctx, key, joined(parts), size)
	case len(parts) == 1:
		return s.put(ctx, key, parts[0])
	}
	return s.put(ctx, key, slices.Concat(parts...))
}

// put sends an object in one request.
func (s *S3Store) put(ctx context.Context, key string, body []byte) error {
	return s.change(ctx, key, func(ctx context.Context) error { return s.client.put(ctx, s.prefix+key, body, false) })
}

// change retries a request that makes an object. If ctx ends meanwhile, it waits up to lateTimeout for the
// answer: an abandoned request might arrive after everything has been removed.
func (s *S3Store) change(ctx context.Context, key string, f func(ctx context.Context) error) error {
	return s.try(ctx, key, func(ctx context.Context) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		late, cancel := context.WithCancel(context.WithoutCancel(ctx))
		defer cancel()
		stop := context.AfterFunc(ctx, func() {
			select {
			case <-time.After(lateTimeout):
				cancel()
			case <-late.Done():
			}
		})
		defer stop()
		return f(late)
	})
}

func (s *S3Store) check(ctx context.Context, key string) error {
	if err := checkKey(key); err != nil {
		return fmt.Errorf("%s: %w", s.web.shown, err)
	}
	return ctx.Err()
}

// upload sends an object in parts, or a small one in one request.
func (s *S3Store) upload(ctx context.Context, key string, body io.ReaderAt, size int64) error {
	if size <= partSize {
		whole := make([]byte, size)
		if _, err := body.ReadAt(whole, 0); err != nil && err != io.EOF {
			return fmt.Errorf("%s: %w", s.Location(key), withoutPath(err))
		}
		return s.put(ctx, key, whole)
	}
	part := max(partSize, (size+maxParts-1)/maxParts)
	return s.inParts(ctx, key, int((size+part-1)/part), func(ctx context.Context, id string, i int) (string, error) {
		at := int64(i) * part
		n := min(part, size-at)
		return s.client.putPart(ctx, s.prefix+key, id, i+1, io.NewSectionReader(body, at, n))
	})
}

// inParts makes an object of n parts; part makes each of them and returns its tag.
func (s *S3Store) inParts(ctx context.Context, key string, n int, part func(ctx context.Context, id string, i int) (string, error)) error {
	name := s.prefix + key
	var id string
	err := s.change(ctx, key, func(ctx context.Context) (err error) {
		id, err = s.client.begin(ctx, name)
		return err
	})
	if err != nil {
		return err
	}
	if err = s.parts(ctx, key, id, n, part); err == nil {
		return nil
	}
	late, cancel := context.WithTimeout(context.WithoutCancel(ctx), abortTimeout)
	defer cancel()
	e := s.try(late, key, func(ctx context.Context) error { return s.client.abort(ctx, name, id) })
	if e != nil {
		err = fmt.Errorf("%w (and its parts are left in the bucket: %w)", err, e)
	}
	return err
}

func (s *S3Store) parts(ctx context.Context, key, id string, n int, send func(ctx context.Context, id string, i int) (string, error)) error {
	done := make([]part, n)
	err := work.Share(ctx, partsAtOnce, n, func(ctx context.Context, _ int, parts iter.Seq[int]) error {
		for i := range parts {
			err := s.try(ctx, key, func(ctx context.Context) error {
				tag, err := send(ctx, id, i)
				done[i] = part{Number: i + 1, Tag: tag}
				return err
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return s.change(ctx, key, func(ctx context.Context) error { return s.client.complete(ctx, s.prefix+key, id, done) })
}

const (
	// maxCopy is the size up to which the server copies an object with one request.
	maxCopy = 5 << 30
	// copyPart is the size of the parts in which it copies a larger one.
	copyPart = 1 << 30
)

// copyFrom makes the server copy another object to key.
func (s *S3Store) copyFrom(ctx context.Context, key string, from listed) error {
	if from.size > maxCopy {
		return s.copyParts(ctx, key, from, copyPart)
	}
	return s.change(ctx, key, func(ctx context.Context) error {
		tag, err := s.client.copy(ctx, s.prefix+key, from.key, nil, 0, 0)
		return copied(tag, err)
	})
}

// copyParts copies a large object in parts.
func (s *S3Store) copyParts(ctx context.Context, key string, from listed, part int64) error {
	part = max(part, (from.size+maxParts-1)/maxParts)
	return s.inParts(ctx, key, int((from.size+part-1)/part), func(ctx context.Context, id string, i int) (string, error) {
		at := int64(i) * part
		tag, err := s.client.copy(ctx, s.prefix+key, from.key, partQuery(id, i+1), at, min(part, from.size-at))
		return tag, copied(tag, err)
	})
}

// copied returns the error of a copy: a server that fails after it has begun to answer reports no tag.
func copied(tag string, err error) error {
	if err == nil && tag == "" {
		return errors.New("the server began to copy the object, and failed")
	}
	return err
}

// Create begins an object; see [Writer]. It collects the bytes in a temporary file until Commit, because the
// parts of an S3 object cannot be written in any order. When ctx ends, Commit fails.
func (s *S3Store) Create(ctx context.Context, key string) (PendingObject, error) {
	if err := s.check(ctx, key); err != nil {
		return nil, err
	}
	f, err := os.CreateTemp("", ".strata-s3-*")
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.Location(key), err)
	}
	if err := os.Remove(f.Name()); err != nil { // its space goes with the last descriptor, however we end
		return nil, errors.Join(fmt.Errorf("%s: %w", s.Location(key), err), f.Close())
	}
	return &pendingS3{ctx: ctx, store: s, key: key, file: f}, nil
}

// pendingS3 is an object under construction in a temporary file.
type pendingS3 struct {
	ctx   context.Context
	store *S3Store
	key   string
	file  *os.File

	mu   sync.Mutex
	size int64
	over bool
}

func (p *pendingS3) WriteAt(b []byte, off int64) (int, error) {
	where := p.store.Location(p.key)
	if off < 0 {
		return 0, fmt.Errorf("%s: %w", where, errOffset(off))
	}
	p.mu.Lock()
	over := p.over
	if !over {
		p.size = max(p.size, off+int64(len(b)))
	}
	p.mu.Unlock()
	if over {
		return 0, &fs.PathError{Op: "write", Path: where, Err: fs.ErrClosed}
	}
	n, err := p.file.WriteAt(b, off)
	if err != nil {
		return n, fmt.Errorf("%s: temporary file in %s: %w", where, os.TempDir(), withoutPath(err))
	}
	return n, nil
}

func (p *pendingS3) ReadAt(b []byte, off int64) (int, error) {
	n, err := p.file.ReadAt(b, off)
	if err != nil && err != io.EOF {
		err = fmt.Errorf("%s: temporary file in %s: %w", p.store.Location(p.key), os.TempDir(), withoutPath(err))
	}
	return n, err
}

// begin ends the writing; it returns true for the first call.
func (p *pendingS3) begin() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	first := !p.over
	p.over = true
	return first
}

func (p *pendingS3) ended() error {
	return &fs.PathError{Op: "commit", Path: p.store.Location(p.key), Err: fs.ErrClosed}
}

func (p *pendingS3) Commit() error {
	if !p.begin() {
		return p.ended()
	}
	return p.send(p.ctx)
}

// send uploads the file and closes it.
func (p *pendingS3) send(ctx context.Context) error {
	return errors.Join(p.store.upload(ctx, p.key, p.file, p.size), p.file.Close())
}

func (p *pendingS3) Abort() error {
	if !p.begin() {
		return nil
	}
	return p.file.Close()
}

// withoutPath removes the name of a temporary file, which the user does not know, from an error.
func withoutPath(err error) error {
	var e *fs.PathError
	if errors.As(err, &e) {
		return e.Err
	}
	return err
}

// joined presents several slices as one io.ReaderAt.
type joined [][]byte

// ReadAt reads across the slices.
func (j joined) ReadAt(p []byte, off int64) (n int, err error) {
	for _, part := range j {
		if off >= int64(len(part)) {
			off -= int64(len(part))
			continue
		}
		n += copy(p[n:], part[off:])
		off = 0
		if n == len(p) {
			return n, nil
		}
	}
	return n, io.EOF
}
