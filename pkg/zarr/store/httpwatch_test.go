package store

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"strata/pkg/settings"
	"strata/tests/s3emu"
)

// impatient gives a server little time.
func impatient(rate int64) HTTPOption {
	return func(s *HTTPStore) {
		Settings(settings.HTTP{Attempts: 2, Timeout: 200 * time.Millisecond, MinRate: rate})(s)
		s.pause = time.Millisecond
	}
}

// trickle sends a byte now and then, n of them or without end.
func trickle(n int) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		for i := 0; (n < 0 || i < n) && r.Context().Err() == nil; i++ {
			_, _ = w.Write([]byte("x"))
			_ = http.NewResponseController(w).Flush()
			time.Sleep(5 * time.Millisecond)
		}
	}
}

// A server that sends a byte now and then is given up, unless it is allowed to.
func TestHTTPSlowServers(t *testing.T) {
	ctx, cancel := context.WithTimeout(bg, time.Minute)
	defer cancel()
	s := serve(t, trickle(-1))
	_, err := s.store(t, impatient(1<<20)).Get(ctx, "c/0", nil, -1)
	if !errors.Is(err, ErrUnavailable) || !strings.Contains(err.Error(), "tried 2 times: the server sent only ") || !strings.Contains(err.Error(), "less than 1 MiB a second (--http_min_rate)") {
		t.Errorf("%v", err)
	}
	if s.count() != 2 {
		t.Errorf("%d requests", s.count())
	}
	s = serve(t, trickle(100)) // two windows and a half
	if got, err := s.store(t, impatient(0)).Get(ctx, "c/0", nil, -1); err != nil || len(got) != 100 {
		t.Errorf("any rate: %d bytes, %v", len(got), err)
	}
}

// slowly is a body that the server takes slowly: what is read of it is handed on late.
type slowly struct {
	http.RoundTripper
	bytes int
}

func (s *slowly) RoundTrip(req *http.Request) (*http.Response, error) {
	p := make([]byte, 1)
	for {
		if err := req.Context().Err(); err != nil {
			return nil, err
		}
		if _, err := req.Body.Read(p); err == io.EOF {
			return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: http.NoBody, Request: req}, nil
		}
		s.bytes++
		time.Sleep(5 * time.Millisecond)
	}
}

// The same for one that takes what is sent to it as slowly.
func TestHTTPServersThatTakeSlowly(t *testing.T) {
	for rate, want := range map[int64]string{1 << 20: "the server took only ", 0: ""} {
		s := &slowly{}
		c := http.Client{Transport: &watchful{s, patience{100 * time.Millisecond, rate}}}
		r, err := c.Post("http://host/x", "", bytes.NewReader(make([]byte, 50)))
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%d bytes a second: %v, want %q", rate, err, want)
		}
		if err == nil {
			r.Body.Close()
		}
	}
}

// Requests of the protocol's library are given up as others are: a server that takes an object and
// never answers ends the upload.
func TestS3SilentServers(t *testing.T) {
	server := s3emu.Start(t)
	server.Use(t)
	endpoint := between(t, server, func(_ http.ResponseWriter, r *http.Request) bool {
		neverAnswer(r)
		return true
	})
	s := newS3(t, "s3://"+s3emu.Bucket+"/silent?endpoint="+endpoint, impatient(0))
	ctx, cancel := context.WithTimeout(bg, time.Minute)
	defer cancel()
	for name, err := range map[string]error{
		"Put":    s.Put(ctx, "a", []byte("x")),
		"Delete": s.Delete(ctx, "a"),
		"List":   func() error { _, err := s.List(ctx, ""); return err }(),
	} {
		if !errors.Is(err, ErrUnavailable) || !strings.Contains(err.Error(), "the server sent nothing for 200ms") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The header of an answer has an end.
func TestHTTPEndlessHeader(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		c, out, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer c.Close()
		_, _ = out.WriteString("HTTP/1.1 200 OK\r\n")
		for line := []byte("X-More: " + strings.Repeat("x", 1000) + "\r\n"); err == nil; {
			_, err = out.Write(line)
		}
	})
	ctx, cancel := context.WithTimeout(bg, time.Minute)
	defer cancel()
	if _, err := s.store(t, Retry(1, 0)).Get(ctx, "c/0", nil, -1); err == nil || !strings.Contains(err.Error(), "server response headers exceeded 262144 bytes") {
		t.Errorf("%v", err)
	}
}

// The rest of an answer that nobody needs is not waited for.
func TestHTTPErrorsWithoutEnd(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusNotFound)
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	})
	ctx, cancel := context.WithTimeout(bg, 20*time.Second) // less than the server may be silent
	defer cancel()
	if _, err := s.store(t).Get(ctx, "c/0", nil, -1); err == nil || ctx.Err() != nil {
		t.Errorf("%v", err)
	}
}
