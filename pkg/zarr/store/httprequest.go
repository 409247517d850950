package store

import (
	"compress/gzip"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// goodProgress is the number of bytes that a request must bring for its failure not to count: large transfers
// over bad lines complete, trickles do not go on forever.
const goodProgress = 256 << 10

// permanentError is a failure that a retry would not change.
type permanentError struct{ error }

func (e permanentError) Unwrap() error { return e.error }

func permanent(err error) error { return permanentError{err} }

// unavailableError is a failure that may pass in time: [ErrUnavailable].
type unavailableError struct{ error }

func (e unavailableError) Is(target error) bool { return target == ErrUnavailable }
func (e unavailableError) Unwrap() error        { return e.error }

// busyError is a failure of a server that says when to retry.
type busyError struct {
	error
	after time.Duration
}

func (e busyError) Unwrap() error { return e.error }

// retry calls f until it succeeds, fails permanently or has failed too often, and names the object in the
// error. f reports whether it made progress.
func (s *HTTPStore) retry(ctx context.Context, key string, f func(context.Context) (bool, error)) error {
	pause := s.pause
	for try := 1; ; try++ {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("%s: %w", s.Location(key), err)
		}
		progress, err := f(ctx)
		if err == nil {
			return nil
		}
		if e := ctx.Err(); e != nil {
			return fmt.Errorf("%s: %w", s.Location(key), e)
		}
		if progress {
			try, pause = 0, s.pause
		}
		if !passing(err) {
			return fmt.Errorf("%s: %w", s.Location(key), err)
		}
		if try >= s.tries {
			return unavailableError{fmt.Errorf("%s: tried %d times: %w", s.Location(key), s.tries, err)}
		}
		wait := pause/2 + rand.N(pause/2+1)
		var busy busyError
		if errors.As(err, &busy) {
			if busy.after > maxRetryAfter {
				return unavailableError{fmt.Errorf("%s: the server asks to come back in %v: %w", s.Location(key), busy.after, err)}
			}
			wait = max(wait, busy.after)
		}
		pause = min(2*pause, maxPause)
		t := time.NewTimer(wait)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return fmt.Errorf("%s: %w (after: %w)", s.Location(key), ctx.Err(), err)
		}
	}
}

// passing reports whether the same request may succeed later.
func passing(err error) bool {
	var (
		perm permanentError
		dns  *net.DNSError
		cert *tls.CertificateVerificationError
	)
	switch {
	case errors.As(err, &perm), errors.As(err, &cert):
		return false
	case errors.As(err, &dns):
		return !dns.IsNotFound
	}
	return true
}

// response is an answer; the caller closes it with close.
type response struct {
	*http.Response
	again   func(status int) bool
	missing func(status int) bool
	cancel  context.CancelFunc
}

// send sends one request for an object.
func (s *HTTPStore) send(ctx context.Context, method, key string, header http.Header) (*response, error) {
	return s.request(ctx, method, s.address(key)+s.query, header)
}

// request sends one request. It refuses an answer in a form that was not asked for.
func (s *HTTPStore) request(ctx context.Context, method, address string, header http.Header) (*response, error) {
	r, err := s.answer(ctx, method, address, header)
	if err == nil && r.encoded() != "" {
		r.close()
		return nil, r.unasked()
	}
	return r, err
}

// answer sends one request.
func (s *HTTPStore) answer(ctx context.Context, method, address string, header http.Header) (*response, error) {
	ctx, cancel := context.WithCancel(ctx)
	fail := func(err error) (*response, error) {
		cancel()
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, method, address, nil)
	if err != nil {
		return fail(permanent(withoutURL(err)))
	}
	if u := req.URL; u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return fail(permanent(errors.New("not an http or https address with a host")))
	}
	for _, h := range []http.Header{s.header, header} {
		for name, values := range h {
			req.Header[name] = append(req.Header[name], values...)
		}
	}
	req.Header.Set("Accept-Encoding", "identity")
	resp, err := s.client.Do(req)
	if err != nil {
		if cause := context.Cause(ctx); cause != nil {
			return fail(cause)
		}
		if errors.Is(err, http.ErrSchemeMismatch) || resp != nil { // an answer that is not followed
			err = permanent(withoutURL(err))
		}
		return fail(withoutURL(err))
	}
	if resp.Close || !resp.ProtoAtLeast(1, 1) {
		s.fleeting.Store(true)
	}
	return &response{Response: resp, again: s.again, missing: s.missing, cancel: cancel}, nil
}

// encoded returns the encoding in which an object comes, "" if it comes as it is.
func (r *response) encoded() string {
	e := r.Header.Get("Content-Encoding")
	if e == "identity" || r.StatusCode >= 300 {
		return ""
	}
	return e
}

func (r *response) unasked() error {
	return permanent(fmt.Errorf("the server sends the object with Content-Encoding %s, which was not asked for", foreign(r.encoded())))
}

// expand decompresses the body of a whole object that the server has compressed by gzip unasked. It drops the answer's
// size, which is that of the compressed form, and its version, by which parts of that form would be requested.
func (r *response) expand() error {
	switch e := r.encoded(); {
	case e == "":
		return nil
	case e != "gzip" && e != "x-gzip" || r.StatusCode != http.StatusOK:
		return r.unasked()
	}
	z, err := gzip.NewReader(r.Body)
	switch {
	case errors.Is(err, gzip.ErrHeader) || errors.Is(err, io.EOF):
		return permanent(fmt.Errorf("the server sends the object with Content-Encoding gzip, which was not asked for and which it has not: %w", err))
	case err != nil:
		return err
	}
	r.Body = &expanded{z, r.Body}
	r.ContentLength = -1
	r.Header.Del("ETag")
	r.Header.Del("Last-Modified")
	return nil
}

// expanded reads the content of a compressed body.
type expanded struct {
	*gzip.Reader
	body io.Closer
}

// Close ends the transfer.
func (x *expanded) Close() error { return errors.Join(x.Reader.Close(), x.body.Close()) }

// withoutURL removes the address from an error of net/http: the caller names it, without the query. The rest
// may quote the server.
func withoutURL(err error) error {
	var e *url.Error
	if errors.As(err, &e) {
		return foreignError{e.Err}
	}
	return err
}

// drainTime is the maximum time for reading the unneeded rest of an answer.
const drainTime = time.Second

// close ends the transfer. It reads a short rest so that the connection can be reused.
func (r *response) close() {
	late := time.AfterFunc(drainTime, r.cancel)
	_, _ = io.CopyN(io.Discard, r.Body, 4<<10) // if not, there will be another connection
	late.Stop()
	r.Body.Close()
	r.cancel()
}

// failure returns the error that a status means.
func (r *response) failure() error {
	err := fmt.Errorf("the server answers %s", foreign(r.Status))
	switch {
	case r.missing(r.StatusCode):
		err = fmt.Errorf("%w: %w", err, fs.ErrNotExist)
	case r.StatusCode == http.StatusUnauthorized || r.StatusCode == http.StatusForbidden:
		err = fmt.Errorf("%w: %w (some object stores answer so for an absent object when listing is not allowed: --http_absent_codes 403,404 takes it so)", err, fs.ErrPermission)
	}
	if r.again(r.StatusCode) {
		return busyError{err, retryAfter(r.Header.Get("Retry-After"), time.Now())}
	}
	return permanent(err)
}

// retryAfter returns the pause that a Retry-After field demands (RFC 9110 10.2.3), in seconds or as a date.
func retryAfter(field string, now time.Time) time.Duration {
	if n, err := strconv.ParseUint(field, 10, 31); err == nil {
		return time.Duration(n) * time.Second
	}
	if t, err := http.ParseTime(field); err == nil {
		return max(t.Sub(now), 0)
	}
	return 0
}

// version identifies an object's content by the validators that the server sends.
type version struct{ etag, modified string }

func versionOf(h http.Header) version { return version{h.Get("ETag"), h.Get("Last-Modified")} }

func (v version) String() string { return foreign(strings.TrimSpace(v.etag + " " + v.modified)) }

// strong reports whether equal versions mean equal bytes, so that parts of two
// answers may be put together (RFC 9110 13.1.5).
func (v version) strong() bool { return v.etag != "" && !strings.HasPrefix(v.etag, "W/") }

// condition returns v as an If-Range field.
func (v version) condition() string { return v.etag }

// differs reports whether w is other content than v, as far as both have validators.
func (v version) differs(w version) bool {
	return v.etag != "" && w.etag != "" && v.etag != w.etag ||
		v.modified != "" && w.modified != "" && v.modified != w.modified
}

// contentRange is the part of an object that an answer carries.
type contentRange struct {
	first, last int64
	size        int64 // of the object, -1 when unknown
}

func (c contentRange) String() string {
	if c.size < 0 {
		return fmt.Sprintf("bytes %d to %d", c.first, c.last)
	}
	return fmt.Sprintf("bytes %d to %d of %d", c.first, c.last, c.size)
}

// parseContentRange reads the Content-Range field of a 206 answer (RFC 9110 14.4).
func parseContentRange(h http.Header) (c contentRange, err error) {
	field := h.Get("Content-Range")
	if t := h.Get("Content-Type"); strings.HasPrefix(t, "multipart/byteranges") {
		return c, errors.New("the server sends several ranges where one was asked for")
	}
	span, size, ok := strings.Cut(strings.TrimPrefix(field, "bytes "), "/")
	first, last, ok2 := strings.Cut(span, "-")
	c.size = -1
	var errs [3]error
	c.first, errs[0] = parseSize(first)
	c.last, errs[1] = parseSize(last)
	if size != "*" {
		c.size, errs[2] = parseSize(size)
	}
	if !strings.HasPrefix(field, "bytes ") || !ok || !ok2 || errors.Join(errs[:]...) != nil ||
		c.last < c.first || c.size >= 0 && c.last >= c.size {
		return c, fmt.Errorf("the server sends part of the object with a bad Content-Range %q", field)
	}
	return c, nil
}

func parseSize(s string) (int64, error) {
	n, err := strconv.ParseUint(s, 10, 62)
	return int64(n), err
}
