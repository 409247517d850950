package store

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"testing"
	"time"
)

// An object that is expected is not looked at before the first read, which says what is wrong.
func TestExpect(t *testing.T) {
	data := content("chunk", 100_000)
	tagged := func(etag string, data []byte) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("ETag", etag)
			http.ServeContent(w, r, "x.bin", time.Time{}, bytes.NewReader(data))
		}
	}
	unknown := func(w http.ResponseWriter, _ *http.Request) { // part of an object whose size it does not say
		w.Header().Set("Content-Range", "bytes 10-109/*")
		w.WriteHeader(http.StatusPartialContent)
		_, _ = w.Write(data[10:110])
	}
	whole := func(w http.ResponseWriter, _ *http.Request) { // no ranges, and no size
		w.(http.Flusher).Flush()
		_, _ = w.Write(data)
	}
	for name, c := range map[string]struct {
		script []http.HandlerFunc
		want   [2]error // of the first read and of the second
		asked  int
	}{
		"as expected":    {nil, [2]error{}, 2},
		"absent":         {[]http.HandlerFunc{status(404)}, [2]error{fs.ErrNotExist, nil}, 2},
		"not allowed":    {[]http.HandlerFunc{status(403)}, [2]error{fs.ErrPermission, nil}, 2},
		"too small":      {[]http.HandlerFunc{tagged(tag, data[:99_999])}, [2]error{ErrSize, nil}, 2},
		"too large":      {[]http.HandlerFunc{tagged(tag, append(data, 0))}, [2]error{ErrSize, nil}, 2},
		"empty":          {[]http.HandlerFunc{tagged(tag, nil)}, [2]error{ErrSize, nil}, 2},
		"of unknown end": {[]http.HandlerFunc{unknown}, [2]error{ErrSize, nil}, 2},
		"of no length":   {[]http.HandlerFunc{whole}, [2]error{ErrSize, nil}, 2},
		"busy":           {[]http.HandlerFunc{status(503)}, [2]error{}, 3},
		"changes":        {[]http.HandlerFunc{honest(data), tagged(`"v2"`, data)}, [2]error{nil, ErrChanged}, 2},
		"shrinks":        {[]http.HandlerFunc{honest(data), honest(data[:500])}, [2]error{nil, ErrChanged}, 2},
		"goes":           {[]http.HandlerFunc{honest(data), status(404)}, [2]error{nil, ErrChanged}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, honest(data), c.script...)
			o, err := s.store(t).Expect(bg, "chunk", int64(len(data)))
			if err != nil {
				t.Fatal(err)
			}
			defer o.Close()
			if o.Size() != int64(len(data)) || s.count() != 0 {
				t.Errorf("%d bytes after %d requests, want %d after none", o.Size(), s.count(), len(data))
			}
			for i, want := range c.want {
				p := make([]byte, 100)
				n, err := o.ReadAt(bg, p, 10)
				if !errors.Is(err, want) || want == nil && (err != nil || n != 100 || !bytes.Equal(p, data[10:110])) {
					t.Errorf("read %d: %d bytes, %v; want %v", i, n, err, want)
				}
			}
			if s.count() != c.asked {
				t.Errorf("%d requests, want %d", s.count(), c.asked)
			}
			if _, err := o.ReadAt(bg, make([]byte, 1), int64(len(data))); err != io.EOF {
				t.Errorf("behind the end: %v", err)
			}
		})
	}
	if _, err := HTTP("http://localhost").Expect(context.Background(), "../x", 1); !errors.Is(err, ErrKey) {
		t.Errorf("a bad key: %v", err)
	}
}
