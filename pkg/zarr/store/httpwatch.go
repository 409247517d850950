package store

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"time"

	"strata/pkg/units"
)

// patience limits how long a server may keep a request waiting.
type patience struct {
	idle time.Duration // the longest silence, and the time over which rate is measured
	rate int64         // the least bytes per second of a body; 0: any
}

// watchful is a transport that aborts a request whose server is silent or too slow, in either direction. Time
// that the caller spends between two reads of an answer does not count.
type watchful struct {
	next http.RoundTripper
	patience
}

// RoundTrip sends a request. It watches the transfer of the request's body and, until that is closed, of the answer's.
func (t *watchful) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(req.Context())
	w := watch{patience: t.patience, ctx: ctx, cancel: cancel}
	w.timer = time.AfterFunc(t.idle, func() { cancel(fmt.Errorf("the server sent nothing for %v", t.idle)) })
	req = req.WithContext(ctx)
	if req.Body != nil && req.Body != http.NoBody {
		req.Body = &sent{body: req.Body, watch: w}
	}
	resp, err := t.next.RoundTrip(req)
	if err != nil {
		return nil, w.end(err)
	}
	w.timer.Stop()
	resp.Body = &received{body: resp.Body, watch: w}
	return resp, nil
}

// CloseIdleConnections closes the idle connections of the transport below, for [http.Client.CloseIdleConnections].
func (t *watchful) CloseIdleConnections() { closeIdle(t.next) }

func closeIdle(t http.RoundTripper) {
	if c, ok := t.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

// watch observes one direction of a request.
type watch struct {
	patience
	ctx    context.Context
	cancel context.CancelCauseFunc
	timer  *time.Timer // fires after a silence

	waited time.Duration // in this window
	moved  int64
}

// end ends the watch and returns the reason of a failed transfer.
func (w *watch) end(err error) error {
	w.timer.Stop()
	if cause := context.Cause(w.ctx); cause != nil {
		err = cause
	}
	w.cancel(nil)
	return err
}

// count records n bytes and their time, and aborts the request if the current window was too slow.
func (w *watch) count(n int, took time.Duration, did string) {
	w.moved += int64(n)
	if w.waited += took; w.waited < w.idle || w.rate == 0 {
		return
	}
	if float64(w.moved) < float64(w.rate)*w.waited.Seconds() {
		w.cancel(fmt.Errorf("the server %s only %d bytes in %v, less than %s a second (--http_min_rate)",
			did, w.moved, w.waited.Round(time.Millisecond), units.FormatSize(w.rate)))
	}
	w.waited, w.moved = 0, 0
}

// received is the body of an answer.
type received struct {
	body io.ReadCloser
	watch
}

func (b *received) Read(p []byte) (int, error) {
	b.timer.Reset(b.idle)
	began := time.Now()
	n, err := b.body.Read(p)
	b.timer.Stop()
	b.count(n, time.Since(began), "sent")
	if err != nil && err != io.EOF {
		if cause := context.Cause(b.ctx); cause != nil {
			err = cause
		}
	}
	return n, err
}

func (b *received) Close() error {
	b.end(nil)
	return b.body.Close()
}

// sent is the body of a request. The transport reads more of it when the server has taken the bytes before.
type sent struct {
	body io.ReadCloser
	watch
	last time.Time // when the transport was given the bytes before
	had  int
}

func (b *sent) Read(p []byte) (int, error) {
	b.timer.Reset(b.idle)
	if now := time.Now(); !b.last.IsZero() {
		b.count(b.had, now.Sub(b.last), "took")
	}
	n, err := b.body.Read(p)
	b.had, b.last = n, time.Now()
	return n, err
}

func (b *sent) Close() error { return b.body.Close() }
