//go:build !nocuda

package gpu

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"strata/tests/cudaemu"
	"strata/tests/race"
)

func TestMain(m *testing.M) { cudaemu.Main(m) }

var ctx = context.Background()

// apart runs the rest of a test in a process of its own, in an environment that the
// double reads when it is loaded. It returns true in that process.
func apart(t *testing.T, env ...string) bool {
	t.Helper()
	if os.Getenv("STRATA_TEST_APART") == t.Name() {
		return true
	}
	c := exec.Command(os.Args[0], "-test.run=^"+strings.ReplaceAll(t.Name(), "/", "$/^")+"$", "-test.count=1")
	c.Env = append(append(os.Environ(), "STRATA_TEST_APART="+t.Name()), env...)
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if bytes.Contains(out, []byte("LEAK")) && !strings.HasSuffix(t.Name(), "s") { // a lost context gives nothing back
		t.Fatalf("the double says:\n%s", out)
	}
	return false
}

func open(t *testing.T, l Limits) *Device {
	t.Helper()
	list, err := Devices()
	if err != nil {
		t.Fatal(err)
	}
	d, err := Open(list[0], l)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

func TestDevices(t *testing.T) {
	if !apart(t, "CUEMU_DEVICES=2", "CUEMU_CC=90", "CUEMU_DRIVER=12040") {
		return
	}
	list, err := Devices()
	if err != nil || len(list) != 2 || list[1].Compute != 90 || list[1].Driver.String() != "12.4" || list[0].UUID == list[1].UUID || list[0].Memory == 0 {
		t.Fatalf("%v %v", list, err)
	}
	for id, want := range map[string]int{"": 2, "0": 1, "1": 1, list[1].UUID: 1, strings.ToLower(list[1].UUID[:9]): 1} {
		if got, err := Choose(list, id); err != nil || len(got) != want || id == "1" && got[0].Index != 1 {
			t.Errorf("%q: %v %v", id, got, err)
		}
	}
	for _, id := range []string{"2", "-1", "GPU-7777", "GPU"} {
		var no *Unavailable
		if _, err := Choose(list, id); !errors.As(err, &no) {
			t.Errorf("%q: %v", id, err)
		}
	}
}

// Why there is no GPU is said in one line, whatever the reason.
func TestUnavailable(t *testing.T) {
	for name, c := range map[string]struct{ env, want string }{
		"no library":      {"STRATA_LIBCUDA=/nonexistent/libcuda.so.1", "the NVIDIA driver's library cannot be opened"},
		"no device":       {"CUEMU_DEVICES=0", "sees no device"},
		"old driver":      {"CUEMU_DRIVER=11080", "for CUDA 11.8, needed is 12.0"},
		"old device":      {"CUEMU_CC=61", "compute capability 6.1, needed is 7.0"},
		"init fails":      {"CUEMU_FAIL=cuInit:1:999", "cuInit"},
		"not a library":   {"STRATA_LIBCUDA=/etc/passwd", "cannot be opened"},
		"another library": {"STRATA_LIBCUDA=libc.so.6", "older than CUDA 12.0: it has no cuInit"},
	} {
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			if !apart(t, c.env) {
				return
			}
			list, err := Devices()
			if err == nil {
				_, err = Open(list[0], Limits{})
			}
			var no *Unavailable
			if !errors.As(err, &no) || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}

func TestCopies(t *testing.T) {
	d := open(t, Limits{Memory: 1 << 20, Pinned: 1 << 20})
	s, err := d.Stream()
	if err != nil {
		t.Fatal(err)
	}
	h, err := d.Pinned().Get(ctx, 10000)
	if err != nil {
		t.Fatal(err)
	}
	a, err := d.Memory().Get(10000)
	if err != nil {
		t.Fatal(err)
	}
	b, err := d.Memory().Get(10000)
	if err != nil {
		t.Fatal(err)
	}
	for i := range h.B {
		h.B[i] = byte(i * 7)
	}
	s.Upload(a.Span, h.B)
	s.Zero(b.Span)
	s.Copy(b.From(100, 500), a.From(1000, 500))
	s.Release(a)
	if err := s.Wait(); err != nil {
		t.Fatal(err)
	}
	s.Download(h.B, b.Span)
	s.After(b.Release)
	if err := s.Wait(); err != nil {
		t.Fatal(err)
	}
	for i, v := range h.B {
		want := byte(0)
		if i >= 100 && i < 600 {
			want = byte((i + 900) * 7)
		}
		if v != want {
			t.Fatalf("byte %d is %d, want %d", i, v, want)
		}
	}
	h.Release()
	if up, down, across := d.Traffic(); up != 10000 || down != 10000 || across != 500 {
		t.Errorf("traffic %d %d %d", up, down, across)
	}
	// what does not fit fails before the driver sees it, and the stream goes on
	s.Upload(Span{bytes: 3}, make([]byte, 4))
	if err := s.Wait(); err == nil {
		t.Error("no error")
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

func TestEvents(t *testing.T) {
	d := open(t, Limits{Memory: 1 << 20, Pinned: 1 << 20})
	var s [2]*Stream
	for i := range s {
		var err error
		if s[i], err = d.Stream(); err != nil {
			t.Fatal(err)
		}
		defer s[i].Close()
	}
	e, err := d.Event()
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	h, _ := d.Pinned().Get(ctx, 100)
	defer h.Release()
	m, _ := d.Memory().Get(100)
	defer m.Release()
	h.B[5] = 77
	s[0].Upload(m.Span, h.B)
	s[0].Record(e)
	s[1].Follow(e) // without it, the download would come first: the double runs a stream only when it is waited for
	out, _ := d.Pinned().Get(ctx, 100)
	defer out.Release()
	s[1].Download(out.B, m.Span)
	if err := s[1].Wait(); err != nil || out.B[5] != 77 {
		t.Fatalf("%v %d", err, out.B[5])
	}
	if err := s[0].Wait(); err != nil {
		t.Fatal(err)
	}
}

func TestPool(t *testing.T) {
	d := open(t, Limits{Memory: 1 << 20, Pinned: 1 << 20})
	p := d.Memory()
	a, err := p.Get(700 << 10)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Get(700 << 10); !errors.Is(err, ErrMemory) {
		t.Fatal(err)
	}
	a.Release()
	a.Release() // does nothing
	b, err := p.Get(690 << 10)
	if err != nil {
		t.Fatal(err)
	}
	if b.address != a.full.address {
		t.Error("memory of the size was there and was not used again")
	}
	b.Release()
	if _, err := p.Get(2 << 20); !errors.Is(err, ErrMemory) {
		t.Errorf("more than the limit: %v", err)
	}
	// memory of another size takes the place of what is idle
	if b, err = p.Get(900 << 10); err != nil {
		t.Fatal(err)
	}
	b.Release()
	if p.Peak() > 1<<20 {
		t.Errorf("%d bytes at a time", p.Peak())
	}
}

// A device that has less than the limit: what is idle goes back to the driver, and
// what does not fit is an error that leaves the rest as it is.
func TestPoolOfLittleMemory(t *testing.T) {
	if !apart(t, "CUEMU_MEM=3000000") {
		return
	}
	d := open(t, Limits{Memory: 64 << 20, Pinned: 1 << 20})
	p := d.Memory()
	var held []*Buffer
	for range 2 {
		b, err := p.Get(1 << 20)
		if err != nil {
			t.Fatal(err)
		}
		held = append(held, b)
	}
	if _, err := p.Get(1 << 20); !errors.Is(err, ErrMemory) {
		t.Errorf("a third megabyte of three million bytes: %v", err)
	}
	for _, b := range held {
		b.Release()
	}
	b, err := p.Get(2 << 20) // of another size: both go back first
	if err != nil {
		t.Fatal(err)
	}
	b.Release()
}

// Every call of the driver fails once, with an error that is gone after it and with
// one that ends the context: the error comes out, and nothing leaks.
func TestFaults(t *testing.T) {
	race.Leave(t)
	calls := []string{"cuDevicePrimaryCtxRetain", "cuCtxSetCurrent", "cuMemGetInfo_v2", "cuMemAlloc_v2", "cuMemHostAlloc", "cuMemcpyHtoDAsync_v2",
		"cuMemcpyDtoHAsync_v2", "cuMemsetD8Async", "cuMemcpyDtoDAsync_v2", "cuStreamCreate", "cuStreamSynchronize", "cuEventCreate", "cuEventRecord", "cuStreamWaitEvent", "cuEventSynchronize"}
	if os.Getenv("STRATA_TEST_APART") == "" {
		for _, call := range calls {
			for _, code := range []string{"2", "700s"} {
				t.Run(call+"_"+code, func(t *testing.T) { apart(t, "CUEMU_FAIL="+call+":1:"+code) })
			}
		}
		return
	}
	for _, call := range calls {
		for _, code := range []string{"2", "700s"} {
			t.Run(call+"_"+code, func(t *testing.T) {
				if os.Getenv("STRATA_TEST_APART") != t.Name() {
					t.Skip("another process")
				}
				err := scenario()
				if err == nil || !strings.Contains(err.Error(), call) {
					t.Errorf("%v, want %s to fail", err, call)
				}
				var no *Unavailable
				if lost := code == "700s"; lost && !errors.Is(err, ErrLost) && !errors.As(err, &no) || !lost && errors.Is(err, ErrLost) {
					t.Errorf("lost: %v", err)
				}
			})
		}
	}
}

// scenario uses every call and gives everything back, whatever fails.
func scenario() (err error) {
	list, err := Devices()
	if err != nil {
		return err
	}
	d, err := Open(list[0], Limits{Memory: 1 << 20, Pinned: 1 << 20})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	s, err := d.Stream()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	e, err := d.Event()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, e.Close()) }()
	h, err := d.Pinned().Get(ctx, 1000)
	if err != nil {
		return err
	}
	defer h.Release()
	a, err := d.Memory().Get(1000)
	if err != nil {
		return err
	}
	defer a.Release()
	b, err := d.Memory().Get(1000)
	if err != nil {
		return err
	}
	defer b.Release()
	s.Upload(a.Span, h.B)
	s.Zero(b.Span)
	s.Copy(b.Span, a.Span)
	s.Record(e)
	s.Follow(e)
	s.Download(h.B, b.Span)
	s.Mark()
	if err := s.Passed(); err != nil {
		return fmt.Errorf("scenario: %w", err)
	}
	if err := s.Wait(); err != nil {
		return fmt.Errorf("scenario: %w", err)
	}
	return nil
}

// TestChecks: what a check finds is the error of Wait, once; after a failure nothing
// is looked at, for nothing ran.
func TestChecks(t *testing.T) {
	d := open(t, Limits{Memory: 1 << 20, Pinned: 1 << 20})
	s, err := d.Stream()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	h, err := d.Host(4)
	if err != nil {
		t.Fatal(err)
	}
	defer h.Release()
	b, err := d.Memory().Get(4)
	if err != nil {
		t.Fatal(err)
	}
	s.Release(b)
	var handle uintptr
	s.Queue(func(h uintptr) error { handle = h; return nil })
	copy(h.B, "abcd")
	s.Upload(b.Span, h.B)
	s.Zero(b.From(1, 1))
	s.Download(h.B[:4], b.Span)
	s.Check(func() error { return fmt.Errorf("found %q", h.B[:4]) })
	s.Check(func() error { t.Error("looked at after an error"); return nil })
	if err := s.Wait(); err == nil || err.Error() != `found "a\x00cd"` || handle == 0 {
		t.Errorf("%v, stream %#x", err, handle)
	}
	if err := s.Wait(); err != nil {
		t.Error(err)
	}
	failed := errors.New("cannot queue")
	s.Check(func() error { t.Error("looked at what did not run"); return nil })
	s.Queue(func(uintptr) error { return failed })
	s.Queue(func(uintptr) error { t.Error("queued after an error"); return nil })
	if err := s.Wait(); err != failed {
		t.Error(err)
	}
}

// Passed waits for what lies before a mark, and leaves what lies behind it alone: the double runs no more of a stream
// than is waited for.
func TestMarks(t *testing.T) {
	d := open(t, Limits{Memory: 1 << 20, Pinned: 1 << 20})
	s, err := d.Stream()
	if err != nil {
		t.Fatal(err)
	}
	h, err := d.Host(4)
	if err != nil {
		t.Fatal(err)
	}
	defer h.Release()
	b, err := d.Memory().Get(4)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Release()
	if err := s.Passed(); err != nil {
		t.Errorf("without a mark: %v", err)
	}
	var seen []string
	found, failed := errors.New("found"), errors.New("cannot queue")
	stretch := func(value byte, name string, err error) {
		s.Queue(func(uintptr) error { return err })
		s.Host(func() { h.B[0] = value })
		s.Check(func() error {
			seen = append(seen, fmt.Sprint(name, " ", h.B[0]))
			if name == "third" {
				return found
			}
			return nil
		})
		s.After(func() { seen = append(seen, "after "+name) })
	}
	want := func(what string, got, err error, list ...string) {
		t.Helper()
		if got != err || !slices.Equal(seen, list) {
			t.Errorf("%s: %v, want %v; %q, want %q", what, got, err, seen, list)
		}
		seen = nil
	}
	stretch(1, "first", nil)
	s.Mark()
	stretch(2, "second", failed)
	s.Mark()
	stretch(3, "third", nil)
	s.Mark()
	stretch(4, "fourth", nil)
	want("first", s.Passed(), nil, "first 1", "after first")
	want("second", s.Passed(), failed, "after second")
	want("all else", s.Wait(), found, "third 4", "after third", "after fourth")
	want("nothing", s.Passed(), nil)
	stretch(5, "fifth", nil)
	s.Mark()
	stretch(6, "sixth", nil)
	want("closing", s.Close(), nil, "fifth 6", "after fifth", "sixth 6", "after sixth")
}
