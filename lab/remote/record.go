package main

import (
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"
)

// record holds the requests that a server got.
type record struct {
	mu   sync.Mutex
	list []*request
}

// request is one of them; answered and ended are zero while it waits and while its answer is sent.
type request struct {
	arrived, answered, ended time.Time
	wait                     int
	what                     string
}

// arrived adds a request. The caller calls answered when the answer begins, and what that returns at its end.
func (l *record) arrived(r *http.Request) (answered func() (ended func())) {
	q := &request{arrived: time.Now(), wait: 1, what: r.Method + " " + r.URL.Path + " " + r.Header.Get("Range")}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, before := range l.list {
		if !before.answered.IsZero() {
			q.wait = max(q.wait, before.wait+1)
		}
	}
	l.list = append(l.list, q)
	at := func(t *time.Time) {
		l.mu.Lock()
		defer l.mu.Unlock()
		*t = time.Now()
	}
	return func() func() {
		at(&q.answered)
		return func() { at(&q.ended) }
	}
}

// print writes a line for each request.
func (l *record) print(w io.Writer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, q := range l.list {
		since := func(t time.Time) float64 { return max(t.Sub(l.list[0].arrived).Seconds()*1e3, 0) }
		fmt.Fprintf(w, "%8.1f %8.1f %8.1f %3d %s\n", since(q.arrived), since(q.answered), since(q.ended), q.wait, q.what)
	}
}
