package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"sync"
	"sync/atomic"
)

// tailSize is the length of an object's end that Open fetches with its size: it holds the index of a shard or
// the directory of a zip file.
const tailSize = 64 << 10

// maxSkip is the maximum number of bytes read and discarded from a server that sends only whole objects.
const maxSkip = 64 << 20

// httpObject is an object of an HTTPStore.
type httpObject struct {
	store  *HTTPStore
	key    string
	size   int64
	tail   []byte // the last bytes, as they were at Open
	closed atomic.Bool

	mu      sync.Mutex
	unseen  bool    // no answer has said yet what is there
	version version // of what is there

	ranges ranges
	front  *front // nil: it was not read while the object was opened
}

// Open requests the object's size and its last 64 KiB; see [Store].
func (s *HTTPStore) Open(ctx context.Context, key string) (Object, error) {
	if err := checkKey(key); err != nil {
		return nil, fmt.Errorf("%s: %w", s.Location(""), err)
	}
	var o *httpObject
	err := s.retry(ctx, key, func(ctx context.Context) (_ bool, err error) {
		o, err = s.openOnce(ctx, key)
		return false, err
	})
	if err != nil {
		return nil, err
	}
	return o, nil
}

func (s *HTTPStore) openOnce(ctx context.Context, key string) (*httpObject, error) {
	r, err := s.send(ctx, http.MethodGet, key, http.Header{"Range": {fmt.Sprintf("bytes=-%d", tailSize)}})
	if err != nil {
		return nil, err
	}
	defer r.close()
	o := &httpObject{store: s, key: key, size: -1, version: versionOf(r.Header)}
	switch r.StatusCode {
	case http.StatusPartialContent:
		c, err := parseContentRange(r.Header)
		if err != nil || c.size < 0 { // Go's server says "bytes 0--1/0" for an empty object
			return s.head(ctx, key)
		}
		if c.last != c.size-1 || c.last-c.first >= tailSize {
			return nil, permanent(fmt.Errorf("asked for the last %d bytes, the server sends %v", tailSize, c))
		}
		o.size = c.size
		o.tail = make([]byte, c.last-c.first+1)
		if _, err := io.ReadFull(r.Body, o.tail); err != nil {
			return nil, cut(err)
		}
	case http.StatusOK: // no ranges, or not from the end; or the object is empty
		if o.size = r.ContentLength; o.size < 0 {
			return s.head(ctx, key)
		}
		if o.size <= tailSize {
			o.tail = make([]byte, o.size)
			if _, err := io.ReadFull(r.Body, o.tail); err != nil {
				return nil, cut(err)
			}
		}
	case http.StatusRequestedRangeNotSatisfiable: // the object is empty, or the server knows no such range
		if r.Header.Get("Content-Range") == "bytes */0" {
			o.size = 0
			return o, nil
		}
		return s.head(ctx, key)
	case http.StatusBadRequest, http.StatusNotImplemented:
		return s.head(ctx, key)
	default:
		return nil, r.failure()
	}
	return o, nil
}

// Expect prepares reads without a request; see [Expecter].
func (s *HTTPStore) Expect(_ context.Context, key string, size int64) (Object, error) {
	if err := checkKey(key); err != nil {
		return nil, fmt.Errorf("%s: %w", s.Location(""), err)
	}
	return &httpObject{store: s, key: key, size: size, unseen: true}, nil
}

// head requests the size from a server that does not give it with a range.
func (s *HTTPStore) head(ctx context.Context, key string) (*httpObject, error) {
	r, err := s.send(ctx, http.MethodHead, key, nil)
	if err != nil {
		return nil, err
	}
	defer r.close()
	if r.StatusCode != http.StatusOK {
		return nil, r.failure()
	}
	if r.ContentLength < 0 {
		return nil, permanent(errors.New("the server does not tell the object's size"))
	}
	return &httpObject{store: s, key: key, size: r.ContentLength, version: versionOf(r.Header)}, nil
}

func (o *httpObject) Size() int64 { return o.size }

func (o *httpObject) Close() error {
	o.closed.Store(true)
	return nil
}

func (o *httpObject) ReadAt(ctx context.Context, p []byte, off int64) (int, error) {
	where := o.store.Location(o.key)
	if o.closed.Load() {
		return 0, &fs.PathError{Op: "read", Path: where, Err: fs.ErrClosed}
	}
	want, eof, err := clampRange(len(p), off, o.size)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", where, err)
	}
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	if want == 0 {
		return 0, eof
	}
	p = p[:want]
	// what Open brought need not be asked for
	if known := o.size - int64(len(o.tail)); off >= known {
		return copy(p, o.tail[min(off, o.size)-known:]), eof
	}
	if o.front != nil && o.front.read(ctx, p, off) {
		return want, eof
	}
	n, err := o.read(ctx, p, off)
	if err != nil {
		return n, err
	}
	return n, eof
}

// answered checks the answer to a request for the bytes from off to end and returns the range that it
// carries.
func (o *httpObject) answered(r *response, off, end int64) (at, to int64, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	changed := o.changed
	if o.unseen {
		changed = o.unexpected
		if r.missing(r.StatusCode) {
			return 0, 0, r.failure()
		}
	}
	if r.missing(r.StatusCode) {
		return 0, 0, o.changed("it was removed")
	}
	switch r.StatusCode {
	case http.StatusPartialContent:
		c, err := parseContentRange(r.Header)
		switch {
		case err != nil:
			return 0, 0, permanent(err)
		case c.first != off:
			return 0, 0, permanent(fmt.Errorf("asked for bytes from %d, the server sends %v", off, c))
		case c.size != o.size && (c.size >= 0 || o.unseen):
			return 0, 0, changed(fmt.Sprintf("it had %d bytes and now has %d", o.size, c.size))
		}
		at, end = off, min(end, c.last+1)
	case http.StatusOK:
		switch {
		case r.ContentLength != o.size && (r.ContentLength >= 0 || o.unseen):
			return 0, 0, changed(fmt.Sprintf("it had %d bytes and now has %d", o.size, r.ContentLength))
		case off > maxSkip:
			return 0, 0, permanent(fmt.Errorf("the server ignores range requests, and reading from byte %d would transfer all before it: %w", off, errors.ErrUnsupported))
		}
	case http.StatusRequestedRangeNotSatisfiable:
		return 0, 0, changed(fmt.Sprintf("byte %d of %d is gone", off, o.size))
	default:
		return 0, 0, r.failure()
	}
	v := versionOf(r.Header)
	if o.unseen {
		o.unseen, o.version = false, v
	}
	if o.version.differs(v) {
		return 0, 0, o.changed(fmt.Sprintf("it was version %s and is %s", o.version, v))
	}
	return at, end, nil
}

func (o *httpObject) changed(how string) error {
	return permanent(fmt.Errorf("%w: %s", ErrChanged, how))
}

func (o *httpObject) unexpected(string) error {
	return permanent(fmt.Errorf("%w, %d bytes", ErrSize, o.size))
}

// cut turns an answer that ends too early into a transient error.
func cut(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}
