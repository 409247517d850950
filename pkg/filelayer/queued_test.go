package filelayer

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"strata/pkg/mem"
	"strata/pkg/settings"
)

// someRing is a queue of the system, if it has any.
func someRing(t *testing.T) *ring {
	t.Helper()
	r, err := newRing(4)
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(r.close)
	return r
}

// Reads end in any order, each with what it moved or its error; the queue is used again.
func TestRing(t *testing.T) {
	r := someRing(t)
	content := random(10_000)
	f, err := os.Open(file(t, content))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for round := range 5 {
		b := make([]byte, 30_000)
		r.read(int(f.Fd()), b[:4000], 100, 7)
		r.read(int(f.Fd()), b[10_000:15_000], 8000, 8)
		if err := r.enter(1); err != nil {
			t.Fatal(err)
		}
		r.read(int(f.Fd()), b[20_000:20_010], 1<<20, 9)
		r.read(-1, b, 0, 10)
		got := map[uint64]int32{}
		for len(got) < 4 {
			if err := r.enter(1); err != nil {
				t.Fatal(err)
			}
			r.ended(func(user uint64, result int32) { got[user] = result })
			if len(got) == 3 { // all may have ended before the last wait
				time.Sleep(time.Millisecond)
				r.ended(func(user uint64, result int32) { got[user] = result })
			}
		}
		if got[7] != 4000 || got[8] != 2000 || got[9] != 0 || got[10] != -int32(syscall.EBADF) || !bytes.Equal(b[:4000], content[100:4100]) || !bytes.Equal(b[10_000:12_000], content[8000:]) {
			t.Errorf("round %d: %v, or other bytes", round, got)
		}
	}
}

// What the system has not taken can be taken back.
func TestRingTakesBack(t *testing.T) {
	r := someRing(t)
	b := make([]byte, 10)
	r.read(-1, b, 0, 3)
	r.read(-1, b, 0, 4)
	var back []uint64
	r.takeBack(func(user uint64) { back = append(back, user) })
	if fmt.Sprint(back) != "[3 4]" {
		t.Error(back)
	}
	r.read(-1, b, 0, 5)
	if err := r.enter(1); err != nil {
		t.Fatal(err)
	}
	r.ended(func(user uint64, result int32) {
		if user != 5 || result != -int32(syscall.EBADF) {
			t.Errorf("read %d: %d", user, result)
		}
		back = nil
	})
	if back != nil {
		t.Error("the next read did not end")
	}
}

// What ends short, or fails, is read to its end through the page cache.
func TestFlightEnds(t *testing.T) {
	content := random(20 * page)
	p := directPool(t, 1<<20)
	for _, c := range []struct {
		result int32
		why    string
	}{
		{16 * page, ""}, {3*page + 5, ""}, {0, ""}, {-int32(syscall.EINTR), ""}, {-int32(syscall.EAGAIN), ""}, {-int32(syscall.ECANCELED), ""},
		{-int32(syscall.EIO), "direct I/O failed at byte 4096: input/output error"},
	} {
		for _, by := range []string{"straight", "copied"} {
			f := openFile(t, p, file(t, content), os.O_RDONLY)
			needsDirect(t, f)
			n := int64(16*page + 200)
			r := &request{ctx: t.Context(), file: f, host: make([]byte, n), off: 100, n: n}
			fl := flight{task: task{r, 0, n, time.Now()}, used: true, head: page - 100, whole: 15 * page}
			came := min(max(int64(c.result), 0), fl.whole)
			if by == "copied" {
				var err error
				if fl.aside, err = p.aside.TryGet(leastAside); err != nil || fl.aside == nil {
					t.Fatal(err)
				}
				copy(fl.aside.B, content[page:page+came])
			} else {
				copy(r.host[fl.head:], content[page:page+came])
			}
			if err := fl.end(min(c.result, int32(fl.whole))); err != nil || !bytes.Equal(r.host, content[100:100+n]) {
				t.Errorf("%+v, %s: %v, or other bytes", c, by, err)
			}
			_, why := f.DirectIO()
			if c.why != "" && why != c.why || c.why == "" && f.noDirect.Load() {
				t.Errorf("%+v, %s: %q", c, by, why)
			}
			if s := f.Stats(); s.Queued != came/page*page || s.Direct != s.Queued || s.Host != n || (s.Realigned == s.Queued) != (by == "copied" || came == 0) {
				t.Errorf("%+v, %s: %+v", c, by, s)
			}
		}
	}
	if n := p.aside.Peak(); n > leastAside {
		t.Errorf("%d bytes were held", n)
	}
}

// Reads and writes of many callers, whose memory lies anywhere, share the buffers that
// there are, also those that wait in queues.
func TestQueuesOfMany(t *testing.T) {
	someRing(t)
	const n, task = 1 << 20, 64 << 10
	s := settings.Default()
	s.Threads, s.TaskSize, s.DirectRead, s.DirectWrite = 2, task, true, true
	p := pool(t, nil, s)
	content := random(n)
	var wg sync.WaitGroup
	for i := range 6 {
		f := openFile(t, p, file(t, content), os.O_RDWR)
		needsDirect(t, f)
		memory, err := mem.Alloc(n + page)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { mem.Free(memory) })
		wg.Go(func() {
			b := memory[8*(i%2):][:n]
			for round := range 4 {
				if err := f.ReadAt(t.Context(), b, 0); err != nil || !bytes.Equal(b, content) {
					t.Errorf("caller %d, round %d: %v, or other bytes", i, round, err)
				}
				if err := f.WriteAt(t.Context(), b, 0); err != nil {
					t.Errorf("caller %d, round %d: %v", i, round, err)
				}
			}
		})
	}
	wg.Wait()
	if s := p.Stats(); s.Queued == 0 || s.Queued > s.Direct || s.Host != 6*4*2*n {
		t.Errorf("%+v", s)
	}
}

// The file's end is an error with its place, and so is a context that ends.
func TestQueuedErrors(t *testing.T) {
	someRing(t)
	content := random(30*page + 100)
	p := directPool(t, 20*page)
	f := openFile(t, p, file(t, content), os.O_RDONLY)
	needsDirect(t, f)
	memory, err := mem.Alloc(80 * page)
	if err != nil {
		t.Fatal(err)
	}
	defer mem.Free(memory)
	err = f.ReadAt(t.Context(), memory, 0)
	if !errors.Is(err, io.ErrUnexpectedEOF) || !strings.HasPrefix(err.Error(), fmt.Sprintf("read %s at byte %d: the file ends, ", f.Name(), len(content))) {
		t.Error(err)
	}
	if s := f.Stats(); s.Queued == 0 || !bytes.Equal(memory[:len(content)], content) {
		t.Errorf("%+v, or other bytes", s)
	}
	if err := f.ReadAt(t.Context(), memory[:len(content)], 0); err != nil || !bytes.Equal(memory[:len(content)], content) {
		t.Errorf("after an error: %v, or other bytes", err)
	}
}

// Where the system has no queues, reads go one at a time.
func TestNoQueue(t *testing.T) {
	content := random(8 * page)
	p := directPool(t, 4*page)
	f := openFile(t, p, file(t, content), os.O_RDONLY)
	needsDirect(t, f)
	w := &worker{pool: p, direct: queue{refused: errors.New("not permitted")}}
	r := &request{ctx: t.Context(), file: f, host: make([]byte, len(content)), n: int64(len(content))}
	if w.enqueue(task{r, 0, r.n, time.Now()}) {
		t.Error("it was left to a queue")
	}
	if err := w.close(); err != nil {
		t.Error(err)
	}
}
