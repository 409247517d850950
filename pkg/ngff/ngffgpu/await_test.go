//go:build !nocuda

package ngffgpu

import (
	"context"
	"errors"
	"testing"
	"time"

	"strata/pkg/dtype"
	"strata/pkg/gpu"
	"strata/pkg/mem"
	"strata/pkg/ngff"
	"strata/pkg/zarr/store"
	"strata/tests/gputest"
)

// A tile for which there is no page-locked memory waits for the one before it, and no longer than the context; it does
// not wait for memory that nobody gives back.
func TestAwait(t *testing.T) {
	im := imageOf(t, "yx", dtype.Uint16, []int{64, 128}, []int{64, 64}, []int{64, 64}, "raw")
	im.Levels = 1
	out, err := ngff.Create(ctx, store.Memory(), "", im.ImageSpec)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Abort()
	bytes := int64(volume(im.tile) * im.DType.Size())
	d := gputest.Device(t, gpu.Limits{Memory: 1 << 20, Pinned: 2*mem.Pooled(bytes) - 4096})
	w, s := NewWriter(out, d, Options{}), gputest.Stream(t, d)
	src, err := d.Memory().Get(bytes)
	if err != nil {
		t.Fatal(err)
	}
	defer src.Release()
	s.Zero(src.Span)
	first, err := w.Begin(s, []int{0, 0}, im.tile, src.Span)
	if err != nil {
		t.Fatal(err)
	}
	second := []int{0, 64}
	if _, err := w.Begin(s, second, im.tile, src.Span); !errors.Is(err, gpu.ErrMemory) {
		t.Fatalf("a second tile in memory for one: %v", err)
	}
	if err := s.Wait(); err != nil {
		t.Fatal(err)
	}
	short, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
	defer cancel()
	if _, err := w.Await(short, s, second, im.tile, src.Span); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("until the context ends: %v", err)
	}
	aside := gputest.Stream(t, d)
	written := make(chan error)
	go func() {
		time.Sleep(20 * time.Millisecond)
		written <- first.Write(ctx, aside)
	}()
	next, err := w.Await(ctx, s, second, im.tile, src.Span)
	if err := errors.Join(err, <-written); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(s.Wait(), next.Write(ctx, aside)); err != nil {
		t.Fatal(err)
	}
	held, err := d.Host(int(bytes))
	if err != nil {
		t.Fatal(err)
	}
	defer held.Release()
	if _, err := w.Await(ctx, s, second, im.tile, src.Span); !errors.Is(err, gpu.ErrMemory) {
		t.Errorf("memory that no tile holds: %v", err)
	}
}
