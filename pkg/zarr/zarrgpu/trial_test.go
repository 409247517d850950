//go:build !nocuda

package zarrgpu

import (
	"bytes"
	"testing"

	"strata/pkg/dtype"
	"strata/pkg/gpu"
	"strata/pkg/gpu/trial"
	"strata/pkg/settings"
	"strata/pkg/zarr"
	"strata/pkg/zarr/codec"
	"strata/pkg/zarr/store"
)

// TestTrial: the first regions of an array come in turn by the device's way and the host's, with the same voxels; then
// all come by the faster one, also by another reader. A backend that is asked for is not tried.
func TestTrial(t *testing.T) {
	d, s := open(t, gpu.Limits{Memory: 64 << 20, Pinned: 64 << 20})
	for name, c := range map[string]struct {
		codecs codec.Chain
		ways   [2]Way
	}{
		"blosc": {codec.Chain{blosc(t, "zstd", codec.ByteShuffle, 2)}, [2]Way{NVComp, Host}},
		"zstd":  {codec.Chain{codec.Zstd(1, true)}, [2]Way{NVComp, Host}},
		"raw":   {nil, [2]Way{GDS, Bounce}},
	} {
		t.Run(name, func(t *testing.T) {
			a := array(t, store.Folder(t.TempDir()), zarr.Spec{Shape: []int{8, 60, 40}, Chunks: []int{1, 30, 20}, DType: dtype.Uint16, Codecs: c.codecs})
			b := trial.New(2, 1)
			bring := func(o Options) (by [2]int64) {
				o.Counts, o.Trials, o.Files = new(Counts), b, files(t, d, settings.Auto)
				r, err := NewReader(a, d, o)
				if err != nil {
					t.Fatal(err)
				}
				slot, err := r.Slot([]int{1, 60, 40})
				if err != nil {
					t.Fatal(err)
				}
				defer slot.Release()
				for z := range a.Shape()[0] {
					throughSlot(t, slot, s, zarr.Region{Start: []int{z, 0, 0}, Shape: []int{1, 60, 40}})
				}
				for i, w := range c.ways {
					by[i] = o.Counts.Bytes(w) / r.Bytes([]int{1, 60, 40})
				}
				return by
			}
			if by := bring(Options{Backend: c.ways[0].String()}); by != [2]int64{8, 0} || len(b.Outcomes()) != 0 {
				t.Errorf("of a backend that was asked for %v came by %v: %v", by, c.ways, b.Outcomes())
			}
			first := bring(Options{})
			o := b.Outcomes()
			if len(o) != 1 || o[0].What != "read" || o[0].Array != a.Location() || o[0].Ways[0].Name != c.ways[0].String() || o[0].Ways[1].Name != c.ways[1].String() {
				t.Fatal(o)
			}
			want, all := [2]int64{6, 2}, [2]int64{8, 0}
			if o[0].Chosen == c.ways[1].String() {
				want, all = [2]int64{2, 6}, [2]int64{0, 8}
			}
			if again := bring(Options{}); first != want || again != all || len(b.Outcomes()) != 1 {
				t.Errorf("%v and then %v came by %v, %v", first, again, c.ways, b.Outcomes())
			}
		})
	}
}

// throughSlot brings a region to the device and compares it with what the host reads.
func throughSlot(t *testing.T, slot *Slot, s *gpu.Stream, region zarr.Region) {
	t.Helper()
	n := int(slot.Reader().Bytes(region.Shape))
	want := make([]byte, n)
	if err := slot.Reader().Array().Read(ctx, region, want); err != nil {
		t.Fatal(err)
	}
	dst, err := s.Device().Memory().Get(int64(n))
	if err != nil {
		t.Fatal(err)
	}
	defer dst.Release()
	out, err := s.Device().Host(n)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Release()
	if err := slot.Fetch(ctx, region); err != nil {
		t.Fatal(err)
	}
	slot.Into(s, dst.Span)
	s.Download(out.B, dst.Span)
	if err := s.Wait(); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(out.B, want) {
		t.Errorf("%v differs", region)
	}
}

// TestTrialOfKind: an array with the codecs and chunks of one that was tried comes by the way that was the faster; one
// with others, and raw chunks, which lie somewhere else, are tried.
func TestTrialOfKind(t *testing.T) {
	d, s := open(t, gpu.Limits{Memory: 64 << 20, Pinned: 64 << 20})
	zstd := codec.Chain{codec.Zstd(1, true)}
	b := trial.New(1, 1)
	for i, c := range []struct {
		codecs codec.Chain
		chunk  int
		tried  int // trials by then
	}{{zstd, 30, 1}, {zstd, 30, 1}, {zstd, 20, 2}, {codec.Chain{blosc(t, "zstd", codec.ByteShuffle, 2)}, 30, 3}, {nil, 30, 4}, {nil, 30, 5}} {
		a := array(t, store.Folder(t.TempDir()), zarr.Spec{Shape: []int{3, 60, 40}, Chunks: []int{1, c.chunk, 20}, DType: dtype.Uint16, Codecs: c.codecs})
		r, err := NewReader(a, d, Options{Trials: b, Files: files(t, d, settings.Auto)})
		if err != nil {
			t.Fatal(err)
		}
		slot, err := r.Slot([]int{1, 60, 40})
		if err != nil {
			t.Fatal(err)
		}
		for z := range a.Shape()[0] {
			throughSlot(t, slot, s, zarr.Region{Start: []int{z, 0, 0}, Shape: []int{1, 60, 40}})
		}
		slot.Release()
		if n := len(b.Outcomes()); n != c.tried {
			t.Errorf("array %d: %d trials, want %d", i, n, c.tried)
		}
	}
}
