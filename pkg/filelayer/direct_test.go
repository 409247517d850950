package filelayer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"strata/pkg/mem"
	"strata/pkg/settings"
)

// directPool is a pool that goes past the page cache both ways, with tasks of size bytes.
func directPool(t *testing.T, size int64) *Pool {
	t.Helper()
	s := settings.Default()
	s.Threads, s.TaskSize, s.DirectRead, s.DirectWrite = 2, size, true, true
	return pool(t, nil, s)
}

// needsDirect skips a test where there is no direct I/O, and lets memory be aligned to pages whatever the
// device wants.
func needsDirect(t *testing.T, f *File) {
	t.Helper()
	if ok, why := f.DirectIO(); !ok {
		t.Skip(why)
	}
	b, err := mem.Alloc(page)
	if err != nil {
		t.Fatal(err)
	}
	defer mem.Free(b)
	if _, err := f.past.ReadAt(b, 0); err != nil { // some take the flag and nothing else
		t.Skip(err)
	}
	f.memory, f.told = page, false
}

// Whole pages go past the page cache, from memory that lies right and from such that
// does not.
func TestDirect(t *testing.T) {
	const n = 50 * page
	content := random(n)
	memory, err := mem.Alloc(60 * page)
	if err != nil {
		t.Fatal(err)
	}
	defer mem.Free(memory)
	for _, c := range []struct {
		off, at, n        int64
		direct, realigned int64
	}{
		{0, 0, 2 * page, 2 * page, 0}, {100, 100, 3 * page, 2 * page, 0}, {page + 7, 7, 2*page - 7, page, 0},
		{page + 7, page + 7, page, 0, 0}, {1, 1, page, 0, 0},
		{0, 16, 15 * page, 0, 0}, // less than what is copied
		{0, 16, 16 * page, 16 * page, 16 * page}, {100, 200, 40 * page, 39 * page, 39 * page}, {3, 0, n - 3, 49 * page, 49 * page}, {0, 0, n, n, 0},
	} {
		for name, size := range map[string]int64{"whole": 1 << 20, "in tasks": 20 * page} {
			f := openFile(t, directPool(t, size), file(t, content), os.O_RDWR)
			needsDirect(t, f)
			clear(memory)
			b := memory[c.at : c.at+c.n]
			if err := f.ReadAt(t.Context(), b, c.off); err != nil || !bytes.Equal(b, content[c.off:c.off+c.n]) {
				t.Errorf("%+v, %s: %v, or other bytes", c, name, err)
			}
			check := func(what string, before Stats) {
				s := f.Stats()
				d, r := s.Direct-before.Direct, s.Realigned-before.Realigned
				// in tasks each has its own beginning and end
				if name == "whole" && (d != c.direct || r != c.realigned) || d > c.direct || r > d || s.Host-before.Host != c.n {
					t.Errorf("%+v, %s, %s: %d bytes direct, %d of them copied, %d in all", c, name, what, d, r, s.Host-before.Host)
				}
			}
			check("read", Stats{})
			before := f.Stats()
			want := bytes.Clone(content)
			for i := range b {
				b[i] ^= 0x55
				want[c.off+int64(i)] ^= 0x55
			}
			if err := f.WriteAt(t.Context(), b, c.off); err != nil {
				t.Errorf("%+v, %s: %v", c, name, err)
			}
			check("written", before)
			if got, err := os.ReadFile(f.Name()); err != nil || !bytes.Equal(got, want) {
				t.Errorf("%+v, %s: %v, or other bytes are in the file", c, name, err)
			}
		}
	}
}

// Memory for what is copied is bounded however many read at a time, and none of it is held
// in the end.
func TestDirectOfManyIsBounded(t *testing.T) {
	const n = 1 << 20
	p := directPool(t, n)
	f := openFile(t, p, file(t, random(n)), os.O_RDONLY)
	needsDirect(t, f)
	want := random(n)
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			memory, err := mem.Alloc(n + page)
			if err != nil {
				t.Error(err)
				return
			}
			defer mem.Free(memory)
			b := memory[24 : 24+n]
			if err := f.ReadAt(t.Context(), b, 0); err != nil || !bytes.Equal(b, want) {
				t.Errorf("%v, or other bytes", err)
			}
		})
	}
	wg.Wait()
	if s := p.Stats(); s.Direct != 20*n || s.Realigned != 20*n {
		t.Errorf("%+v", s)
	}
	if peak := p.aside.Peak(); peak < n || peak > 2*queueBytes {
		t.Errorf("%d bytes for copies", peak)
	}
}

// What the page cache has is taken from there.
func TestDirectReadsTakeWhatIsCached(t *testing.T) {
	const n = 64 * page
	content := random(n)
	f := openFile(t, directPool(t, n), file(t, content), os.O_RDWR)
	if ok, why := f.DirectIO(); !ok || !f.told {
		t.Skip("direct I/O: ", why, "; the system tells what it has in memory: ", f.told)
	}
	if _, err := cachedPages(f.file, 0, n); err != nil {
		t.Skip(err) // Linux before 6.5
	}
	memory, err := mem.Alloc(n)
	if err != nil {
		t.Fatal(err)
	}
	defer mem.Free(memory)
	if _, err := f.file.ReadAt(memory, 0); err != nil {
		t.Fatal(err)
	}
	if err := f.ReadAt(t.Context(), memory, 0); err != nil || f.Stats().Direct != 0 {
		t.Errorf("cached: %v, %d bytes past it", err, f.Stats().Direct)
	}
	if err := f.DropCached(0, 0); err != nil {
		t.Fatal(err)
	}
	if left, err := f.Cached(0, 0); err != nil || left > 0 {
		t.Skip("the page cache keeps the file: ", left, err)
	}
	clear(memory)
	if err := f.ReadAt(t.Context(), memory, 0); err != nil || f.Stats().Direct != n || !bytes.Equal(memory, content) {
		t.Errorf("not cached: %v, %d bytes past it", err, f.Stats().Direct)
	}
}

// Where direct I/O fails after all, everything goes through the page cache, and the file
// says why.
func TestDirectThatFails(t *testing.T) {
	content := random(4 * page)
	for what, fault := range map[string]*faulty{"at once": {errs: []error{syscall.EINVAL}}, "in the middle": {most: page, errs: []error{nil, syscall.EIO}}} {
		f := openFile(t, directPool(t, 1<<20), file(t, content), os.O_RDWR)
		needsDirect(t, f)
		fault.file = f.direct
		f.past = fault
		memory, err := mem.Alloc(4 * page)
		if err != nil {
			t.Fatal(err)
		}
		defer mem.Free(memory)
		for range 2 {
			if err := f.ReadAt(t.Context(), memory, 0); err != nil || !bytes.Equal(memory, content) {
				t.Errorf("%s: %v", what, err)
			}
			if err := f.WriteAt(t.Context(), memory, 0); err != nil {
				t.Errorf("%s: %v", what, err)
			}
		}
		want := map[string]string{"at once": "direct I/O failed at byte 0: invalid argument", "in the middle": "direct I/O failed at byte 4096: input/output error"}[what]
		if ok, why := f.DirectIO(); ok || why != want || fault.calls() != len(fault.errs) {
			t.Errorf("%s: %v, %q after %d calls", what, ok, why, fault.calls())
		}
		if s := f.Stats(); s.Host != 4*4*page || s.Direct != int64(len(fault.errs)-1)*page {
			t.Errorf("%s: %+v", what, s)
		}
	}
}

// A file system that has nothing else than the page cache.
func TestDirectInMemory(t *testing.T) {
	folder, err := os.MkdirTemp("/dev/shm", "strata-test-")
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { os.RemoveAll(folder) })
	content := random(1 << 20)
	f := openFile(t, directPool(t, 1<<20), filepath.Join(folder, "file"), os.O_RDWR|os.O_CREATE)
	if err := f.WriteAt(t.Context(), content, 5); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, len(content))
	if err := f.ReadAt(t.Context(), got, 5); err != nil || !bytes.Equal(got, content) {
		t.Fatalf("%v, or other bytes", err)
	}
	if !keepsInMemory(f.file) {
		t.Skip("/dev/shm is no tmpfs")
	}
	ok, why := f.DirectIO()
	if ok || !strings.HasPrefix(why, "the file system keeps files in memory") && !strings.HasPrefix(why, "the file system has no direct I/O: ") || f.Stats().Direct != 0 {
		t.Errorf("%v, %q, %d bytes", ok, why, f.Stats().Direct)
	}
}

func TestDirectIOOfClosedFile(t *testing.T) {
	f := openFile(t, directPool(t, 1<<20), file(t, nil), os.O_RDONLY)
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if ok, why := f.DirectIO(); ok || why != "file already closed" {
		t.Errorf("%v, %q", ok, why)
	}
}

// faulty is a file whose calls go wrong: each moves at most some bytes, and the errors are
// those of the first calls.
type faulty struct {
	file   mover
	most   int     // bytes of a call; 0: all
	errs   []error // nil: none
	before func(call int)

	mu sync.Mutex
	n  int
}

func (f *faulty) calls() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.n
}

func (f *faulty) call(b []byte) ([]byte, error) {
	f.mu.Lock()
	n := f.n
	f.n++
	f.mu.Unlock()
	if f.before != nil {
		f.before(n)
	}
	if n < len(f.errs) && f.errs[n] != nil {
		return nil, &os.PathError{Op: "pread", Path: "some", Err: f.errs[n]}
	}
	if f.most > 0 {
		b = b[:min(len(b), f.most)]
	}
	return b, nil
}

func (f *faulty) ReadAt(b []byte, off int64) (int, error) {
	part, err := f.call(b)
	if err != nil {
		return 0, err
	}
	return f.file.ReadAt(part, off)
}

func (f *faulty) WriteAt(b []byte, off int64) (int, error) {
	part, err := f.call(b)
	if err != nil {
		return 0, err
	}
	return f.file.WriteAt(part, off)
}

// Calls that move less than they are asked to, or are interrupted, are made again.
func TestShortAndInterrupted(t *testing.T) {
	content := random(100_000)
	s := settings.Default()
	s.TaskSize = 30_000
	for _, n := range []int{1000, len(content)} { // by the caller, by the threads
		f := openFile(t, pool(t, nil, s), file(t, content), os.O_RDWR)
		f.through = &faulty{file: f.file, most: 999, errs: []error{syscall.EINTR, nil, syscall.EINTR, syscall.EINTR, nil, nil, syscall.EINTR}}
		got := make([]byte, n)
		if err := f.ReadAt(t.Context(), got, 0); err != nil || !bytes.Equal(got, content[:n]) {
			t.Errorf("%d bytes: %v, or other ones", n, err)
		}
		f.through = &faulty{file: f.file, most: 1, errs: []error{syscall.EINTR, nil, syscall.EINTR}}
		if err := f.WriteAt(t.Context(), got[:100], 50); err != nil {
			t.Error(err)
		}
		if after, err := os.ReadFile(f.Name()); err != nil || !bytes.Equal(after[50:150], content[:100]) {
			t.Errorf("%v, or other bytes", err)
		}
	}
}

// What cannot be read or written is an error with its place; others go on.
func TestErrorOfTheDevice(t *testing.T) {
	content := random(100_000)
	s := settings.Default()
	s.TaskSize, s.Threads, s.DirectWrite = 30_000, 1, false
	f := openFile(t, pool(t, nil, s), file(t, content), os.O_RDWR)
	got := make([]byte, len(content))
	for _, c := range []struct {
		most int
		errs []error
		n    int
		at   int
	}{
		{0, []error{syscall.EIO}, 1000, 0},
		{400, []error{nil, nil, syscall.EIO}, 1000, 800},
		{0, []error{nil, nil, syscall.EIO}, len(content), 57_344}, // tasks end at pages
		{10_000, []error{nil, nil, nil, syscall.ENOSPC}, len(content), 28_672},
	} {
		for _, verb := range []string{"read", "write"} {
			fault := &faulty{file: f.file, most: c.most, errs: c.errs}
			f.through = fault
			op := f.ReadAt
			if verb == "write" {
				op = f.WriteAt
			}
			err := op(t.Context(), got[:c.n], 0)
			want := c.errs[len(c.errs)-1]
			if !errors.Is(err, want) || err.Error() != fmt.Sprintf("%s %s at byte %d: %v", verb, f.Name(), c.at, want) {
				t.Errorf("%d bytes: %v; want %v at byte %d", c.n, err, want, c.at)
			}
			if fault.calls() != len(c.errs) {
				t.Errorf("%s of %d bytes: %d calls", verb, c.n, fault.calls())
			}
			f.through = f.file
			if err := f.ReadAt(t.Context(), got, 0); err != nil || !bytes.Equal(got, content) {
				t.Errorf("after an error: %v", err)
			}
		}
	}
	f.through = &faulty{file: nothing{}}
	if err := f.WriteAt(t.Context(), got[:10], 0); !errors.Is(err, io.ErrShortWrite) {
		t.Errorf("a device that takes nothing: %v", err)
	}
	if err := f.ReadAt(t.Context(), got[:10], 0); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("a device that gives nothing: %v", err)
	}
}

type nothing struct{}

func (nothing) ReadAt([]byte, int64) (int, error)  { return 0, nil }
func (nothing) WriteAt([]byte, int64) (int, error) { return 0, nil }

// A file that becomes shorter while it is read is an error at its new end, also where it
// is read past the page cache.
func TestShorterWhileRead(t *testing.T) {
	const n, task, left = 80 * page, 20 * page, 30*page + 100
	for name, past := range map[string]bool{"through the page cache": false, "past it": true} {
		s := settings.Default()
		s.Threads, s.TaskSize, s.DirectRead = 1, task, past
		f := openFile(t, pool(t, nil, s), file(t, random(n)), os.O_RDONLY)
		fault := &faulty{before: func(call int) {
			if call == 1 {
				if err := os.Truncate(f.Name(), left); err != nil {
					t.Error(err)
				}
			}
		}}
		if past {
			needsDirect(t, f)
			fault.file, f.past = f.direct, fault
		} else {
			fault.file, f.through = f.file, fault
		}
		memory, err := mem.Alloc(n + page)
		if err != nil {
			t.Fatal(err)
		}
		defer mem.Free(memory)
		for _, shift := range []int{0, 8} {
			err = f.ReadAt(t.Context(), memory[shift:shift+n], 0)
			if !errors.Is(err, io.ErrUnexpectedEOF) || !strings.HasPrefix(err.Error(), fmt.Sprintf("read %s at byte %d: the file ends, ", f.Name(), left)) {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

// Without a descriptor that is left, files cannot be opened; those that are open go on,
// through the page cache, and say why.
func TestOutOfDescriptors(t *testing.T) {
	content := random(1 << 20)
	p := directPool(t, 1<<20)
	path := file(t, content)
	f := openFile(t, p, path, os.O_RDONLY)
	var before syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &before); err != nil {
		t.Skip(err)
	}
	// what is open stays below
	next, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	now := before
	now.Cur = uint64(next.Fd())
	next.Close()
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &now); err != nil {
		t.Skip(err)
	}
	defer func() { _ = syscall.Setrlimit(syscall.RLIMIT_NOFILE, &before) }()
	got := make([]byte, len(content))
	_, refused := p.Open(path, os.O_RDONLY, 0)
	read := f.ReadAt(t.Context(), got, 0)
	_, why := f.DirectIO()
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &before); err != nil {
		t.Fatal(err)
	}
	if !errors.Is(refused, syscall.EMFILE) || !strings.Contains(refused.Error(), path) {
		t.Errorf("one more file: %v", refused)
	}
	if read != nil || !bytes.Equal(got, content) || f.Stats().Direct != 0 {
		t.Errorf("a file that is open: %v, %d bytes past the page cache", read, f.Stats().Direct)
	}
	if why != "it cannot be opened for direct I/O: too many open files" {
		t.Errorf("%q", why)
	}
	openFile(t, p, path, os.O_RDONLY)
}

// Reads that are cancelled leave no goroutine behind.
func TestCancelledReadsLeaveNothing(t *testing.T) {
	before := runtime.NumGoroutine()
	s := settings.Default()
	s.Threads, s.TaskSize = 3, 4096
	p, err := NewPool(nil, s, nil)
	if err != nil {
		t.Fatal(err)
	}
	f, err := p.Open(file(t, random(1<<20)), os.O_RDONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	cancelled := 0
	for range 50 {
		ctx, cancel := context.WithCancel(t.Context())
		f.through = &faulty{file: f.file, before: func(call int) {
			if call >= 5 { // each of them: a thread that sleeps before it cancels lets the others read to the end
				cancel()
			}
		}}
		if err := f.ReadAt(ctx, make([]byte, 1<<20), 0); err != nil {
			cancelled++
		}
		cancel()
	}
	if cancelled != 50 {
		t.Errorf("%d of 50 reads were cancelled", cancelled)
	}
	if now := runtime.NumGoroutine(); now > before+s.Threads {
		t.Errorf("%d goroutines, %d before and %d threads", now, before, s.Threads)
	}
	if err := errors.Join(f.Close(), p.Close()); err != nil {
		t.Error(err)
	}
	for range 5000 { // an ended goroutine is counted until it has been cleared away
		if runtime.NumGoroutine() <= before {
			return
		}
		time.Sleep(time.Millisecond)
	}
	t.Errorf("%d goroutines are left of %d", runtime.NumGoroutine(), before)
}
