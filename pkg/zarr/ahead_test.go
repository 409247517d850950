package zarr

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"strata/pkg/dtype"
	"strata/pkg/zarr/codec"
	"strata/pkg/zarr/store"
)

// farStore is a web server that keeps its answers until n requests are there, or
// for a moment where fewer come.
type farStore struct {
	mu           sync.Mutex
	now, most, n int
	enough       chan struct{}
	files        http.Handler
}

func (f *farStore) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	f.now++
	f.most = max(f.most, f.now)
	if f.now == f.n {
		close(f.enough)
	}
	f.mu.Unlock()
	select {
	case <-f.enough:
	case <-time.After(100 * time.Millisecond):
	}
	f.files.ServeHTTP(w, r)
	f.mu.Lock()
	f.now--
	f.mu.Unlock()
}

// From a store that is far away a call fetches more chunks at a time than it has
// workers, but no more than it may; what comes is what was written.
func TestReadAhead(t *testing.T) {
	encoded, err := codec.FromFlag("blosc-lz4:5", dtype.Uint16, 3)
	if err != nil {
		t.Fatal(err)
	}
	for name, spec := range map[string]Spec{
		"chunks":   {Shape: []int{4, 16, 16}, Chunks: []int{1, 4, 4}},
		"shards":   {Shape: []int{4, 16, 16}, Chunks: []int{1, 4, 4}, Shard: []int{2, 8, 8}},
		"encoded":  {Shape: []int{4, 16, 16}, Chunks: []int{1, 4, 4}, Codecs: encoded},
		"version2": {Shape: []int{4, 16, 16}, Chunks: []int{1, 4, 4}, Format: 2},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			spec.DType = dtype.Uint16
			a, err := CreateArray(context.Background(), store.Folder(dir), "", spec)
			if err != nil {
				t.Fatal(err)
			}
			want := make([]byte, 4*16*16*2)
			for i := range want {
				want[i] = byte(i * 7)
			}
			if err := a.Write(context.Background(), a.Bounds(), want); err != nil {
				t.Fatal(err)
			}
			far := &farStore{n: 12, enough: make(chan struct{}), files: http.FileServer(http.Dir(dir))}
			server := httptest.NewServer(far)
			defer server.Close()
			st := store.HTTP(server.URL, store.AtOnce(12))
			defer st.Close()
			b, err := OpenArray(context.Background(), st, "", Workers(2))
			if err != nil {
				t.Fatal(err)
			}
			defer b.Close()
			got := make([]byte, len(want))
			if err := b.Read(context.Background(), b.Bounds(), got); err != nil || !bytes.Equal(got, want) {
				t.Fatalf("read: %v, equal %v", err, bytes.Equal(got, want))
			}
			if far.most != 12 {
				t.Errorf("%d requests at a time, want 12", far.most)
			}
			ahead.mu.Lock()
			defer ahead.mu.Unlock()
			if ahead.free != aheadBytes {
				t.Errorf("%d bytes of the pool were not given back", aheadBytes-ahead.free)
			}
		})
	}
}

// What the goroutines beyond the workers hold is bounded for the whole process.
func TestReadAheadIsBounded(t *testing.T) {
	p := pool{free: 100}
	if n := p.take(30, 10); n != 3 {
		t.Errorf("%d, want 3", n)
	}
	if n := p.take(11, 10); n != 0 {
		t.Errorf("%d of what is not there", n)
	}
	p.give(30, 3)
	if n := p.take(0, 5); n != 5 || p.free != 100 {
		t.Errorf("%d, %d free", n, p.free)
	}
}

// A server that ends its connections gets fewer requests at a time.
func TestReadAheadOfFleetingConnections(t *testing.T) {
	dir := t.TempDir()
	a, err := CreateArray(context.Background(), store.Folder(dir), "", Spec{Shape: []int{64}, Chunks: []int{1}, DType: dtype.Uint16})
	if err != nil {
		t.Fatal(err)
	}
	want := bytes.Repeat([]byte{1, 2}, 64)
	if err := a.Write(context.Background(), a.Bounds(), want); err != nil {
		t.Fatal(err)
	}
	far := &farStore{n: 1000, enough: make(chan struct{}), files: http.FileServer(http.Dir(dir))}
	server := httptest.NewUnstartedServer(far)
	server.Config.SetKeepAlivesEnabled(false)
	server.Start()
	defer server.Close()
	st := store.HTTP(server.URL)
	defer st.Close()
	b, err := OpenArray(context.Background(), st, "", Workers(2))
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	got := make([]byte, len(want))
	if err := b.Read(context.Background(), b.Bounds(), got); err != nil || !bytes.Equal(got, want) {
		t.Fatal(err)
	}
	if far.most != 4 {
		t.Errorf("%d requests at a time, want 4", far.most)
	}
}
