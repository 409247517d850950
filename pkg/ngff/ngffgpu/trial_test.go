//go:build !nocuda

package ngffgpu

import (
	"runtime"
	"testing"

	"strata/pkg/dtype"
	"strata/pkg/gpu/trial"
	"strata/pkg/ngff"
	"strata/pkg/zarr/store"
	"strata/tests/gputest"
)

// TestTrial: tiles leave in turn encoded by the device and for the host to encode, and then by the faster way; the
// voxels of all levels are the host's. What the host encodes because it was asked to is not tried.
func TestTrial(t *testing.T) {
	d := gputest.Device(t, much)
	images(t, "blosc-zstd", func(t *testing.T, im *image, leaves bool) {
		want := im.onHost(t)
		for _, byHost := range []bool{true, false} {
			b := trial.New(1, 1)
			got, err := im.onDevice(d, store.Memory(), Options{Trials: b, ByHost: byHost})
			if err != nil {
				t.Fatal(err)
			}
			same(t, got, want)
			tiles, o := 0, b.Outcomes()
			_ = im.tiles(func([]int, []int, []byte) error { tiles++; return nil })
			if tried := leaves && !byHost && tiles > 1; tried != (len(o) == 1) || tried && (o[0].What != "write" || o[0].Array != got.Array(0).Location()) {
				t.Errorf("%d tiles, by the host: %v, outcomes %v", tiles, byHost, o)
			}
		}
	})
}

// TestWarmUp: while the encoder's kernels are being loaded the host encodes, and no tile is tried; an encoder that
// fails is not used.
func TestWarmUp(t *testing.T) {
	d := gputest.Device(t, much)
	im := imageOf(t, "yx", dtype.Uint16, []int{250, 260}, []int{65, 67}, []int{130, 134}, "zstd")
	for name, c := range map[string]struct {
		warm bool
		want way
	}{"cold": {false, whole}, "warm": {true, packed}} {
		out, err := ngff.Create(ctx, store.Memory(), "", im.ImageSpec)
		if err != nil {
			t.Fatal(err)
		}
		defer out.Abort()
		w := NewWriter(out, d, Options{Trials: trial.New(1, 1)})
		for !w.warm.Load() {
			runtime.Gosched() // it is being warmed up beside us
		}
		w.warm.Store(c.warm)
		s := gputest.Stream(t, d)
		src, err := d.Memory().Get(int64(volume(im.tile) * 2))
		if err != nil {
			t.Fatal(err)
		}
		defer src.Release()
		s.Zero(src.Span)
		tile, err := w.Begin(s, []int{0, 0}, im.tile, src.Span)
		if err != nil {
			t.Fatal(err)
		}
		if tile.way != c.want || tile.timed() != c.warm {
			t.Errorf("%s: way %d, timed %v", name, tile.way, tile.timed())
		}
		if err := s.Wait(); err != nil {
			t.Fatal(err)
		}
		tile.Release()
	}
}
