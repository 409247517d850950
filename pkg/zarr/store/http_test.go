package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"strata/pkg/settings"
)

// quick makes a store that does not wait long between tries.
func quick() HTTPOption { return Retry(4, time.Millisecond) }

// fileServer serves the files of dir, with entity tags, without listings.
func fileServer(dir string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		serveFile(w, r, filepath.Join(dir, r.URL.Path))
	})
}

// oneFile serves one file under every name.
func oneFile(path string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { serveFile(w, r, path) })
}

func serveFile(w http.ResponseWriter, r *http.Request, path string) {
	f, err := os.Open(path)
	if err == nil {
		defer f.Close()
		var info fs.FileInfo
		if info, err = f.Stat(); err == nil && info.IsDir() {
			err = fs.ErrNotExist
		}
		if err == nil {
			w.Header().Set("ETag", fmt.Sprintf(`"%d-%d"`, info.Size(), info.ModTime().UnixNano()))
			http.ServeContent(w, r, "x.bin", info.ModTime(), f)
			return
		}
	}
	http.Error(w, err.Error(), http.StatusNotFound)
}

// scripted is a server whose first answers follow a script; later ones are an
// honest server's.
type scripted struct {
	*httptest.Server
	mu       sync.Mutex
	script   []http.HandlerFunc
	requests []*http.Request
	conns    atomic.Int64
}

const tag = `"v1"`

func honest(data []byte) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("ETag", tag)
		http.ServeContent(w, r, "x.bin", time.Time{}, bytes.NewReader(data))
	}
}

func serve(t testing.TB, then http.HandlerFunc, script ...http.HandlerFunc) *scripted {
	s := &scripted{script: script}
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		n := len(s.requests)
		s.requests = append(s.requests, r)
		s.mu.Unlock()
		if n < len(s.script) {
			s.script[n](w, r)
		} else {
			then(w, r)
		}
	}))
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			s.conns.Add(1)
		}
	}
	s.Start()
	t.Cleanup(s.Server.Close)
	return s
}

func (s *scripted) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.requests)
}

func (s *scripted) header(i int, name string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.requests[i].Header.Get(name)
}

func (s *scripted) store(t testing.TB, opts ...HTTPOption) *HTTPStore {
	st := HTTP(s.URL, append([]HTTPOption{quick()}, opts...)...)
	t.Cleanup(func() { st.Close() })
	return st
}

func status(code int, header ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.WriteHeader(code)
	}
}

// cutAfter announces all of data (or of the range asked for) and breaks the
// connection after n bytes.
func cutAfter(data []byte, n int) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		honest(data)(&cutter{ResponseWriter: w, left: n}, r)
		panic(http.ErrAbortHandler)
	}
}

type cutter struct {
	http.ResponseWriter
	left int
}

func (c *cutter) Write(p []byte) (int, error) {
	n, err := c.ResponseWriter.Write(p[:min(len(p), c.left)])
	c.left -= n
	c.ResponseWriter.(http.Flusher).Flush()
	if err == nil && n < len(p) {
		err = errors.New("cut")
	}
	return n, err
}

// hang sends nothing until the client gives up.
func hang(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }

var object = content("object", 1<<20)

// TestHTTPGoesOn: faults that pass do not show, neither in Get nor in parts.
func TestHTTPGoesOn(t *testing.T) {
	drop := func(w http.ResponseWriter, _ *http.Request) { panic(http.ErrAbortHandler) }
	for name, script := range map[string][]http.HandlerFunc{
		"nothing":     nil,
		"503":         {status(503), status(503, "Retry-After", "0")},
		"429":         {status(429, "Retry-After", time.Now().UTC().Add(-time.Minute).Format(http.TimeFormat))},
		"502 408":     {status(502), status(408), status(500)},
		"dropped":     {drop, drop},
		"cut":         {cutAfter(object, 1000), cutAfter(object, 1), cutAfter(object, 500_000)},
		"cut often":   {cutAfter(object, 300_000), cutAfter(object, 1), cutAfter(object, 300_000), cutAfter(object, 1), cutAfter(object, 300_000), cutAfter(object, 1), status(503)},
		"silent":      {hang},
		"silent half": {func(w http.ResponseWriter, r *http.Request) { honest(object)(&cutter{w, 1000}, r); hang(w, r) }},
	} {
		t.Run(name, func(t *testing.T) {
			srv := serve(t, honest(object), script...)
			st := srv.store(t, IdleTimeout(100*time.Millisecond))
			got, err := st.Get(bg, "x", nil, int64(len(object)))
			if err != nil || !bytes.Equal(got, object) {
				t.Errorf("Get: %d bytes, %v", len(got), err)
			}
			if n := srv.count(); n < len(script)+1 && name != "cut often" {
				t.Errorf("%d requests: the script was not played", n)
			}

			srv = serve(t, honest(object), append([]http.HandlerFunc{honest(object)}, script...)...)
			st = srv.store(t, IdleTimeout(100*time.Millisecond))
			o, err := st.Open(bg, "x")
			if err != nil {
				t.Fatal(err)
			}
			defer o.Close()
			p := make([]byte, 900_000)
			if n, err := o.ReadAt(bg, p, 77); n != len(p) || err != nil || !bytes.Equal(p, object[77:77+n]) {
				t.Errorf("ReadAt: %d, %v", n, err)
			}

			srv = serve(t, honest(object), script...)
			if o, err = srv.store(t, IdleTimeout(100*time.Millisecond)).Open(bg, "x"); err != nil || o.Size() != int64(len(object)) {
				t.Errorf("Open: %v", err)
			}
		})
	}
}

func TestHTTPResumesWhereItWasCut(t *testing.T) {
	srv := serve(t, honest(object), cutAfter(object, 400_000))
	if got, err := srv.store(t).Get(bg, "x", nil, -1); err != nil || !bytes.Equal(got, object) {
		t.Fatalf("%d bytes, %v", len(got), err)
	}
	if got := srv.header(1, "Range"); got != "bytes=400000-" {
		t.Errorf("Range %q of the second request", got)
	}
	if got := srv.header(1, "If-Range"); got != tag {
		t.Errorf("If-Range %q of the second request", got)
	}

	// an object that changed meanwhile comes whole, never half old and half new
	changed := content("changed", 700_000)
	srv = serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("ETag", `"v2"`)
		http.ServeContent(w, r, "x.bin", time.Time{}, bytes.NewReader(changed))
	}, cutAfter(object, 400_000))
	if got, err := srv.store(t).Get(bg, "x", nil, -1); err != nil || !bytes.Equal(got, changed) {
		t.Fatalf("%d bytes, %v", len(got), err)
	}

	// without a strong entity tag nobody knows: from the start again
	for _, header := range [][2]string{{"ETag", `W/"1"`}, {"Last-Modified", "Mon, 02 Jan 2006 15:04:05 GMT"}} {
		srv = serve(t, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set(header[0], header[1])
			http.ServeContent(w, r, "x.bin", time.Time{}, bytes.NewReader(object))
		}, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set(header[0], header[1])
			w.Header().Set("Content-Length", "1000")
			w.Write(object[:500])
		})
		if got, err := srv.store(t).Get(bg, "x", nil, -1); err != nil || !bytes.Equal(got, object) {
			t.Fatalf("%d bytes, %v", len(got), err)
		}
		if got := srv.header(1, "Range"); got != "" {
			t.Errorf("Range %q of the second request", got)
		}
	}
}

func TestHTTPErrors(t *testing.T) {
	ranges := func(value string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("ETag", tag)
			if value != "" {
				w.Header().Set("Content-Range", value)
			}
			w.WriteHeader(http.StatusPartialContent)
			w.Write(object[:100])
		}
	}
	for name, c := range map[string]struct {
		answer   http.HandlerFunc
		get      string // what Get's error says, "" when it succeeds
		read     string // … ReadAt's
		is       error
		requests int // for Get
	}{
		"404":       {status(404), "404", "it was removed", nil, 1},
		"403":       {status(403), "403", "403", fs.ErrPermission, 1},
		"401":       {status(401), "401", "401", fs.ErrPermission, 1},
		"400":       {status(400), "400", "400", nil, 1},
		"501":       {status(501), "501", "501", nil, 1},
		"204":       {status(204), "204", "204", nil, 1},
		"503":       {status(503), "tried 4 times: the server answers 503", "tried 4 times", nil, 4},
		"long wait": {status(503, "Retry-After", "3600"), "come back in 1h0m0s", "come back in 1h0m0s", nil, 1},
		"gzip":      {status(200, "Content-Encoding", "gzip"), "Content-Encoding", "Content-Encoding", nil, 1},
		"redirects": {func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, r.URL.Path, http.StatusFound) }, "more than 10 times", "more than 10 times", nil, 10},
		"416":       {status(416), "416", "is gone", nil, 1},

		"no Content-Range":    {ranges(""), "bad Content-Range", "bad Content-Range", nil, 1},
		"bad Content-Range":   {ranges("bytes 1-x/5"), "bad Content-Range", "bad Content-Range", nil, 1},
		"empty range":         {ranges("bytes 500-499/1048576"), "bad Content-Range", "bad Content-Range", nil, 1},
		"range beyond":        {ranges("bytes 500-599/550"), "bad Content-Range", "bad Content-Range", nil, 1},
		"negative range":      {ranges("bytes -5-599/1048576"), "bad Content-Range", "bad Content-Range", nil, 1},
		"other unit":          {ranges("items 500-599/1048576"), "bad Content-Range", "bad Content-Range", nil, 1},
		"other range":         {ranges("bytes 400-499/1048576"), "asked for bytes from 0", "asked for bytes from 500, the server sends bytes 400 to 499 of 1048576", nil, 1},
		"another size":        {ranges("bytes 500-599/1048577"), "asked for", "had 1048576 bytes and now has 1048577", nil, 1},
		"several ranges":      {status(206, "Content-Type", "multipart/byteranges; boundary=x"), "several ranges", "several ranges", nil, 1},
		"200 of another size": {status(200, "Content-Length", "7"), "tried 4 times: unexpected EOF", "now has 7", nil, 4},
		"another tag":         {status(206, "ETag", `"v2"`, "Content-Range", "bytes 500-599/1048576"), "asked for", `it was version "v1" and is "v2"`, nil, 1},
	} {
		t.Run(name, func(t *testing.T) {
			srv := serve(t, c.answer)
			st := srv.store(t)
			_, err := st.Get(bg, "c/0", nil, -1)
			if err == nil || !strings.Contains(err.Error(), c.get) || !strings.HasPrefix(err.Error(), srv.URL+"/c/0: ") {
				t.Errorf("Get: %v, want %q", err, c.get)
			}
			if got := errors.Is(err, fs.ErrNotExist); got != (name == "404") {
				t.Errorf("Get: %v: absent = %v", err, got)
			}
			if c.is != nil && !errors.Is(err, c.is) {
				t.Errorf("Get: %v is no %v", err, c.is)
			}
			if got, want := errors.Is(err, ErrUnavailable), c.requests == 4 || name == "long wait"; got != want {
				t.Errorf("Get: %v: unavailable = %v, want %v", err, got, want)
			}
			if srv.count() != c.requests {
				t.Errorf("%d requests, want %d", srv.count(), c.requests)
			}

			srv = serve(t, c.answer, honest(object))
			o, err := srv.store(t).Open(bg, "c/0")
			if err != nil {
				t.Fatal(err)
			}
			defer o.Close()
			_, err = o.ReadAt(bg, make([]byte, 100), 500)
			if err == nil || !strings.Contains(err.Error(), c.read) || !strings.HasPrefix(err.Error(), srv.URL+"/c/0: ") {
				t.Errorf("ReadAt: %v, want %q", err, c.read)
			}
			if errors.Is(err, fs.ErrNotExist) {
				t.Errorf("ReadAt: %v: an object that was opened is absent", err)
			}
			if want := strings.Contains("404 416 another size 200 of another size another tag", name) && !strings.HasPrefix(name, "40") || name == "404"; errors.Is(err, ErrChanged) != want {
				t.Errorf("ReadAt: %v: changed should be %v", err, want)
			}
		})
	}
}

// What is sent again, how often, and when a server is too slow, can be set.
func TestHTTPSettings(t *testing.T) {
	listed := settings.HTTP{Statuses: []int{http.StatusNotFound, http.StatusTeapot}, Attempts: 3, Timeout: 50 * time.Millisecond}
	for name, c := range map[string]struct {
		script   []http.HandlerFunc
		requests int
		want     error
		says     string
	}{
		"listed":            {[]http.HandlerFunc{status(418), status(404)}, 3, nil, ""},
		"not listed":        {[]http.HandlerFunc{status(503)}, 1, nil, "the server answers 503"},
		"listed, too often": {[]http.HandlerFunc{status(404), status(404), status(404)}, 3, fs.ErrNotExist, "tried 3 times: the server answers 404"},
		"silent":            {[]http.HandlerFunc{hang, hang, hang}, 3, ErrUnavailable, "the server sent nothing for 50ms"},
	} {
		s := serve(t, honest([]byte("content")), c.script...)
		got, err := HTTP(s.URL, Settings(listed), Retry(3, time.Millisecond)).Get(context.Background(), "x", nil, -1)
		switch {
		case c.says == "" && (err != nil || string(got) != "content"):
			t.Errorf("%s: %q, %v", name, got, err)
		case c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says) || c.want != nil && !errors.Is(err, c.want)):
			t.Errorf("%s: %v", name, err)
		}
		if n := s.count(); n != c.requests {
			t.Errorf("%s: %d requests, want %d", name, n, c.requests)
		}
	}
}

func TestHTTPOpenErrors(t *testing.T) {
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		want   string
	}{
		"404":            {status(404), "404"},
		"410":            {status(410), "410"},
		"403":            {status(403), "403"},
		"500":            {status(500), "tried 4 times"},
		"no size at all": {func(w http.ResponseWriter, _ *http.Request) { w.(http.Flusher).Flush() }, "does not tell the object's size"},
		"not the tail":   {status(206, "Content-Range", "bytes 0-9/1000000"), "asked for the last 65536 bytes"},
		"longer tail":    {status(206, "Content-Range", "bytes 1-999999/1000000"), "asked for the last 65536 bytes"},
		"empty tail":     {status(206, "Content-Range", "bytes 0-9/10", "Content-Length", "0"), "tried 4 times: unexpected EOF"},
		"bad range":      {status(206, "Content-Range", "10"), "the server answers 206"},
	} {
		t.Run(name, func(t *testing.T) {
			srv := serve(t, c.answer)
			o, err := srv.store(t).Open(bg, "x")
			if err == nil {
				o.Close()
			}
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
			if got := errors.Is(err, fs.ErrNotExist); got != (name == "404" || name == "410") {
				t.Errorf("%v: absent = %v", err, got)
			}
		})
	}
}

// TestHTTPServersThatDoLess: no ranges, or none from the end, or no total.
func TestHTTPServersThatDoLess(t *testing.T) {
	plain := func(w http.ResponseWriter, r *http.Request) {
		r.Header.Del("Range")
		honest(object)(w, r)
	}
	noSuffix := func(answer http.HandlerFunc) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			if strings.HasPrefix(r.Header.Get("Range"), "bytes=-") {
				answer(w, r)
				return
			}
			honest(object)(w, r)
		}
	}
	for name, then := range map[string]http.HandlerFunc{
		"ignores ranges":  plain,
		"ignores suffix":  noSuffix(plain),
		"refuses suffix":  noSuffix(status(416)),
		"refuses suffix2": noSuffix(status(400)),
		"no total": noSuffix(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/*", len(object)-tailSize, len(object)-1))
			w.WriteHeader(206)
			w.Write(object[len(object)-tailSize:])
		}),
		"short answers": func(w http.ResponseWriter, r *http.Request) {
			var first, last int
			if n, _ := fmt.Sscanf(r.Header.Get("Range"), "bytes=%d-%d", &first, &last); n == 2 && last-first > 9999 {
				r.Header.Set("Range", fmt.Sprintf("bytes=%d-%d", first, first+9999))
			}
			honest(object)(w, r)
		},
	} {
		t.Run(name, func(t *testing.T) {
			st := serve(t, then).store(t)
			o, err := st.Open(bg, "x")
			if err != nil {
				t.Fatal(err)
			}
			defer o.Close()
			if o.Size() != int64(len(object)) {
				t.Errorf("size %d", o.Size())
			}
			p := make([]byte, 100_000)
			for _, off := range []int64{0, 5, 500_000, int64(len(object) - len(p))} {
				if n, err := o.ReadAt(bg, p, off); n != len(p) || err != nil || !bytes.Equal(p, object[off:off+int64(n)]) {
					t.Errorf("at %d: %d, %v", off, n, err)
				}
			}
		})
	}
}

// endless is a server that ignores ranges and whose object has a tebibyte.
func endless(sent *atomic.Int64) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", fmt.Sprint(1<<40))
		if r.Method == http.MethodHead {
			return
		}
		p := make([]byte, 64<<10)
		for r.Context().Err() == nil {
			n, err := w.Write(p)
			sent.Add(int64(n))
			if err != nil {
				return
			}
		}
	}
}

func TestHTTPNeverReadsATebibyte(t *testing.T) {
	var sent atomic.Int64
	srv := serve(t, endless(&sent))
	st := srv.store(t)
	o, err := st.Open(bg, "x")
	if err != nil {
		t.Fatal(err)
	}
	defer o.Close()
	if o.Size() != 1<<40 {
		t.Errorf("size %d", o.Size())
	}
	if n, err := o.ReadAt(bg, make([]byte, 1000), 100_000); n != 1000 || err != nil {
		t.Errorf("near the start: %d, %v", n, err)
	}
	if _, err := o.ReadAt(bg, make([]byte, 1000), 1<<39); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("in the middle: %v", err)
	}
	if _, err := st.Get(bg, "x", nil, 1<<20); !errors.Is(err, ErrTooLarge) {
		t.Errorf("Get: %v", err)
	}
	srv.CloseClientConnections()
	if n := sent.Load(); n > 256<<20 {
		t.Errorf("%d bytes were sent", n)
	}
}

func TestHTTPLimitHoldsWithoutContentLength(t *testing.T) {
	srv := serve(t, func(w http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil {
			if _, err := w.Write(object); err != nil {
				return
			}
			w.(http.Flusher).Flush()
		}
	})
	if _, err := srv.store(t).Get(bg, "x", nil, 3<<20); !errors.Is(err, ErrTooLarge) {
		t.Error(err)
	}
	srv = serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.(http.Flusher).Flush() // no Content-Length
		w.Write(object)
	})
	if got, err := srv.store(t).Get(bg, "x", nil, int64(len(object))); err != nil || !bytes.Equal(got, object) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
}

// TestHTTPSizeIsNotBelieved: an announced tebibyte takes no tebibyte of memory.
func TestHTTPSizeIsNotBelieved(t *testing.T) {
	srv := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", fmt.Sprint(1<<40))
		w.Write(object[:1000])
	})
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if _, err := srv.store(t).Get(bg, "x", nil, -1); err == nil || !strings.Contains(err.Error(), "unexpected EOF") {
		t.Error(err)
	}
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > 1<<30 {
		t.Errorf("%d bytes were allocated", n)
	}
}

func TestHTTPKeepsConnections(t *testing.T) {
	srv := serve(t, honest(object))
	st := srv.store(t)
	o, err := st.Open(bg, "x")
	if err != nil {
		t.Fatal(err)
	}
	defer o.Close()
	p := make([]byte, 1000)
	for i := range 20 {
		if _, err := st.Get(bg, "x", nil, -1); err != nil {
			t.Fatal(err)
		}
		if _, err := o.ReadAt(bg, p, int64(i)*1000); err != nil {
			t.Fatal(err)
		}
	}
	if n := srv.conns.Load(); n != 1 {
		t.Errorf("%d connections for 41 requests in a row", n)
	}
	// the end came with Open
	before := srv.count()
	if _, err := o.ReadAt(bg, p, o.Size()-1000); err != nil || !bytes.Equal(p, object[len(object)-1000:]) {
		t.Error(err)
	}
	if srv.count() != before {
		t.Error("the object's end was asked for twice")
	}
}

func TestHTTPSecretsStayOutOfMessages(t *testing.T) {
	srv := serve(t, status(404))
	st := HTTP(srv.URL+"/bucket?token=secret#part", quick(), Header("Authorization", "Bearer secret"))
	defer st.Close()
	_, err := st.Get(bg, "c/0", nil, -1)
	if err == nil || strings.Contains(err.Error(), "secret") || !strings.Contains(err.Error(), srv.URL+"/bucket/c/0") {
		t.Error(err)
	}
	if got := srv.requests[0].URL.String(); got != "/bucket/c/0?token=secret" {
		t.Errorf("requested %q", got)
	}
	if got := srv.header(0, "Authorization"); got != "Bearer secret" {
		t.Errorf("Authorization %q", got)
	}
	srv.Close()
	if _, err = st.Get(bg, "c/0", nil, -1); err == nil || strings.Contains(err.Error(), "secret") || !strings.Contains(err.Error(), "refused") {
		t.Error(err)
	}
}

func TestHTTPBadAddresses(t *testing.T) {
	for _, address := range []string{"", "x", "http://", "ftp://host/x", "http://[::1", "http://host:port/x", "/path"} {
		st := HTTP(address, quick())
		if _, err := st.Get(bg, "c/0", nil, -1); err == nil || strings.Contains(err.Error(), "tried") {
			t.Errorf("%q: %v", address, err)
		}
		st.Close()
	}
}

func TestHTTPCancelledWhileWaiting(t *testing.T) {
	for name, answer := range map[string]http.HandlerFunc{
		"in a request": hang,
		"in a pause":   status(503, "Retry-After", "100"),
		"in a body":    func(w http.ResponseWriter, r *http.Request) { honest(object)(&cutter{w, 10}, r); hang(w, r) },
	} {
		t.Run(name, func(t *testing.T) {
			srv := serve(t, answer)
			ctx, cancel := context.WithTimeout(bg, 50*time.Millisecond)
			defer cancel()
			_, err := srv.store(t).Get(ctx, "x", nil, -1)
			if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), srv.URL) {
				t.Error(err)
			}
		})
	}
}

// TestHTTPLeavesNoGoroutines counts them after all kinds of answers.
func TestHTTPLeavesNoGoroutines(t *testing.T) {
	before := runtime.NumGoroutine()
	func() {
		var sent atomic.Int64
		for _, h := range []http.HandlerFunc{honest(object), status(404), status(503), endless(&sent), cutAfter(object, 10), hang} {
			srv := httptest.NewServer(h)
			st := HTTP(srv.URL, Retry(2, time.Millisecond), IdleTimeout(20*time.Millisecond))
			if _, err := st.Get(bg, "x", nil, 2<<20); err != nil && !strings.Contains(err.Error(), srv.URL) {
				t.Error(err)
			}
			if o, err := st.Open(bg, "x"); err == nil {
				if _, err := o.ReadAt(bg, make([]byte, 100), 0); err != nil && !strings.Contains(err.Error(), srv.URL) {
					t.Error(err)
				}
				o.Close()
			}
			st.Close()
			srv.CloseClientConnections()
			srv.Close()
		}
	}()
	for range 500 { // connections take a moment to end
		if runtime.NumGoroutine() <= before {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	buf := make([]byte, 1<<16)
	t.Errorf("%d goroutines, %d before:\n%s", runtime.NumGoroutine(), before, buf[:runtime.Stack(buf, true)])
}

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for field, want := range map[string]time.Duration{
		"": 0, "0": 0, "7": 7 * time.Second, "-1": 0, "soon": 0, "99999999999999999999": 0,
		"Fri, 02 Jan 2026 03:04:25 GMT": 20 * time.Second, "Fri, 02 Jan 2026 03:00:00 GMT": 0,
	} {
		if got := retryAfter(field, now); got != want {
			t.Errorf("%q: %v, want %v", field, got, want)
		}
	}
}

func FuzzContentRange(f *testing.F) {
	for _, s := range []string{"bytes 0-9/10", "bytes 5-5/*", "bytes 1-x/5", "bytes -1-2/3", "", "bytes */10", "bytes 9-0/10", "bytes 0-9/5"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, field string) {
		c, err := parseContentRange(http.Header{"Content-Range": {field}})
		if err == nil && (c.first < 0 || c.last < c.first || c.size >= 0 && c.last >= c.size) {
			t.Errorf("%q was read as %v", field, c)
		}
	})
}
