package zarr

import (
	"context"
	"sync"
	"testing"
	"time"

	"strata/pkg/dtype"
	"strata/pkg/zarr/store"
)

// meeting lets a file be written only when others are: as many as there are workers.
type meeting struct {
	store.Writer
	mu      sync.Mutex
	missing int
	all     chan struct{}
}

func (m *meeting) Put(ctx context.Context, key string, parts ...[]byte) error {
	m.mu.Lock()
	if m.missing--; m.missing == 0 {
		close(m.all)
	}
	m.mu.Unlock()
	select {
	case <-m.all:
		return m.Writer.Put(ctx, key, parts...)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// As many chunk files are written at once as there are workers, whatever their names.
func TestWritersOfOtherFilesDoNotWait(t *testing.T) {
	const files = 48
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	m := &meeting{Writer: store.Memory(), missing: files, all: make(chan struct{})}
	a, err := CreateArray(ctx, m.Writer, "a", Spec{Shape: []int{files}, Chunks: []int{1}, DType: dtype.Uint8})
	if err != nil {
		t.Fatal(err)
	}
	a.Close()
	if a, err = OpenArray(ctx, m, "a", Workers(files)); err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	data := make([]byte, files)
	for i := range data {
		data[i] = byte(i + 1)
	}
	if err := a.Write(ctx, a.Bounds(), data); err != nil {
		t.Fatalf("not all of %d files were in hand at once: %v", files, err)
	}
	if n := len(a.writing.held); n != 0 {
		t.Errorf("%d locks are left", n)
	}
}

// One file is written by one at a time.
func TestWritersOfOneFileTakeTurns(t *testing.T) {
	var l fileLocks
	var wg sync.WaitGroup
	n := 0
	for range 8 {
		wg.Go(func() {
			for range 200 {
				f := l.lock([]byte("c/0"))
				n++ // a race, if two hold it
				l.unlock(f)
			}
		})
	}
	wg.Wait()
	if n != 1600 || len(l.held) != 0 {
		t.Errorf("%d of 1600 turns, %d locks left", n, len(l.held))
	}
}
