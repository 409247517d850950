package zarr_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"strata/pkg/dtype"
	"strata/pkg/meter"
	"strata/pkg/zarr"
	"strata/pkg/zarr/codec"
	"strata/pkg/zarr/store"
)

var errInjected = errors.New("injected")

// faulty fails one operation of each kind that its fields name, counted down.
type faulty struct {
	store.Writer
	left  atomic.Int64 // operations that still succeed
	err   error
	short bool // reads return fewer bytes instead of failing
	only  string
}

func (f *faulty) fails(op string) error {
	if f.only != "" && f.only != op {
		return nil
	}
	if f.left.Add(-1) < 0 {
		return f.err
	}
	return nil
}

func (f *faulty) Get(ctx context.Context, key string, dst []byte, limit int64) ([]byte, error) {
	if err := f.fails("get"); err != nil {
		return nil, fmt.Errorf("%s: %w", f.Location(key), err)
	}
	return f.Writer.Get(ctx, key, dst, limit)
}

func (f *faulty) Open(ctx context.Context, key string) (store.Object, error) {
	if err := f.fails("open"); err != nil {
		return nil, fmt.Errorf("%s: %w", f.Location(key), err)
	}
	o, err := f.Writer.Open(ctx, key)
	return &faultyObject{o, f, key}, err
}

func (f *faulty) Put(ctx context.Context, key string, parts ...[]byte) error {
	if err := f.fails("put"); err != nil {
		return fmt.Errorf("%s: %w", f.Location(key), err)
	}
	return f.Writer.Put(ctx, key, parts...)
}

func (f *faulty) Create(ctx context.Context, key string) (store.PendingObject, error) {
	if err := f.fails("create"); err != nil {
		return nil, fmt.Errorf("%s: %w", f.Location(key), err)
	}
	o, err := f.Writer.Create(ctx, key)
	return &faultyPending{o, f, key}, err
}

type faultyObject struct {
	store.Object
	f   *faulty
	key string
}

func (o *faultyObject) ReadAt(ctx context.Context, p []byte, off int64) (int, error) {
	if err := o.f.fails("readat"); err != nil {
		if o.f.short {
			n, _ := o.Object.ReadAt(ctx, p[:len(p)/2], off)
			return n, io.EOF
		}
		return 0, fmt.Errorf("%s: %w", o.f.Location(o.key), err)
	}
	return o.Object.ReadAt(ctx, p, off)
}

type faultyPending struct {
	store.PendingObject
	f   *faulty
	key string
}

func (o *faultyPending) WriteAt(p []byte, off int64) (int, error) {
	if err := o.f.fails("writeat"); err != nil {
		return 0, fmt.Errorf("%s: %w", o.f.Location(o.key), err)
	}
	return o.PendingObject.WriteAt(p, off)
}

func (o *faultyPending) ReadAt(p []byte, off int64) (int, error) {
	if err := o.f.fails("readback"); err != nil {
		return 0, fmt.Errorf("%s: %w", o.f.Location(o.key), err)
	}
	return o.PendingObject.ReadAt(p, off)
}

func (o *faultyPending) Commit() error {
	if err := o.f.fails("commit"); err != nil {
		return errors.Join(fmt.Errorf("%s: %w", o.f.Location(o.key), err), o.Abort())
	}
	return o.PendingObject.Commit()
}

var faultSpecs = map[string]zarr.Spec{
	"raw":    {Chunks: []int{8, 8}},
	"zstd":   {Chunks: []int{8, 8}, Codecs: codec.Chain{codec.Zstd(1, false)}},
	"shards": {Chunks: []int{4, 4}, Shard: []int{16, 16}, Codecs: codec.Chain{codec.Zstd(1, false)}},
	"v2":     {Format: 2, Chunks: []int{8, 8}, Order: 'F'},
}

func faultArray(t *testing.T, st store.Writer, spec zarr.Spec) *zarr.Array {
	t.Helper()
	spec.Shape, spec.DType = []int{30, 30}, dtype.Uint16
	a, err := zarr.CreateArray(t.Context(), st, "x", spec, zarr.Workers(2))
	if err != nil {
		t.Fatal(err)
	}
	src := make([]byte, 1800)
	for i := range src {
		src[i] = byte(i * 7)
	}
	if err := a.Write(t.Context(), a.Bounds(), src); err != nil {
		t.Fatal(err)
	}
	return a
}

// Whichever operation of a store fails, the call fails with its error, names the
// file, and what is stored stays whole: each chunk file is the old or the new one.
func TestStoreFaults(t *testing.T) {
	ctx := t.Context()
	for name, spec := range faultSpecs {
		t.Run(name, func(t *testing.T) {
			st := store.Folder(t.TempDir())
			old := make([]byte, 1800)
			a := faultArray(t, st, spec)
			if err := a.Read(ctx, a.Bounds(), old); err != nil {
				t.Fatal(err)
			}
			part := zarr.Region{Start: []int{3, 5}, Shape: []int{20, 21}}
			for _, fault := range []struct {
				err   error
				short bool
			}{{errInjected, false}, {syscall.ENOSPC, false}, {io.ErrUnexpectedEOF, true}} {
				for n := 0; ; n++ {
					f := &faulty{Writer: st, err: fault.err, short: fault.short}
					f.left.Store(1 << 40)
					a, err := zarr.OpenArray(ctx, f, "x", zarr.Workers(1+n%3))
					if err != nil {
						t.Fatal(err)
					}
					if fault.short {
						f.only = "readat"
					}
					f.left.Store(int64(n))
					src := bytes.Repeat([]byte{byte(n)}, 20*21*2)
					err = a.Write(ctx, part, src)
					if err == nil {
						err = a.Read(ctx, a.Bounds(), make([]byte, 1800))
					}
					a.Close()
					if err == nil {
						if n == 0 && !fault.short {
							t.Error("nothing failed")
						}
						break
					}
					if !errors.Is(err, fault.err) {
						t.Fatalf("operation %d: %v, want %v", n, err, fault.err)
					}
					if !strings.Contains(err.Error(), st.Location("x")+"/") {
						t.Errorf("operation %d: error names no file: %v", n, err)
					}
					checkWhole(t, st, old, part)
				}
			}
			if left := tempFiles(t, st.Location("")); len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}

// checkWhole reads the array: outside of part all is as before.
func checkWhole(t *testing.T, st store.Store, old []byte, part zarr.Region) {
	t.Helper()
	a, err := zarr.OpenArray(t.Context(), st, "x")
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	got := make([]byte, len(old))
	if err := a.Read(t.Context(), a.Bounds(), got); err != nil {
		t.Fatal(err)
	}
	for i := range got {
		y, x := i/60, i%60/2
		inside := y >= part.Start[0] && y < part.Start[0]+part.Shape[0] && x >= part.Start[1] && x < part.Start[1]+part.Shape[1]
		if got[i] != old[i] && !inside {
			t.Fatalf("byte %d changed", i)
		}
	}
}

func tempFiles(t *testing.T, dir string) (left []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if name := filepath.Base(path); err == nil && !d.IsDir() && strings.HasPrefix(name, ".") && !strings.HasPrefix(name, ".z") {
			left = append(left, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return left
}

// A chunk file that is cut while the array holds it open is an error that names
// it, not old or zero bytes.
func TestFileCutWhileOpen(t *testing.T) {
	ctx := t.Context()
	for name, spec := range faultSpecs {
		t.Run(name, func(t *testing.T) {
			st := store.Folder(t.TempDir())
			a := faultArray(t, st, spec)
			got := make([]byte, 1800)
			if err := a.Read(ctx, a.Bounds(), got); err != nil {
				t.Fatal(err)
			}
			key := a.ChunkKey([]int{0, 0})
			if err := os.Truncate(st.Location(key), 20); err != nil {
				t.Fatal(err)
			}
			err := a.Read(ctx, a.Bounds(), got)
			if err == nil || !strings.Contains(err.Error(), st.Location(key)) {
				t.Errorf("got %v", err)
			}
			a.Close()
			var fe *zarr.FormatError
			if err = a.Read(ctx, a.Bounds(), got); !errors.As(err, &fe) || fe.Path != st.Location(key) {
				t.Errorf("after Close: %v", err)
			}
		})
	}
}

// Flipped bits never panic; with checksums they are always seen.
func TestFlippedBits(t *testing.T) {
	ctx := t.Context()
	spec := zarr.Spec{Chunks: []int{8, 8}, Shard: []int{16, 16}, Codecs: codec.Chain{codec.Zstd(1, false), codec.CRC32C()}}
	st := store.Memory()
	a := faultArray(t, st, spec)
	key := a.ChunkKey([]int{0, 0})
	good, err := st.Get(ctx, key, nil, -1)
	if err != nil {
		t.Fatal(err)
	}
	got := make([]byte, 1800)
	for i := range good {
		bad := bytes.Clone(good)
		bad[i] ^= 1 << (i % 8)
		if err := st.Put(ctx, key, bad); err != nil {
			t.Fatal(err)
		}
		a.Close()
		var fe *zarr.FormatError
		if err := a.Read(ctx, a.Bounds(), got); !errors.As(err, &fe) {
			t.Errorf("byte %d flipped: %v", i, err)
		}
	}
}

// blocked waits in every ReadAt and Get until the context ends.
type blocked struct {
	store.Writer
	entered chan struct{}
	armed   atomic.Bool
}

func (b *blocked) wait(ctx context.Context) error {
	if !b.armed.Load() {
		return nil
	}
	select {
	case b.entered <- struct{}{}:
	default:
	}
	<-ctx.Done()
	return ctx.Err()
}

func (b *blocked) Get(ctx context.Context, key string, dst []byte, limit int64) ([]byte, error) {
	if err := b.wait(ctx); err != nil {
		return nil, err
	}
	return b.Writer.Get(ctx, key, dst, limit)
}

func (b *blocked) Open(ctx context.Context, key string) (store.Object, error) {
	if err := b.wait(ctx); err != nil {
		return nil, err
	}
	return b.Writer.Open(ctx, key)
}

func (b *blocked) Put(ctx context.Context, key string, parts ...[]byte) error {
	if err := b.wait(ctx); err != nil {
		return err
	}
	return b.Writer.Put(ctx, key, parts...)
}

func (b *blocked) Create(ctx context.Context, key string) (store.PendingObject, error) {
	if err := b.wait(ctx); err != nil {
		return nil, err
	}
	return b.Writer.Create(ctx, key)
}

// A call whose context ends returns its error, and no goroutine stays.
func TestCancel(t *testing.T) {
	for name, spec := range faultSpecs {
		for _, workers := range []int{1, 4} {
			t.Run(fmt.Sprintf("%s/%d", name, workers), func(t *testing.T) {
				b := &blocked{Writer: store.Memory(), entered: make(chan struct{}, 1)}
				a := faultArray(t, b, spec).With(zarr.Workers(workers))
				before := runtime.NumGoroutine()
				b.armed.Store(true)
				for _, call := range []func(context.Context) error{
					func(ctx context.Context) error { return a.Read(ctx, a.Bounds(), make([]byte, 1800)) },
					func(ctx context.Context) error { return a.Write(ctx, a.Bounds(), make([]byte, 1800)) },
				} {
					ctx, cancel := context.WithCancel(t.Context())
					done := make(chan error)
					go func() { done <- call(ctx) }()
					<-b.entered
					cancel()
					if err := <-done; !errors.Is(err, context.Canceled) {
						t.Errorf("got %v", err)
					}
					if err := call(ctx); !errors.Is(err, context.Canceled) {
						t.Errorf("called with a context that has ended: %v", err)
					}
				}
				for range 100 {
					if runtime.NumGoroutine() <= before {
						return
					}
					time.Sleep(time.Millisecond) // goroutines that have returned may still be counted
				}
				t.Errorf("%d goroutines, before %d", runtime.NumGoroutine(), before)
			})
		}
	}
}

func TestReadOnlyStore(t *testing.T) {
	ctx := t.Context()
	st := store.Memory()
	faultArray(t, st, zarr.Spec{Chunks: []int{8, 8}})
	a, err := zarr.OpenArray(ctx, struct{ store.Store }{st}, "x")
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Write(ctx, a.Bounds(), make([]byte, 1800)); !errors.Is(err, zarr.ErrReadOnly) {
		t.Errorf("Write: %v", err)
	}
	if err := a.SetAttributes(ctx, nil); !errors.Is(err, zarr.ErrReadOnly) {
		t.Errorf("SetAttributes: %v", err)
	}
}

func TestBudget(t *testing.T) {
	ctx := t.Context()
	a := faultArray(t, store.Memory(), faultSpecs["zstd"])
	dst := make([]byte, 1800)
	for _, c := range []struct {
		budget int64
		ok     bool
	}{{0, true}, {1 << 20, true}, {100, false}} {
		err := a.With(zarr.Budget(c.budget)).Read(ctx, a.Bounds(), dst)
		if c.ok != (err == nil) || !c.ok && !errors.Is(err, zarr.ErrBudget) {
			t.Errorf("budget %d: %v", c.budget, err)
		}
	}
}

func TestMeter(t *testing.T) {
	ctx := t.Context()
	for name, spec := range faultSpecs {
		var m meter.Meter
		st := store.Folder(t.TempDir())
		a := faultArray(t, st, spec).With(zarr.Meter(&m))
		buf := make([]byte, 1800)
		if err := a.Read(ctx, a.Bounds(), buf); err != nil {
			t.Fatal(err)
		}
		if err := a.Write(ctx, a.Bounds(), buf); err != nil {
			t.Fatal(err)
		}
		var size int64
		err := filepath.WalkDir(st.Location("x"), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || strings.HasPrefix(d.Name(), ".z") || d.Name() == "zarr.json" {
				return err
			}
			info, err := d.Info()
			size += info.Size()
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		least := size
		if spec.Codecs == nil {
			least = 1800 // what lies outside the array is not read
		}
		if m.BytesRead() < least || m.BytesRead() > size || m.BytesWritten() != size {
			t.Errorf("%s: %d bytes read, %d written, files have %d", name, m.BytesRead(), m.BytesWritten(), size)
		}
		for _, p := range []meter.Phase{meter.Read, meter.Encode, meter.Write} {
			if m.Busy(p) <= 0 {
				t.Errorf("%s: no time in %v", name, p)
			}
		}
		if spec.Codecs != nil && m.Busy(meter.Decode) <= 0 {
			t.Errorf("%s: no time in decode", name)
		}
	}
}

// Requests that make no sense are refused and name the array.
func TestWrongCalls(t *testing.T) {
	ctx := t.Context()
	st := store.Memory()
	a := faultArray(t, st, zarr.Spec{Chunks: []int{8, 8}})
	b := make([]byte, 1800)
	for name, err := range map[string]error{
		"too short":   a.Read(ctx, a.Bounds(), b[:1798]),
		"too long":    a.Write(ctx, a.Bounds(), append(b, 0)),
		"rank":        a.Read(ctx, zarr.Region{Start: []int{0}, Shape: []int{1}}, b),
		"outside":     a.Read(ctx, zarr.Region{Start: []int{0, 29}, Shape: []int{30, 2}}, b),
		"negative":    a.Read(ctx, zarr.Region{Start: []int{-1, 0}, Shape: []int{1, 1}}, b),
		"overflow":    a.Read(ctx, zarr.Region{Start: []int{1 << 62, 0}, Shape: []int{1 << 62, 1}}, b),
		"type":        zarr.ReadSlice(ctx, a, a.Bounds(), make([]int16, 900)),
		"write type":  zarr.WriteSlice(ctx, a, a.Bounds(), make([]float32, 900)),
		"strides":     a.ReadStrided(ctx, a.Bounds(), b, []int{60, 4}),
		"stride sign": a.ReadStrided(ctx, a.Bounds(), b, []int{60, -2}),
		"stride rank": a.WriteStrided(ctx, a.Bounds(), b, []int{2}),
		"chunk":       a.WriteChunk(ctx, []int{4, 0}, b[:128]),
		"chunk size":  a.WriteChunk(ctx, []int{3, 0}, b[:128]),
	} {
		if err == nil || !strings.Contains(err.Error(), a.Location()) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := a.NewShard(ctx, []int{0, 0}); err == nil {
		t.Error("NewShard of an array without shards")
	}
	if _, err := zarr.OpenArray(ctx, st, "y"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("missing array: %v", err)
	}
	if _, err := zarr.OpenGroup(ctx, st, "x"); err == nil {
		t.Error("an array opened as a group")
	}
	if err := a.WriteChunk(ctx, []int{3, 0}, b[:6*8*2]); err != nil {
		t.Errorf("cut chunk: %v", err)
	}
	for name, s := range map[string]zarr.Spec{
		"format":    {Format: 4},
		"chunks":    {Chunks: []int{0, 1}},
		"rank":      {Chunks: []int{1}},
		"shard v2":  {Format: 2, Shard: []int{8, 8}},
		"shard":     {Shard: []int{12, 8}},
		"order":     {Order: 'K'},
		"separator": {Separator: "x"},
		"fill":      {Fill: "nothing"},
		"fill size": {Fill: []byte{1}},
		"fill low":  {Fill: -1},
		"names":     {DimensionNames: []string{"x"}},
		"names v2":  {Format: 2, DimensionNames: []string{"y", "x"}},
		"attribute": {Attributes: map[string]any{"f": func() {}}},
		"huge":      {Chunks: []int{1 << 40, 1 << 40}},
		"no type":   {DType: dtype.Invalid},
	} {
		s.Shape = []int{30, 30}
		if s.Chunks == nil {
			s.Chunks = []int{8, 8}
		}
		if name != "no type" {
			s.DType = dtype.Uint16
		}
		if _, err := zarr.CreateArray(ctx, st, "z", s); err == nil {
			t.Errorf("%s: was created", name)
		}
	}
}

// counting counts the objects of a store that are open.
type counting struct {
	store.Writer
	open, most atomic.Int64
}

func (c *counting) Open(ctx context.Context, key string) (store.Object, error) {
	o, err := c.Writer.Open(ctx, key)
	if err != nil {
		return nil, err
	}
	if n := c.open.Add(1); n > c.most.Load() {
		c.most.Store(n)
	}
	return &countedObject{Object: o, c: c}, nil
}

type countedObject struct {
	store.Object
	c      *counting
	closed atomic.Bool
}

func (o *countedObject) Close() error {
	if !o.closed.Swap(true) {
		o.c.open.Add(-1)
	}
	return o.Object.Close()
}

// An array of many files keeps few of them open, and none after Close or when
// nobody holds it any more.
func TestOpenFilesAreBounded(t *testing.T) {
	ctx := t.Context()
	st := &counting{Writer: store.Memory()}
	a, err := zarr.CreateArray(ctx, st, "", zarr.Spec{Shape: []int{400}, Chunks: []int{1}, Shard: []int{2}, DType: dtype.Uint8}, zarr.Workers(3))
	if err != nil {
		t.Fatal(err)
	}
	data := make([]byte, 400)
	if err := a.Write(ctx, a.Bounds(), data); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if err := a.Read(ctx, a.Bounds(), data); err != nil {
			t.Fatal(err)
		}
	}
	if n := st.most.Load(); n > 40 || n < 10 {
		t.Errorf("%d files open at once", n)
	}
	a.Close()
	if n := st.open.Load(); n != 0 {
		t.Errorf("%d files open after Close", n)
	}
	if err := a.Read(ctx, a.Bounds(), data); err != nil {
		t.Fatal(err)
	}
	runtime.KeepAlive(a)
	for range 100 {
		runtime.GC()
		if st.open.Load() == 0 {
			return
		}
		time.Sleep(time.Millisecond) // finalizers run in their own goroutine
	}
	t.Errorf("%d files open after the array was dropped", st.open.Load())
}
