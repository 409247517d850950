package zarr

import (
	"bytes"
	"context"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"strata/pkg/mem"
)

// together is a server's wait: both of two kinds of requests are there before either is answered.
type together struct {
	once [2]sync.Once
	here [2]chan struct{}
	late chan string
}

func newTogether() *together {
	return &together{here: [2]chan struct{}{make(chan struct{}), make(chan struct{})}, late: make(chan string, 100)}
}

func (p *together) arrive(i int, what string) {
	p.once[i].Do(func() { close(p.here[i]) })
	select {
	case <-p.here[1-i]:
	case <-time.After(time.Minute):
		p.late <- what
	}
}

// A shard that is wanted whole costs two waits, the array's document and one for the index and the first chunks,
// and no byte of its beginning is requested again.
func TestBeginningOfShardComesWithIndex(t *testing.T) {
	defer noBuffers(t, mem.InUse())
	dir := t.TempDir()
	data := storedArray(t, dir, Spec{Shape: []int{128, 65536}, Chunks: []int{1, 65536}, Shard: []int{64, 65536}})
	both := newTogether()
	far, a := openFar(t, dir, func(r *http.Request) {
		switch rng := r.Header.Get("Range"); {
		case rng == "bytes=0-1048575":
			both.arrive(0, rng)
		case r.URL.Path == "/c/0/0" && strings.HasPrefix(rng, "bytes=-"):
			both.arrive(1, rng)
		}
	}, 8)
	got := make([]byte, len(data))
	if err := a.Read(context.Background(), a.Bounds(), got); err != nil || !bytes.Equal(got, data) {
		t.Fatalf("read: %v, equal %v", err, bytes.Equal(got, data))
	}
	if len(both.late) > 0 {
		t.Errorf("%s waited alone", <-both.late)
	}
	again := slices.DeleteFunc(slices.Clone(far.ranges), func(r string) bool { return !strings.HasPrefix(r, "bytes=0-") })
	if !slices.Equal(again, []string{"bytes=0-1048575", "bytes=0-65535"}) && !slices.Equal(again, []string{"bytes=0-1048575"}) {
		t.Errorf("beginnings of two shards were requested as %v", again) // of the second shard maybe with neighbours
	}
	ahead.mu.Lock()
	defer ahead.mu.Unlock()
	if ahead.free != AheadBytes {
		t.Errorf("%d bytes of the pool were not given back", AheadBytes-ahead.free)
	}
}

func noBuffers(t *testing.T, before int64) {
	idle.Lock()
	defer idle.Unlock()
	held := idle.held
	if now := mem.InUse(); now-before > held+1<<20 {
		t.Errorf("%d bytes of buffers are left, workers hold %d", now-before, held)
	}
}

// A beginning is not read of a shard that is wanted in part or is small, and where there is no memory for it.
func TestBeginningOfShardIsNotAlwaysRead(t *testing.T) {
	dir := t.TempDir()
	data := storedArray(t, dir, Spec{Shape: []int{128, 65536}, Chunks: []int{1, 65536}, Shard: []int{64, 65536}})
	for name, c := range map[string]struct {
		region   Region
		pool     int64
		requests int
	}{
		"part":       {Region{Start: []int{1, 0}, Shape: []int{63, 65536}}, AheadBytes, 8},
		"no memory":  {Region{Start: []int{0, 0}, Shape: []int{64, 65536}}, 3 << 20, 8},
		"one by one": {Region{Start: []int{0, 0}, Shape: []int{64, 65536}}, AheadBytes, 1},
	} {
		t.Run(name, func(t *testing.T) {
			defer SetAhead(AheadBytes)
			SetAhead(c.pool)
			far, a := openFar(t, dir, nil, c.requests)
			got := make([]byte, volumeOf(c.region.Shape))
			first := c.region.Start[0] * 65536
			if err := a.Read(context.Background(), c.region, got); err != nil || !bytes.Equal(got, data[first:first+len(got)]) {
				t.Fatalf("read: %v", err)
			}
			if slices.Contains(far.ranges, "bytes=0-1048575") {
				t.Errorf("the beginning was requested: %v", far.ranges)
			}
		})
	}
}

// The first shard may be missing, broken or already known.
func TestBeginningOfOddShards(t *testing.T) {
	dir := t.TempDir()
	data := storedArray(t, dir, Spec{Shape: []int{128, 65536}, Chunks: []int{1, 65536}, Shard: []int{64, 65536}, Fill: []byte{7}})
	_, a := openFar(t, dir, nil, 8)
	got := make([]byte, len(data))
	for range 2 { // the second time the shards are open
		clear(got)
		if err := a.Read(context.Background(), a.Bounds(), got); err != nil || !bytes.Equal(got, data) {
			t.Fatalf("read: %v, equal %v", err, bytes.Equal(got, data))
		}
	}
	shard := filepath.Join(dir, "c", "0", "0")
	if err := os.Truncate(shard, 100); err != nil {
		t.Fatal(err)
	}
	_, a = openFar(t, dir, nil, 8)
	if err := a.Read(context.Background(), a.Bounds(), got); err == nil || !strings.Contains(err.Error(), "shard of 100 bytes is shorter than its index") {
		t.Errorf("a short shard: %v", err)
	}
	if err := os.Remove(shard); err != nil {
		t.Fatal(err)
	}
	_, a = openFar(t, dir, nil, 8)
	want := append(bytes.Repeat([]byte{7}, len(data)/2), data[len(data)/2:]...)
	if err := a.Read(context.Background(), a.Bounds(), got); err != nil || !bytes.Equal(got, want) {
		t.Errorf("a missing shard: %v, equal %v", err, bytes.Equal(got, want))
	}
}
