package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"strata/pkg/address"
	"strata/pkg/settings"
)

// HTTPStore reads objects by HTTP requests (RFC 9110), parts of them by range requests. An object's address
// is the store's address, a slash and the key.
//
// Transient failures are retried with growing, random pauses that respect Retry-After: refused and cut connections,
// time-outs, and statuses 408, 429 and 5xx (or others: [Settings]). An interrupted transfer resumes where it stopped.
// Statuses 404 and 410 (or others: [Settings]) mean fs.ErrNotExist, 401 and 403 fs.ErrPermission. An object that the
// server sends compressed, though nobody asked for that, is read as it was; parts of it cannot be read.
type HTTPStore struct {
	base    string // scheme, host and path, ending in "/"
	shown   string // base in messages, where that is another; without a slash at its end
	encode  func(key string) string
	query   string // "" or "?" and what the address had
	header  http.Header
	client  *http.Client
	tries   int
	pause   time.Duration
	again   func(status int) bool // a request is sent again after such an answer
	missing func(status int) bool // such an answer means that there is no object
	patience

	requests int
	queue    int64
	fleeting *atomic.Bool // the server ends connections after an answer
}

var _ Distant = (*HTTPStore)(nil)

// HTTPOption configures an [HTTPStore].
type HTTPOption func(*HTTPStore)

// Client makes the store use a copy of c. The default client keeps up to 64 connections open and obeys the
// proxy variables of the environment. Redirects are followed, except from https to http, unless c has a
// policy of its own.
func Client(c *http.Client) HTTPOption { return func(s *HTTPStore) { s.client = c } }

// Header adds a header field, for instance Authorization, to every request.
func Header(name, value string) HTTPOption { return func(s *HTTPStore) { s.header.Add(name, value) } }

// Retry sets how often a request is tried (default 6) and the pause before the first retry (default 200 ms).
// The pause doubles each time, up to 10 s.
func Retry(tries int, pause time.Duration) HTTPOption {
	return func(s *HTTPStore) { s.tries, s.pause = max(tries, 1), pause }
}

// IdleTimeout sets how long a server may send nothing before the request fails (default 60 s).
func IdleTimeout(d time.Duration) HTTPOption { return func(s *HTTPStore) { s.idle = d } }

// Settings sets the number of tries, the answers that are retried, and the server's time-out and minimum
// rate.
func Settings(h settings.HTTP) HTTPOption {
	return func(s *HTTPStore) {
		s.tries, s.again, s.patience = max(h.Attempts, 1), h.Again, patience{h.Timeout, h.MinRate}
		s.missing = func(status int) bool { return h.Missing(status) && counted(status) }
	}
}

// denied counts the answers 401 and 403 that [Settings] made absent objects.
var denied atomic.Int64

// Denied returns how many objects counted as absent in this process because a server denied access to them.
func Denied() int64 { return denied.Load() }

// counted counts an answer that means an absent object.
func counted(status int) bool {
	if status == http.StatusUnauthorized || status == http.StatusForbidden {
		denied.Add(1)
	}
	return true
}

// AtOnce sets how many requests users of the store should have in flight (default 64). For a server that
// closes each connection after its answer the maximum is 4, since connections that it cannot accept at once
// wait for seconds.
func AtOnce(requests int) HTTPOption { return func(s *HTTPStore) { s.requests = max(requests, 1) } }

// Queue sets how many bytes of small objects an [S3Upload] may have in flight (default [QueueBytes]).
func Queue(bytes int64) HTTPOption { return func(s *HTTPStore) { s.queue = bytes } }

// Requests returns the limit set by [AtOnce], lowered if the server closes its connections.
func (s *HTTPStore) Requests() int {
	if s.fleeting.Load() {
		return min(s.requests, fleetingRequests)
	}
	return s.requests
}

// fleetingRequests is the maximum number of requests in flight to a server that closes each connection: the smallest
// servers queue 5 connections.
const fleetingRequests = 4

const (
	maxPause      = 10 * time.Second
	maxRetryAfter = 2 * time.Minute // a server that asks for more is down for a batch job
	// maxHeader is the most bytes of an answer's header, of which there may be 64 at a time.
	maxHeader = 256 << 10
)

// HTTP returns the store at an http or https address. It sends no request; a wrong address shows at the first
// use.
func HTTP(at string, opts ...HTTPOption) *HTTPStore {
	s := &HTTPStore{base: at, encode: escapePath, header: http.Header{}, pause: 200 * time.Millisecond, requests: 64, queue: QueueBytes, fleeting: new(atomic.Bool)}
	Settings(settings.DefaultHTTP())(s)
	if u, err := url.Parse(at); err == nil {
		u.Fragment = ""
		if u.RawQuery != "" {
			s.query = "?" + u.RawQuery
			u.RawQuery = ""
		}
		s.base = u.String()
	}
	s.base = strings.TrimRight(s.base, "/") + "/"
	if shown := address.Address(s.base).String(); shown != s.base {
		s.shown = strings.TrimRight(shown, "/")
	}
	for _, o := range opts {
		o(s)
	}
	client := http.Client{}
	if s.client != nil {
		client = *s.client
	} else {
		t := http.DefaultTransport.(*http.Transport).Clone()
		t.MaxIdleConnsPerHost = 64
		t.MaxResponseHeaderBytes = maxHeader
		t.DisableCompression = true // offsets and sizes are those of the stored bytes
		client.Transport = t
	}
	if client.Transport == nil {
		client.Transport = http.DefaultTransport
	}
	if client.CheckRedirect == nil {
		client.CheckRedirect = s.follow
	}
	client.Transport = &watchful{client.Transport, s.patience}
	s.client = &client
	return s
}

// Location returns key's address without parts that may be secret: a password or a query.
func (s *HTTPStore) Location(key string) string {
	switch {
	case s.shown == "":
		return s.address(key)
	case key == "":
		return s.shown
	}
	return s.shown + "/" + key
}

// address returns key's full address.
func (s *HTTPStore) address(key string) string {
	if key == "" {
		return strings.TrimSuffix(s.base, "/")
	}
	if !strings.ContainsFunc(key, needsEscape) {
		return s.base + key
	}
	return s.base + s.encode(key)
}

func escapePath(key string) string {
	segments := strings.Split(key, "/")
	for i, seg := range segments {
		segments[i] = url.PathEscape(seg)
	}
	return strings.Join(segments, "/")
}

func needsEscape(r rune) bool {
	return !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || r == '/' || r == '.' || r == '-' || r == '_')
}

// Close closes idle connections.
func (s *HTTPStore) Close() error {
	s.client.CloseIdleConnections()
	return nil
}

// List returns errors.ErrUnsupported: HTTP has no request for listings.
func (s *HTTPStore) List(_ context.Context, prefix string) ([]Entry, error) {
	if err := checkPrefix(prefix); err != nil {
		return nil, fmt.Errorf("%s: %w", s.Location(""), err)
	}
	return nil, fmt.Errorf("%s: a web server does not list its objects: %w", s.Location(prefix), errors.ErrUnsupported)
}

// Get reads a whole object; see [Store].
func (s *HTTPStore) Get(ctx context.Context, key string, dst []byte, limit int64) ([]byte, error) {
	if err := checkKey(key); err != nil {
		return nil, fmt.Errorf("%s: %w", s.Location(""), err)
	}
	if dst == nil {
		dst = []byte{}
	}
	g := &whole{dst: dst[:0], limit: limit}
	if err := s.retry(ctx, key, func(ctx context.Context) (bool, error) { return s.getOnce(ctx, key, g) }); err != nil {
		return nil, err
	}
	return g.dst, nil
}

// whole is a Get in progress: the bytes received, and the version of the object that they come from.
type whole struct {
	dst     []byte
	limit   int64
	version version
	size    int64 // of the object, -1 while unknown
}

func (s *HTTPStore) getOnce(ctx context.Context, key string, g *whole) (progress bool, err error) {
	header := http.Header{}
	if len(g.dst) > 0 && g.version.strong() {
		header.Set("Range", fmt.Sprintf("bytes=%d-", len(g.dst)))
		header.Set("If-Range", g.version.condition())
	}
	r, err := s.answer(ctx, http.MethodGet, s.address(key)+s.query, header)
	if err != nil {
		return false, err
	}
	defer r.close()
	if err := r.expand(); err != nil {
		return false, err
	}
	switch r.StatusCode {
	case http.StatusOK: // also if the object changed: then all of the new one comes
		g.dst, g.size, g.version = g.dst[:0], r.ContentLength, versionOf(r.Header)
	case http.StatusPartialContent:
		c, err := parseContentRange(r.Header)
		if err != nil {
			return false, permanent(err)
		}
		if c.first != int64(len(g.dst)) || c.size >= 0 && g.size >= 0 && c.size != g.size {
			return false, permanent(fmt.Errorf("asked for bytes from %d of %d, the server sends %v", len(g.dst), g.size, c))
		}
	default:
		return false, r.failure()
	}
	if g.limit >= 0 && g.size > g.limit {
		return false, permanent(fmt.Errorf("%w: %d bytes, at most %d expected", ErrTooLarge, g.size, g.limit))
	}
	had := len(g.dst)
	err = g.read(r)
	return len(g.dst)-had >= goodProgress, err
}

// read appends the body. Memory grows with what arrives, not with what a header promises.
func (g *whole) read(r *response) error {
	for int64(len(g.dst)) != g.size {
		if len(g.dst) == cap(g.dst) {
			grow := max(len(g.dst), 64<<10)
			if g.size >= 0 {
				grow = int(min(g.size-int64(len(g.dst)), int64(max(grow, 64<<20))))
			}
			if g.limit >= 0 { // one byte more tells that it is too large
				grow = int(min(int64(grow), g.limit+1-int64(len(g.dst))))
			}
			g.dst = append(make([]byte, 0, len(g.dst)+grow), g.dst...)
		}
		room := g.dst[len(g.dst):cap(g.dst)]
		if g.size >= 0 {
			room = room[:min(int64(len(room)), g.size-int64(len(g.dst)))]
		}
		n, err := r.Body.Read(room)
		g.dst = g.dst[:len(g.dst)+n]
		if g.limit >= 0 && int64(len(g.dst)) > g.limit {
			return permanent(fmt.Errorf("%w: more than the %d bytes expected", ErrTooLarge, g.limit))
		}
		switch {
		case err == io.EOF && int64(len(g.dst)) < g.size:
			return io.ErrUnexpectedEOF
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		}
	}
	return nil
}
