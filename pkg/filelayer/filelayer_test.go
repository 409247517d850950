//go:build !nocuda

package filelayer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"strata/pkg/gpu"
	"strata/pkg/mem"
	"strata/pkg/settings"
	"strata/tests/cudaemu"
	"strata/tests/gputest"
)

func TestMain(m *testing.M) { cudaemu.Main(m) }

var ctx = context.Background()

func device(t *testing.T) *gpu.Device {
	t.Helper()
	return gputest.Device(t, gpu.Limits{Pinned: 16 << 20})
}

// onDevice is n bytes of device memory.
func onDevice(t *testing.T, d *gpu.Device, n int) *gpu.Buffer {
	t.Helper()
	b, err := d.Memory().Get(int64(max(n, 1)))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// move copies between pinned memory and the device.
func move(t *testing.T, d *gpu.Device, host []byte, dev gpu.Span, up bool) {
	t.Helper()
	s, err := d.Stream()
	if err != nil {
		t.Fatal(err)
	}
	h, err := d.Host(len(host))
	if err != nil {
		t.Fatal(err)
	}
	defer h.Release()
	if up {
		copy(h.B, host)
		s.Upload(dev, h.B)
	} else {
		s.Download(h.B, dev)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if !up {
		copy(host, h.B)
	}
}

// ways are settings under which data goes different ways.
func ways() map[string]settings.Settings {
	set := func(change func(s *settings.Settings)) settings.Settings {
		s := settings.Default()
		s.Compat = settings.On
		s.Threads = 3
		change(&s)
		return s
	}
	return map[string]settings.Settings{
		"one thread":     set(func(s *settings.Settings) { s.Threads = 1 }),
		"small tasks":    set(func(s *settings.Settings) { s.TaskSize, s.Bounce = 5000, 16<<10 }),
		"tiny tasks":     set(func(s *settings.Settings) { s.TaskSize, s.Threads = 777, 8 }),
		"direct":         set(func(s *settings.Settings) { s.TaskSize, s.DirectRead, s.DirectWrite = 32<<10, true, true }),
		"straight":       set(func(s *settings.Settings) { s.Compat, s.TaskSize, s.Threshold = settings.Auto, 20000, 1 }),
		"large straight": set(func(s *settings.Settings) { s.Compat, s.Threads = settings.Off, 2 }),
		"cached":         set(func(s *settings.Settings) { s.TaskSize, s.DirectWrite = 32<<10, false }),
	}
}

// What is written comes back, of all sizes, from and to all places, on all ways.
func TestRoundTrips(t *testing.T) {
	d := device(t)
	for name, s := range ways() {
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			p := pool(t, d, s)
			for i, n := range []int{0, 1, 511, 4095, 4096, 4097, 12288, 40000, 65536, 131071} {
				off := int64([]int{0, 1, 4095, 4096, 70000}[i%5])
				t.Run(fmt.Sprintf("%d_at_%d", n, off), func(t *testing.T) {
					want := random(n)
					a, b := onDevice(t, d, n+3), onDevice(t, d, n+3)
					defer a.Release()
					defer b.Release()
					if n > 0 {
						move(t, d, want, a.From(1, int64(n)), true)
					}
					path := filepath.Join(t.TempDir(), "data")
					f := openFile(t, p, path, os.O_RDWR|os.O_CREATE)
					if err := f.Write(ctx, a.From(1, int64(n)), off); err != nil {
						t.Fatal(err)
					}
					content, err := os.ReadFile(path)
					if err != nil {
						t.Fatal(err)
					}
					if n > 0 && (len(content) != n+int(off) || !bytes.Equal(content[off:], want)) {
						t.Fatalf("%d bytes are in the file, or other ones", len(content))
					}
					if err := f.Read(ctx, b.From(2, int64(n)), off); err != nil {
						t.Fatal(err)
					}
					got := make([]byte, n)
					if n > 0 {
						move(t, d, got, b.From(2, int64(n)), false)
					}
					if !bytes.Equal(got, want) {
						t.Fatal("other bytes come back")
					}
					// The same in host memory, both page-aligned and not.
					for _, shift := range []int{int(off % page), 3} {
						memory, err := mem.Alloc(n + 2*page)
						if err != nil {
							t.Fatal(err)
						}
						defer mem.Free(memory)
						h := memory[shift : shift+n]
						if err := f.ReadAt(ctx, h, off); err != nil || !bytes.Equal(h, want) {
							t.Fatalf("%v, or other bytes", err)
						}
						if err := f.WriteAt(ctx, h, off+100); err != nil {
							t.Fatal(err)
						}
						clear(h)
						if err := f.ReadAt(ctx, h, off+100); err != nil || !bytes.Equal(h, want) {
							t.Fatalf("%v, or other bytes", err)
						}
						if err := f.WriteAt(ctx, h, off); err != nil {
							t.Fatal(err)
						}
					}
				})
			}
		})
	}
}

// Reads and writes of many goroutines that are under way at once, and more files than
// threads.
func TestMany(t *testing.T) {
	d := device(t)
	s := settings.Default()
	s.Compat, s.Threads, s.TaskSize = settings.On, 4, 10000
	p := pool(t, d, s)
	content := random(300000)
	path := file(t, content)
	var wg sync.WaitGroup
	for g := range 6 {
		wg.Go(func() {
			f, err := p.Open(path, os.O_RDONLY, 0)
			if err != nil {
				t.Error(err)
				return
			}
			defer f.Close()
			dev, err := d.Memory().Get(int64(len(content)))
			if err != nil {
				t.Error(err)
				return
			}
			defer dev.Release()
			var all []*Pending
			for i := 0; i < len(content); i += 29989 {
				n := min(29989, len(content)-i)
				all = append(all, f.GoRead(ctx, dev.From(int64(i), int64(n)), int64(i)))
			}
			host := make([]byte, 1000*(g+1))
			all = append(all, f.GoReadAt(ctx, host, int64(g)))
			for _, a := range all {
				if err := a.Wait(); err != nil {
					t.Error(err)
				}
			}
			if !bytes.Equal(host, content[g:g+len(host)]) {
				t.Error("other bytes in host memory")
			}
			got := make([]byte, len(content))
			move(t, d, got, dev.Span, false)
			if !bytes.Equal(got, content) {
				t.Error("other bytes in device memory")
			}
		})
	}
	wg.Wait()
	st := p.Stats()
	if st.ReadBounced != int64(6*len(content)) || st.Host != 21000 || st.ReadStraight+st.WrittenStraight+st.WrittenBounced+st.Fallbacks != 0 {
		t.Errorf("%+v", st)
	}
	if up, _, _ := d.Traffic(); up != st.ReadBounced {
		t.Errorf("%d bytes to the device, %d were read", up, st.ReadBounced)
	}
	if d.Pinned().Peak() < 1 || p.Memory() < 8*10000 {
		t.Error(d.Pinned().Peak(), p.Memory())
	}
}

// What is wrong is one error, which names the file and the place.
func TestErrors(t *testing.T) {
	d := device(t)
	for name, s := range ways() {
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			p := pool(t, d, s)
			path := file(t, random(100000))
			f := openFile(t, p, path, os.O_RDONLY)
			dev := onDevice(t, d, 50000)
			defer dev.Release()
			for off, at := range map[int64]int64{60000: 100000, 100000: 100000, 1 << 40: 1 << 40, 99999: 100000} {
				for what, err := range map[string]error{"device": f.Read(ctx, dev.Span, off), "host": f.ReadAt(ctx, make([]byte, 50000), off)} {
					if !errors.Is(err, io.ErrUnexpectedEOF) || !strings.HasPrefix(err.Error(), fmt.Sprintf("read %s at byte %d: the file ends, ", path, at)) {
						t.Errorf("%s, from %d on: %v", what, off, err)
					}
				}
			}
			if err := f.Read(ctx, dev.Span, 0); err != nil {
				t.Errorf("after errors: %v", err)
			}
			for want, err := range map[string]error{
				"at byte -1: the position is negative": f.Read(ctx, dev.Span, -1),
				"at byte 5: bad file descriptor":       f.Write(ctx, dev.Span, 5),
				"at byte 7: bad file descriptor":       f.WriteAt(ctx, make([]byte, 9), 7),
			} {
				if err == nil || !strings.HasSuffix(err.Error(), want) || !strings.Contains(err.Error(), path) {
					t.Errorf("%v; want %s", err, want)
				}
			}
			ended, cancel := context.WithCancel(ctx)
			cancel()
			if err := f.Read(ended, dev.Span, 0); !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
			if err := f.ReadAt(ended, make([]byte, 10), 0); !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
			if err := f.Close(); err != nil {
				t.Error(err)
			}
			for what, err := range map[string]error{"read": f.Read(ctx, dev.Span, 3), "close": f.Close()} {
				if !errors.Is(err, fs.ErrClosed) || !strings.Contains(err.Error(), path) {
					t.Errorf("%s: %v", what, err)
				}
			}
			if _, err := p.Open(path+".none", os.O_RDONLY, 0); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), path) {
				t.Error(err)
			}
			if _, err := p.Open(path, os.O_WRONLY|os.O_APPEND, 0); err == nil || !strings.Contains(err.Error(), path) {
				t.Error(err)
			}
			folder := openFile(t, p, filepath.Dir(path), os.O_RDONLY)
			if err := folder.Read(ctx, dev.Span, 0); err == nil || s.Compat != settings.Off && !strings.Contains(err.Error(), "is a directory") {
				t.Error(err)
			}
		})
	}
}

// A read that is cancelled under way ends, and what comes after it is served.
func TestCancel(t *testing.T) {
	d := device(t)
	s := settings.Default()
	s.Compat, s.Threads, s.TaskSize = settings.On, 1, 4096
	p := pool(t, d, s)
	f := openFile(t, p, file(t, random(4<<20)), os.O_RDONLY)
	dev := onDevice(t, d, 4<<20)
	defer dev.Release()
	for range 20 {
		c, cancel := context.WithCancel(ctx)
		a := f.GoRead(c, dev.Span, 0)
		b := f.GoRead(c, dev.Span, 0)
		after := f.GoRead(ctx, dev.From(0, 100), 5)
		cancel()
		if err := b.Wait(); !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		if err := a.Wait(); !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		if err := after.Wait(); err != nil {
			t.Fatal(err)
		}
	}
}

// Where there is page-locked memory for one thread, one works; where there is none, that is
// an error.
func TestLittleMemory(t *testing.T) {
	for _, limit := range []int64{3 << 13, 1 << 13} {
		list, err := gpu.Devices()
		if err != nil {
			t.Fatal(err)
		}
		d, err := gpu.Open(list[0], gpu.Limits{Pinned: limit})
		if err != nil {
			t.Fatal(err)
		}
		s := settings.Default()
		s.Compat, s.Threads, s.TaskSize = settings.On, 5, 5000
		p, err := NewPool(d, s, nil)
		if err != nil {
			t.Fatal(err)
		}
		f, err := p.Open(file(t, random(200000)), os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		b := onDevice(t, d, 200000)
		a, w := f.GoRead(ctx, b.Span, 0), f.GoWrite(ctx, b.Span, 200000)
		for _, err := range []error{a.Wait(), w.Wait()} {
			if limit == 1<<13 && (!errors.Is(err, gpu.ErrMemory) || !strings.Contains(err.Error(), f.Name())) || limit != 1<<13 && err != nil {
				t.Errorf("%d bytes: %v", limit, err)
			}
		}
		b.Release()
		for _, err := range []error{f.Close(), p.Close(), d.Close()} {
			if err != nil {
				t.Error(err)
			}
		}
	}
}

// Without a device files are read into host memory.
func TestHostOnly(t *testing.T) {
	s := settings.Default()
	s.Threads = 2
	p := pool(t, nil, s)
	content := random(10000)
	f := openFile(t, p, file(t, content), os.O_RDONLY)
	got := make([]byte, len(content)-5)
	if err := f.ReadAt(ctx, got, 5); err != nil || !bytes.Equal(got, content[5:]) {
		t.Error(err)
	}
	if p.Memory() != 0 {
		t.Error(p.Memory())
	}
}

func TestClose(t *testing.T) {
	s := settings.Default()
	p, err := NewPool(nil, s, nil)
	if err != nil {
		t.Fatal(err)
	}
	path := file(t, random(100000))
	f, err := p.Open(path, os.O_RDONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 100000)
	pending := f.GoReadAt(ctx, b, 0)
	if err := p.Close(); err == nil || err.Error() != "1 files were not closed" {
		t.Error(err)
	}
	if err := pending.Wait(); err != nil {
		t.Error(err)
	}
	if err := f.ReadAt(ctx, b, 0); !errors.Is(err, errClosedPool) {
		t.Error(err)
	}
	if _, err := p.Open(path, os.O_RDONLY, 0); !errors.Is(err, errClosedPool) || !strings.Contains(err.Error(), path) {
		t.Error(err)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
}
