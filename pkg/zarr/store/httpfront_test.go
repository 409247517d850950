package store

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

// What a server says about the beginning of an object is used only if it fits what it says about its end.
func TestStart(t *testing.T) {
	data := content("object", 3*FrontPart+1000)
	isFront := func(r *http.Request) bool { return strings.HasPrefix(r.Header.Get("Range"), "bytes=0-") }
	var mu sync.Mutex
	fronts := 0
	first := func(r *http.Request) bool { // the first request for the beginning, not the one that replaces it
		mu.Lock()
		defer mu.Unlock()
		if isFront(r) {
			fronts++
		}
		return isFront(r) && fronts == 1
	}
	for name, c := range map[string]struct {
		odd  http.HandlerFunc // how it answers for the first part
		size int              // of the object
		more int              // requests for the beginning after that
	}{
		"well":      {nil, len(data), 0},
		"failing":   {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) }, len(data), 1},
		"no ranges": {func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(data) }, len(data), 1},
		"cut":       {cutAfter(data, 700), len(data), 1},
		"elsewhere": {func(w http.ResponseWriter, r *http.Request) {
			r.Header.Set("Range", "bytes=5-99")
			honest(data)(w, r)
		}, len(data), 1},
		"longer": {func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Range", fmt.Sprintf("bytes 0-%d/%d", FrontPart-1, len(data)+1))
			w.WriteHeader(http.StatusPartialContent)
			_, _ = w.Write(make([]byte, FrontPart))
		}, len(data), 1},
		"short object": {nil, FrontPart / 2, 0},
	} {
		t.Run(name, func(t *testing.T) {
			fronts = 0
			want := data[:c.size]
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if first(r) && c.odd != nil {
					c.odd(w, r)
					return
				}
				honest(want)(w, r)
			}))
			defer server.Close()
			st := HTTP(server.URL, Retry(2, time.Millisecond))
			defer st.Close()
			memory := make([]byte, 2*FrontPart)
			o, err := st.Start(context.Background(), "key", memory)
			if err != nil {
				t.Fatal(err)
			}
			defer o.Close()
			got := make([]byte, c.size)
			for off := 0; off < c.size; off += 100_000 {
				end := min(off+100_000, c.size)
				if n, err := o.ReadAt(context.Background(), got[off:end], int64(off)); n != end-off {
					t.Fatalf("%d bytes at %d: %v", n, off, err)
				}
			}
			if !bytes.Equal(got, want) {
				t.Error("other bytes")
			}
			if fronts != 1+c.more {
				t.Errorf("%d requests for the beginning, want %d", fronts, 1+c.more)
			}
			for range 2 {
				if err := o.Finish(); err != nil {
					t.Error(err)
				}
			}
			clear(memory) // it is the caller's again
			if n, err := o.ReadAt(context.Background(), got[:10], 3); n != 10 || !bytes.Equal(got[:10], want[3:13]) {
				t.Errorf("after the end: %d bytes, %v", n, err)
			}
		})
	}
}

// An object that changes between two answers is not put together from both; one that is absent is not an object.
func TestStartOfOtherVersions(t *testing.T) {
	data := content("object", 2*FrontPart)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("ETag", `"one"`)
		if strings.HasPrefix(r.Header.Get("Range"), "bytes=-") {
			w.Header().Set("ETag", `"two"`)
		}
		if r.URL.Path == "/absent" {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(data))
	}))
	defer server.Close()
	st := HTTP(server.URL, Retry(2, time.Millisecond))
	defer st.Close()
	o, err := st.Start(context.Background(), "key", make([]byte, FrontPart))
	if err != nil {
		t.Fatal(err)
	}
	defer o.Close()
	if _, err := o.ReadAt(context.Background(), make([]byte, 10), 0); err == nil || !strings.Contains(err.Error(), ErrChanged.Error()) {
		t.Errorf("changed: %v", err)
	}
	if err := o.Finish(); err != nil {
		t.Error(err)
	}
	for key, want := range map[string]string{"absent": "not exist", "../x": "invalid key"} {
		if _, err := st.Start(context.Background(), key, make([]byte, FrontPart)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", key, err)
		}
	}
}
