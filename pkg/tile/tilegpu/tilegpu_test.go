//go:build !nocuda

package tilegpu

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"

	"strata/pkg/dtype"
	"strata/pkg/gpu"
	"strata/pkg/tile"
	"strata/pkg/tile/zarrsource"
	"strata/pkg/zarr"
	"strata/pkg/zarr/codec"
	"strata/pkg/zarr/store"
	"strata/pkg/zarr/zarrgpu"
	"strata/tests/cudaemu"
	"strata/tests/gputest"
)

func TestMain(m *testing.M) { cudaemu.Main(m) }

var ctx = context.Background()

func open(t *testing.T, memory int64) *gpu.Device {
	t.Helper()
	return gputest.Device(t, gpu.Limits{Memory: memory, Pinned: 64 << 20})
}

func array(t *testing.T, st store.Writer, shape, chunks []int, codecs codec.Chain) *zarr.Array {
	t.Helper()
	a, err := zarr.CreateArray(ctx, st, "", zarr.Spec{Shape: shape, Chunks: chunks, DType: dtype.Uint16, Codecs: codecs})
	if err != nil {
		t.Fatal(err)
	}
	n := 1
	for _, s := range shape {
		n *= s
	}
	v := make([]uint16, n)
	for i := range v {
		v[i] = uint16(i*40503>>3) | 1
	}
	if err := a.Write(ctx, a.Bounds(), dtype.Bytes(v)); err != nil {
		t.Fatal(err)
	}
	return a
}

// worker has what a goroutine needs to look at views.
type worker struct {
	stream *gpu.Stream
	dst    *gpu.Buffer
	out    []byte
}

func newWorker(t *testing.T, d *gpu.Device, pixels int) *worker {
	t.Helper()
	s, err := d.Stream()
	if err != nil {
		t.Fatal(err)
	}
	dst, err := d.Memory().Get(int64(2 * pixels))
	if err != nil {
		t.Fatal(err)
	}
	out, err := d.Host(2 * pixels)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		dst.Release()
		out.Release()
	})
	return &worker{s, dst, out.B}
}

// view is the view around a tile.
func (w *worker) view(l *Loader, index []int) ([]uint16, error) {
	err := l.View(ctx, w.stream, index, w.dst.Span)
	w.stream.Download(w.out, w.dst.Span)
	return dtype.Slice[uint16](w.out), errors.Join(err, w.stream.Wait())
}

func volume(shape []int) int {
	n := 1
	for _, s := range shape {
		n *= s
	}
	return n
}

// indices are all tiles of a grid.
func indices(grid []int) (all [][]int) {
	for n := range volume(grid) {
		at := make([]int, len(grid))
		for d := len(grid) - 1; d >= 0; d-- {
			at[d] = n % grid[d]
			n /= grid[d]
		}
		all = append(all, at)
	}
	return all
}

// Views are those of package tile to the last bit, by all border modes, with halos that
// are narrower than a tile and wider than the image.
func TestViews(t *testing.T) {
	d := open(t, 64<<20)
	for _, c := range []struct{ shape, chunks, radius []int }{
		{[]int{20}, []int{6}, []int{4}},
		{[]int{13, 17}, []int{4, 8}, []int{3, 5}},
		{[]int{5, 7}, []int{2, 3}, []int{9, 11}},
		{[]int{5, 9, 14}, []int{5, 4, 6}, []int{0, 2, 3}},
		{[]int{3, 4, 5}, []int{2, 2, 2}, []int{1, 1, 1}},
		{[]int{1, 6, 1}, []int{1, 3, 1}, []int{1, 2, 1}},
	} {
		a := array(t, store.Memory(), c.shape, c.chunks, nil)
		src, err := zarrsource.New(a)
		if err != nil {
			t.Fatal(err)
		}
		r, err := zarrgpu.NewReader(a, d, zarrgpu.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for _, mode := range []tile.BorderMode{tile.Zero, tile.Replicate, tile.Mirror, tile.Reflect, tile.Wrap} {
			for fill := range 2 {
				if fill > 0 && mode != tile.Zero {
					continue
				}
				border := tile.Border(mode)
				o := Options{Radius: c.radius, Border: mode}
				if fill > 0 {
					border, o.Fill = tile.BorderConstant(uint16(0x1234)), []byte{0x34, 0x12}
				}
				cpu, err := tile.New[uint16](src, tile.Radii(c.radius...), tile.Inline(), border)
				if err != nil {
					t.Fatal(err)
				}
				l, err := New(r, o)
				if err != nil {
					t.Fatal(err)
				}
				if !slices.Equal(l.ViewShape(), cpu.ViewShape(0)) || !slices.Equal(l.Grid(), cpu.Grid(0)) {
					t.Fatalf("%v: views of %v in %v", c, l.ViewShape(), l.Grid())
				}
				w := newWorker(t, d, volume(l.ViewShape()))
				for _, index := range indices(l.Grid()) {
					want, err := cpu.View(ctx, 0, index)
					if err != nil {
						t.Fatal(err)
					}
					got, err := w.view(l, index)
					if err != nil {
						t.Fatal(err)
					}
					if !slices.Equal(got, want.Data()) {
						t.Errorf("%v, border %d (%d), tile %v: %d, want %d", c, mode, fill, index, got, want.Data())
					}
					g, err := l.Geometry(index)
					if err != nil || fmt.Sprint(g) != fmt.Sprint(want.Geometry) {
						t.Errorf("%v: %v lies at %v, want %v", c, index, g, want.Geometry)
					}
					if err := want.Release(); err != nil {
						t.Fatal(err)
					}
				}
				if err := errors.Join(l.Close(), cpu.Close()); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
}

// Several goroutines make views from one loader: with room for all tiles each goes to the
// device once, with room for those of one view all views are right all the same.
func TestShared(t *testing.T) {
	shape, chunks, radius := []int{40, 60}, []int{8, 10}, []int{3, 4}
	for _, all := range []bool{true, false} {
		t.Run(fmt.Sprint(all), func(t *testing.T) {
			d := open(t, 64<<20)
			a := array(t, store.Folder(t.TempDir()), shape, chunks, codec.Chain{codec.Zstd(1, false)})
			counts := new(zarrgpu.Counts)
			r, err := zarrgpu.NewReader(a, d, zarrgpu.Options{Counts: counts})
			if err != nil {
				t.Fatal(err)
			}
			o := Options{Radius: radius, Border: tile.Mirror, Loads: 2}
			if all {
				o.Budget = 1 << 20
			}
			l, err := New(r, o)
			if err != nil {
				t.Fatal(err)
			}
			src, err := zarrsource.New(a)
			if err != nil {
				t.Fatal(err)
			}
			cpu, err := tile.New[uint16](src, tile.Radii(radius...), tile.Inline(), tile.Border(tile.Mirror), tile.ViewsAvailable(4))
			if err != nil {
				t.Fatal(err)
			}
			var g errgroup.Group
			for k := range 4 {
				w := newWorker(t, d, volume(l.ViewShape()))
				g.Go(func() error {
					list := indices(l.Grid())
					for i := range list {
						index := list[(i*7+k*5)%len(list)]
						got, err := w.view(l, index)
						if err != nil {
							return err
						}
						want, err := cpu.View(ctx, 0, index)
						if err != nil {
							return err
						}
						if !slices.Equal(got, want.Data()) {
							return fmt.Errorf("tile %v differs", index)
						}
						if err := want.Release(); err != nil {
							return err
						}
					}
					return nil
				})
			}
			if err := g.Wait(); err != nil {
				t.Error(err)
			}
			n := counts.Bytes(zarrgpu.NVComp) + counts.Bytes(zarrgpu.Host)
			if whole := int64(2 * volume(shape)); all && n != whole || !all && n <= whole {
				t.Errorf("%d bytes of tiles were loaded, the image has %d", n, whole)
			}
			if err := errors.Join(l.Close(), cpu.Close()); err != nil {
				t.Error(err)
			}
		})
	}
}

// Views that are queued one after the other, without waiting for the stream, are right
// although there is room for the tiles of one only.
func TestQueued(t *testing.T) {
	d := open(t, 64<<20)
	a := array(t, store.Memory(), []int{30}, []int{5}, nil)
	r, err := zarrgpu.NewReader(a, d, zarrgpu.Options{})
	if err != nil {
		t.Fatal(err)
	}
	l, err := New(r, Options{Radius: []int{2}, Border: tile.Replicate})
	if err != nil {
		t.Fatal(err)
	}
	w := newWorker(t, d, 6*9)
	for i := range 6 {
		if err := l.View(ctx, w.stream, []int{i}, w.dst.From(int64(18*i), 18)); err != nil {
			t.Fatal(err)
		}
	}
	w.stream.Download(w.out, w.dst.Span)
	if err := w.stream.Wait(); err != nil {
		t.Fatal(err)
	}
	all := make([]uint16, 30)
	if err := a.Read(ctx, a.Bounds(), dtype.Bytes(all)); err != nil {
		t.Fatal(err)
	}
	for i, v := range dtype.Slice[uint16](w.out) {
		if want := all[min(max(i/9*5+i%9-2, 0), 29)]; v != want {
			t.Errorf("element %d is %d, want %d", i, v, want)
		}
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
}

// A tile that cannot be read is an error of the views that need it, and of no others; it
// is tried again for those that come later.
func TestFaults(t *testing.T) {
	d := open(t, 64<<20)
	a := array(t, store.Folder(t.TempDir()), []int{8, 40}, []int{8, 10}, nil)
	file := a.Store().Location(a.ChunkKey([]int{0, 2}))
	whole, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, whole[:50], 0o666); err != nil {
		t.Fatal(err)
	}
	r, err := zarrgpu.NewReader(a, d, zarrgpu.Options{})
	if err != nil {
		t.Fatal(err)
	}
	l, err := New(r, Options{Radius: []int{0, 3}})
	if err != nil {
		t.Fatal(err)
	}
	w := newWorker(t, d, volume(l.ViewShape()))
	if _, err := w.view(l, []int{0, 0}); err != nil {
		t.Error(err)
	}
	for range 2 {
		if _, err := w.view(l, []int{0, 1}); err == nil || !strings.Contains(err.Error(), file) {
			t.Errorf("a short chunk: %v", err)
		}
	}
	if err := os.WriteFile(file, whole, 0o666); err != nil {
		t.Fatal(err)
	}
	a.Close()
	if _, err := w.view(l, []int{0, 1}); err != nil {
		t.Error(err)
	}
	if err := l.View(ctx, w.stream, []int{0, 4}, w.dst.Span); err == nil {
		t.Error("a view outside the image")
	}
	if err := l.View(ctx, w.stream, []int{0, 1}, w.dst.From(0, 8)); err == nil {
		t.Error("a view in too little memory")
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if r, err = zarrgpu.NewReader(a, open(t, 1<<10), zarrgpu.Options{}); err != nil {
		t.Fatal(err)
	}
	if _, err := New(r, Options{Radius: []int{0, 3}}); !errors.Is(err, gpu.ErrMemory) {
		t.Errorf("no memory: %v", err)
	}
}
