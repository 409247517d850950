//go:build !nocuda

package filelayer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"strata/pkg/gpu"
	"strata/pkg/settings"
	"strata/pkg/zarr/store"
	"strata/tests/gputest"
)

// served is a server with one file.
func served(t *testing.T, content []byte) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("ETag", `"1"`)
		http.ServeContent(w, r, "x.bin", time.Time{}, bytes.NewReader(content))
	}))
	t.Cleanup(s.Close)
	return s.URL + "/data"
}

// A file of a server is read into host and device memory by the same calls as others.
func TestSource(t *testing.T) {
	d := device(t)
	want := random(3<<20 + 777)
	url := served(t, want)
	for name, c := range ways() {
		if c.TaskSize < 5000 { // each of which is a request
			continue
		}
		t.Run(name, func(t *testing.T) {
			p := pool(t, d, c)
			o, err := store.OpenFile(ctx, url)
			if err != nil {
				t.Fatal(err)
			}
			f, err := p.OpenSource(url, o)
			if err != nil {
				t.Fatal(err)
			}
			if n, err := f.Size(); n != int64(len(want)) || err != nil {
				t.Error(n, err)
			}
			if ok, reason := f.Mode(); ok || reason == "" {
				t.Error(ok, reason)
			}
			got := make([]byte, len(want)-5)
			b := onDevice(t, d, len(got))
			defer b.Release()
			reads := []*Pending{f.GoRead(ctx, b.Span, 5), f.GoReadAt(ctx, got, 5)}
			for _, r := range reads {
				if err := r.Wait(); err != nil {
					t.Fatal(err)
				}
			}
			if !bytes.Equal(got, want[5:]) {
				t.Error("other bytes on the host")
			}
			clear(got)
			move(t, d, got, b.Span, false)
			if !bytes.Equal(got, want[5:]) {
				t.Error("other bytes on the device")
			}
			s := gputest.Stream(t, d)
			s.Zero(b.Span)
			f.QueueRead(ctx, s, b.From(0, 100000), 1000)
			if err := s.Wait(); err != nil {
				t.Error(err)
			}
			move(t, d, got[:100000], b.From(0, 100000), false)
			if !bytes.Equal(got[:100000], want[1000:101000]) {
				t.Error("other bytes by a stream")
			}
			if err := f.ReadAt(ctx, got[:10], int64(len(want)-4)); !errors.Is(err, io.ErrUnexpectedEOF) ||
				err.Error() != fmt.Sprintf("read %s at byte %d: the file ends, 6 bytes are missing: unexpected EOF", url, len(want)) {
				t.Error(err)
			}
			for _, err := range []error{f.WriteAt(ctx, got[:10], 0), f.Write(ctx, b.Span, 0)} {
				if !errors.Is(err, errSource) || !strings.HasPrefix(err.Error(), "write "+url+" at byte 0: ") {
					t.Error(err)
				}
			}
			_, err = f.Cached(0, 0)
			for _, err := range []error{err, f.DropCached(0, 0), f.Prefetch(0, 0)} {
				if !errors.Is(err, errors.ErrUnsupported) {
					t.Error(err)
				}
			}
			if ok, reason := f.DirectIO(); ok || reason != errSource.Error() {
				t.Error(ok, reason)
			}
			if err := f.Close(); err != nil {
				t.Error(err)
			}
			if err := f.ReadAt(ctx, got[:10], 0); err == nil {
				t.Error("read after it was closed")
			}
			if st := f.Stats(); st.ReadStraight != 0 || st.Fallbacks != 0 || st.ReadBounced != int64(len(want)-5+100000) || st.Host != int64(len(want)-5) {
				t.Errorf("%+v", st)
			}
		})
	}
}

// A part of a file that is mapped is read into device memory too.
func TestMapOnDevice(t *testing.T) {
	d := device(t)
	want := random(100000)
	m, err := OpenMap(file(t, want), 100, 90000)
	if err != nil {
		t.Fatal(err)
	}
	s := settings.Default()
	s.Threads, s.TaskSize = 2, 32<<10
	f, err := pool(t, d, s).OpenSource("mapping", m)
	if err != nil {
		t.Fatal(err)
	}
	b := onDevice(t, d, 50000)
	defer b.Release()
	if err := f.Read(ctx, b.Span, 7); err != nil {
		t.Error(err)
	}
	got := make([]byte, 50000)
	move(t, d, got, b.Span, false)
	if !bytes.Equal(got, want[107:50107]) {
		t.Error("other bytes")
	}
	if err := f.Read(ctx, b.Span, 50000); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Error(err)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
}

// scriptedSource is a source whose reads are up to the test.
type scriptedSource struct {
	size   int64
	read   func(ctx context.Context, p []byte, off int64) (int, error)
	closed atomic.Int32
}

func (s *scriptedSource) Size() int64 { return s.size }
func (s *scriptedSource) ReadAt(ctx context.Context, p []byte, off int64) (int, error) {
	return s.read(ctx, p, off)
}
func (s *scriptedSource) Close() error { s.closed.Add(1); return nil }

// A read asks for its parts at once, an error is that of the part that lies first, and the
// end of the context ends the reads that are under way.
func TestSourceParts(t *testing.T) {
	s := settings.Default()
	s.Threads = 2
	p := pool(t, nil, s)
	open := func(read func(ctx context.Context, p []byte, off int64) (int, error)) (*File, *scriptedSource) {
		src := &scriptedSource{size: 4 << 20, read: read}
		f, err := p.OpenSource("source", src)
		if err != nil {
			t.Fatal(err)
		}
		return f, src
	}
	b := make([]byte, 4<<20)
	asked, all := atomic.Int32{}, make(chan struct{})
	f, src := open(func(ctx context.Context, p []byte, off int64) (int, error) {
		if asked.Add(1) == 4 {
			close(all)
		}
		select {
		case <-all:
		case <-ctx.Done():
			return 0, errors.New("the four are not asked for at once")
		}
		for i := range p {
			p[i] = byte(off >> 20)
		}
		return len(p), nil
	})
	soon, stop := context.WithTimeout(ctx, 20*time.Second)
	defer stop()
	if err := f.ReadAt(soon, b, 0); err != nil || b[0] != 0 || b[1<<20] != 1 || b[4<<20-1] != 3 {
		t.Error(err)
	}
	if err := f.Close(); err != nil || src.closed.Load() != 1 {
		t.Error(err, src.closed.Load())
	}
	broken := errors.New("the line is cut")
	f, _ = open(func(_ context.Context, p []byte, off int64) (int, error) {
		if off >= 1<<20 {
			return 10, broken
		}
		return len(p), nil
	})
	if err := f.ReadAt(ctx, b, 0); !errors.Is(err, broken) || err.Error() != fmt.Sprintf("read source at byte %d: the line is cut", 1<<20+10) {
		t.Error(err)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	f, _ = open(func(context.Context, []byte, int64) (int, error) { return 0, nil })
	if err := f.ReadAt(ctx, b, 0); !errors.Is(err, io.ErrNoProgress) {
		t.Error(err)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	begun := make(chan struct{}, 4)
	f, _ = open(func(ctx context.Context, _ []byte, _ int64) (int, error) {
		begun <- struct{}{}
		<-ctx.Done()
		return 0, ctx.Err()
	})
	for _, go2 := range []bool{false, true} {
		ending, cancel := context.WithCancel(ctx)
		go func() { <-begun; cancel() }()
		var err error
		if go2 {
			err = f.GoReadAt(ending, b, 0).Wait()
		} else {
			err = f.ReadAt(ending, b, 0)
		}
		if !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		for len(begun) > 0 {
			<-begun
		}
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	closed, err := NewPool(nil, s, nil)
	if err != nil || closed.Close() != nil {
		t.Fatal(err)
	}
	if _, err := closed.OpenSource("source", &scriptedSource{}); err == nil || err.Error() != "open source: the pool of threads is closed" {
		t.Error(err)
	}
	var none *gpu.Device
	if _, reason := pool(t, none, s).Mode(); reason != "there is no device" {
		t.Error(reason)
	}
}
