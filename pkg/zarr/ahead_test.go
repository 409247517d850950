package zarr

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"strata/pkg/dtype"
	"strata/pkg/zarr/codec"
	"strata/pkg/zarr/store"
)

// farStore is a web server that keeps its answers about chunks until n requests are there,
// and all of them a little longer: more than n would be seen.
type farStore struct {
	mu           sync.Mutex
	now, most, n int
	enough       chan struct{}
	files        http.Handler
}

func (f *farStore) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/zarr.json" || strings.HasPrefix(r.URL.Path, "/.z") {
		f.files.ServeHTTP(w, r)
		return
	}
	f.mu.Lock()
	f.now++
	if f.most = max(f.most, f.now); f.now == f.n {
		select {
		case <-f.enough:
		default:
			close(f.enough)
		}
	}
	f.mu.Unlock()
	select {
	case <-f.enough:
		time.Sleep(20 * time.Millisecond)
	case <-time.After(time.Minute): // too few come: the test says how many
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
			stored := make([]byte, 4*16*16*2)
			for i := range stored {
				stored[i] = byte(i * 7)
			}
			if err := a.Write(context.Background(), a.Bounds(), stored); err != nil {
				t.Fatal(err)
			}
			want := 12
			if spec.Shard != nil {
				want = 8 // all shards: each comes whole when it is opened, once
			}
			far := &farStore{n: want, enough: make(chan struct{}), files: http.FileServer(http.Dir(dir))}
			server := httptest.NewServer(far)
			defer server.Close()
			st := store.HTTP(server.URL, store.AtOnce(12))
			defer st.Close()
			b, err := OpenArray(context.Background(), st, "", Workers(2))
			if err != nil {
				t.Fatal(err)
			}
			defer b.Close()
			got := make([]byte, len(stored))
			if err := b.Read(context.Background(), b.Bounds(), got); err != nil || !bytes.Equal(got, stored) {
				t.Fatalf("read: %v, equal %v", err, bytes.Equal(got, stored))
			}
			if far.most != want {
				t.Errorf("%d requests at a time, want %d", far.most, want)
			}
			ahead.mu.Lock()
			defer ahead.mu.Unlock()
			if ahead.free != AheadBytes {
				t.Errorf("%d bytes of the pool were not given back", AheadBytes-ahead.free)
			}
		})
	}
}

// asked is a web server that counts its requests by key, and may keep some waiting.
type asked struct {
	mu     sync.Mutex
	n      map[string]int
	ranges []string // of Range fields, in order of arrival
	wait   func(r *http.Request)
	files  http.Handler
}

func (a *asked) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	a.n[r.URL.Path]++
	a.ranges = append(a.ranges, r.Header.Get("Range"))
	a.mu.Unlock()
	if a.wait != nil {
		a.wait(r)
	}
	a.files.ServeHTTP(w, r)
}

func (a *asked) opened() (n int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, r := range a.ranges {
		if strings.HasPrefix(r, "bytes=-") {
			n++
		}
	}
	return n
}

// far serves dir and opens the array there.
func openFar(t *testing.T, dir string, wait func(r *http.Request), requests int) (*asked, *Array) {
	t.Helper()
	far := &asked{n: map[string]int{}, wait: wait, files: http.FileServer(http.Dir(dir))}
	server := httptest.NewServer(far)
	t.Cleanup(server.Close)
	st := store.HTTP(server.URL, store.AtOnce(requests))
	t.Cleanup(func() { st.Close() })
	a, err := OpenArray(context.Background(), st, "", Workers(1))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.Close)
	return far, a
}

// stored makes an array of bytes that are not all alike, and returns them.
func storedArray(t *testing.T, dir string, spec Spec) []byte {
	t.Helper()
	spec.DType = dtype.Uint8
	a, err := CreateArray(context.Background(), store.Folder(dir), "", spec)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	data := make([]byte, volumeOf(spec.Shape))
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range data {
		data[i] = byte(rng.Uint32())
	}
	if err := a.Write(context.Background(), a.Bounds(), data); err != nil {
		t.Fatal(err)
	}
	return data
}

// A raw chunk that is far away costs one request, also where only parts of its rows are
// wanted; one that is missing or has another size is found at that request.
func TestRawChunksCostOneRequest(t *testing.T) {
	dir := t.TempDir()
	data := storedArray(t, dir, Spec{Shape: []int{128, 256, 64}, Chunks: []int{64, 256, 32}, Fill: []byte{9}})
	far, a := openFar(t, dir, nil, 4)
	got := make([]byte, len(data))
	if err := a.Read(context.Background(), a.Bounds(), got); err != nil || !bytes.Equal(got, data) {
		t.Fatalf("read: %v, equal %v", err, bytes.Equal(got, data))
	}
	for _, key := range []string{"/c/0/0/0", "/c/0/0/1", "/c/1/0/0", "/c/1/0/1"} {
		if far.n[key] != 1 {
			t.Errorf("%d requests for %s", far.n[key], key)
		}
	}
	chunk := func(name string) string { return filepath.Join(dir, "c", "0", "0", name) }
	b, err := os.ReadFile(chunk("0"))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.WriteFile(chunk("0"), b[:len(b)-1], 0o666), os.Remove(chunk("1"))); err != nil {
		t.Fatal(err)
	}
	_, a = openFar(t, dir, nil, 4)
	part := make([]byte, 64*256*32)
	err = a.Read(context.Background(), Region{Start: []int{0, 0, 0}, Shape: []int{64, 256, 32}}, part)
	var fe *FormatError
	if !errors.As(err, &fe) || !strings.Contains(err.Error(), "524287 bytes stored, a chunk of [64 256 32] uint8 has 524288") {
		t.Errorf("a chunk that is too short: %v", err)
	}
	for range 2 {
		if err := a.Read(context.Background(), Region{Start: []int{0, 0, 32}, Shape: []int{64, 256, 32}}, part); err != nil || !bytes.Equal(part, bytes.Repeat([]byte{9}, len(part))) {
			t.Errorf("a chunk that is missing: %v", err)
		}
	}
}

// Shards are opened before their first chunk is wanted, but not all that there are.
func TestShardsAreOpenedAhead(t *testing.T) {
	dir := t.TempDir()
	const shards = 3 * aheadShards
	data := storedArray(t, dir, Spec{Shape: []int{shards * 4, 65536}, Chunks: []int{1, 65536}, Shard: []int{4, 65536}})
	var far *asked
	var first sync.Once
	ready := make(chan struct{})
	most := 0
	wait := func(r *http.Request) { // the chunks of the first shards come when the others are open
		if rng := r.Header.Get("Range"); rng == "" || strings.HasPrefix(rng, "bytes=-") {
			return
		}
		<-ready
		first.Do(func() {
			for i := 0; i < 500 && far.opened() < aheadShards; i++ {
				time.Sleep(10 * time.Millisecond)
			}
			most = far.opened()
		})
	}
	far, a := openFar(t, dir, wait, 1)
	close(ready)
	got := make([]byte, len(data))
	if err := a.Read(context.Background(), a.Bounds(), got); err != nil || !bytes.Equal(got, data) {
		t.Fatalf("read: %v, equal %v", err, bytes.Equal(got, data))
	}
	if most < aheadShards || most > aheadShards+2 {
		t.Errorf("%d shards were open when the first chunk came, want %d", most, aheadShards)
	}
	if far.opened() != shards {
		t.Errorf("%d shards are opened %d times", shards, far.opened())
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
	far := &farStore{n: 4, enough: make(chan struct{}), files: http.FileServer(http.Dir(dir))}
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
