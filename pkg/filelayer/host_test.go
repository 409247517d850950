package filelayer

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"strata/pkg/settings"
)

// Small reads and writes are done by the caller: nothing is allocated.
func TestSmallReadsAllocateNothing(t *testing.T) {
	content := random(64 << 10)
	f := openFile(t, pool(t, nil, settings.Default()), file(t, content), os.O_RDWR)
	b := make([]byte, 4096)
	read := testing.AllocsPerRun(100, func() {
		if err := f.ReadAt(context.Background(), b, 8192); err != nil {
			t.Fatal(err)
		}
	})
	write := testing.AllocsPerRun(100, func() {
		if err := f.WriteAt(context.Background(), b, 8192); err != nil {
			t.Fatal(err)
		}
	})
	if read != 0 || write != 0 || !bytes.Equal(b, content[8192:12288]) {
		t.Errorf("%v allocations a read, %v a write; right bytes: %v", read, write, bytes.Equal(b, content[8192:12288]))
	}
}

func TestSmallReadsAndWritesFailAsLargeOnes(t *testing.T) {
	p := pool(t, nil, settings.Default())
	f := openFile(t, p, file(t, random(10_000)), os.O_RDONLY)
	b := make([]byte, 4000)
	if err := f.ReadAt(context.Background(), b, 8000); !errors.Is(err, io.ErrUnexpectedEOF) || err.Error() != "read "+f.Name()+" at byte 10000: the file ends, 2000 bytes are missing: unexpected EOF" {
		t.Errorf("beyond the end: %v", err)
	}
	if err := f.WriteAt(context.Background(), b, 0); err == nil {
		t.Error("a file that is open for reading was written")
	}
	if err := f.ReadAt(context.Background(), b, -1); err == nil {
		t.Error("a negative position was read")
	}
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	if err := f.ReadAt(ended, b, 0); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	if err := f.ReadAt(context.Background(), nil, 1<<40); err != nil {
		t.Errorf("nothing: %v", err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if err := f.ReadAt(context.Background(), b, 0); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("closed: %v", err)
	}
}

func TestStatsOfFilesAndPool(t *testing.T) {
	s := settings.Default()
	s.TaskSize = 64 << 10
	p := pool(t, nil, s)
	content := random(300 << 10)
	a, b := openFile(t, p, file(t, content), os.O_RDONLY), openFile(t, p, file(t, content), os.O_RDWR)
	got := make([]byte, len(content))
	if err := a.ReadAt(context.Background(), got, 0); err != nil || !bytes.Equal(got, content) {
		t.Fatal(err)
	}
	if err := b.WriteAt(context.Background(), content[:1000], 5); err != nil {
		t.Fatal(err)
	}
	if n := a.Stats().Host; n != int64(len(content)) {
		t.Errorf("%d bytes of the first file", n)
	}
	if n := b.Stats().Host; n != 1000 {
		t.Errorf("%d bytes of the second", n)
	}
	all := p.Stats()
	if all.Host != int64(len(content))+1000 {
		t.Errorf("%d bytes of all", all.Host)
	}
	if n, m := a.Stats().Latency.Count(), all.Latency.Count(); n != 5 || m != 6 {
		t.Errorf("%d tasks of the first file, %d of all; want 5 and 6", n, m)
	}
}

func TestLatency(t *testing.T) {
	var l Latency
	if l.Quantile(0.5) != 0 {
		t.Error("the median of nothing")
	}
	var c times
	c.since(time.Now().Add(-3 * time.Millisecond))
	c.since(time.Now().Add(time.Hour)) // a clock that was set back
	for range 98 {
		c.since(time.Now().Add(-100 * time.Microsecond))
	}
	l = c.load()
	if l.Count() != 100 {
		t.Errorf("%d", l.Count())
	}
	if q := l.Quantile(0.5); q < 128*time.Microsecond || q > 512*time.Microsecond {
		t.Errorf("median %v", q)
	}
	if q := l.Quantile(1); q < 4096*time.Microsecond || q > 16384*time.Microsecond {
		t.Errorf("largest %v", q)
	}
	c.since(time.Now().Add(-1000 * time.Hour))
	if l = c.load(); l[31] != 1 {
		t.Error("the longest have no class")
	}
}

func TestBatch(t *testing.T) {
	s := settings.Default()
	s.TaskSize = 10_000
	p := pool(t, nil, s)
	content := random(200_000)
	in := openFile(t, p, file(t, content), os.O_RDONLY)
	out := openFile(t, p, filepath.Join(t.TempDir(), "out"), os.O_RDWR|os.O_CREATE)
	got := make([]byte, len(content))
	var ops []Op
	for at := 0; at < len(content); at += 25_000 {
		ops = append(ops, Op{File: in, Off: int64(at), Host: got[at : at+25_000]}, Op{File: out, Off: int64(at), Host: content[at : at+25_000], Write: true})
	}
	b := Begin(context.Background(), ops...)
	if err := b.Wait(); err != nil || b.Len() != 16 || b.Done() != 16 {
		t.Fatalf("%d of %d, %v", b.Done(), b.Len(), err)
	}
	written, err := os.ReadFile(out.Name())
	if err != nil || !bytes.Equal(got, content) || !bytes.Equal(written, content) {
		t.Errorf("%v; read %v, written %v", err, bytes.Equal(got, content), bytes.Equal(written, content))
	}
	err = Begin(context.Background(), Op{File: in, Host: got[:10]}, Op{File: in, Off: 199_999, Host: got[10:20]}, Op{File: in, Off: 1 << 40, Host: got[20:30]}).Wait()
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok || len(joined.Unwrap()) != 2 || !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("two of three fail: %v", err)
	}
	c := Begin(context.Background(), ops...)
	c.Cancel()
	if err := c.Wait(); err != nil && !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	if err := Begin(context.Background()).Wait(); err != nil {
		t.Errorf("nothing: %v", err)
	}
}

func TestMap(t *testing.T) {
	content := random(100_000)
	path := file(t, content)
	ctx := context.Background()
	for _, c := range [][2]int64{{0, 0}, {0, 100_000}, {5000, 0}, {4096, 8192}, {99_999, 1}, {100_000, 0}} {
		m, err := OpenMap(path, c[0], c[1])
		if err != nil {
			t.Fatal(c, err)
		}
		n := c[1]
		if n == 0 {
			n = 100_000 - c[0]
		}
		if err := errors.Join(m.Prefetch(0, 0), m.Random()); err != nil {
			t.Error(c, err)
		}
		got := make([]byte, n+10)
		if k, err := m.ReadAt(ctx, got, 0); int64(k) != n || err != io.EOF || !bytes.Equal(got[:n], content[c[0]:c[0]+n]) || m.Size() != n {
			t.Errorf("%v: %d bytes of %d, %v", c, k, m.Size(), err)
		}
		if n > 10 {
			if k, err := m.ReadAt(ctx, got[:5], 3); k != 5 || err != nil || !bytes.Equal(got[:5], content[c[0]+3:c[0]+8]) {
				t.Errorf("%v: %d bytes, %v", c, k, err)
			}
		}
		if err := m.Close(); err != nil {
			t.Error(err)
		}
		if _, err := m.ReadAt(ctx, got, 0); !errors.Is(err, fs.ErrClosed) {
			t.Errorf("closed: %v", err)
		}
		for _, err := range []error{m.Close(), m.Prefetch(0, 0), m.Random()} {
			if !errors.Is(err, fs.ErrClosed) {
				t.Errorf("closed: %v", err)
			}
		}
	}
	for _, c := range [][2]int64{{-1, 5}, {0, 100_001}, {100_001, 0}, {1 << 62, 1 << 62}} {
		if m, err := OpenMap(path, c[0], c[1]); err == nil {
			t.Errorf("%v: mapped %d bytes", c, m.Size())
		}
	}
	if _, err := OpenMap(t.TempDir(), 0, 0); err == nil {
		t.Error("a folder was mapped")
	}

	// A file that becomes shorter while it is mapped.
	m, err := OpenMap(path, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if err := os.Truncate(path, 5000); err != nil {
		t.Fatal(err)
	}
	if _, err := m.ReadAt(ctx, make([]byte, 100), 50_000); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("cut off: %v", err)
	}
	if _, err := m.ReadAt(ctx, make([]byte, 100), -3); err == nil {
		t.Error("a negative position")
	}
}

// Reads that race with Close get what they asked for, or that it is closed.
func TestMapClosesAfterReads(t *testing.T) {
	content := random(1 << 20)
	m, err := OpenMap(file(t, content), 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			b := make([]byte, 100_000)
			for {
				n, err := m.ReadAt(context.Background(), b, 1000)
				if errors.Is(err, fs.ErrClosed) {
					return
				}
				if n != len(b) || err != nil || !bytes.Equal(b, content[1000:101_000]) {
					t.Errorf("%d bytes, %v", n, err)
					return
				}
			}
		})
	}
	time.Sleep(5 * time.Millisecond)
	if err := m.Close(); err != nil {
		t.Error(err)
	}
	wg.Wait()
}

// BenchmarkReadSmall is what the pool adds to a read of 4 KiB from the page cache.
func BenchmarkReadSmall(b *testing.B) {
	path := file(b, random(1<<20))
	at := make([]byte, 4096)
	b.Run("pool", func(b *testing.B) {
		f := openFile(b, pool(b, nil, settings.Default()), path, os.O_RDONLY)
		b.ReportAllocs()
		for b.Loop() {
			if err := f.ReadAt(context.Background(), at, 8192); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("os", func(b *testing.B) {
		f, err := os.Open(path)
		if err != nil {
			b.Fatal(err)
		}
		defer f.Close()
		for b.Loop() {
			if _, err := f.ReadAt(at, 8192); err != nil {
				b.Fatal(err)
			}
		}
	})
}
