package progress

import (
	"bytes"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"
)

// buffer is a writer for several goroutines.
type buffer struct {
	mu  sync.Mutex
	all bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.all.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.all.String()
}

func TestStatus(t *testing.T) {
	for want, s := range map[string]Status{
		"x: 25 %, 256 MiB of 1 GiB, 128 MiB/s, 6s left": {"x", 256 << 20, 1 << 30, 2 * time.Second},
		"x: 100 %, 1 GiB of 1 GiB, 512 MiB/s":           {"x", 1 << 30, 1 << 30, 2 * time.Second},
		"x: 0 %, 0 B of 1 GiB, 0 B/s":                   {"x", 0, 1 << 30, 0},
		"x: 99 %, 1023 B of 1 KiB, 1023 B/s, 0ms left":  {"x", 1023, 1024, time.Second},
		"x: 100 %, 2 KiB of 1 KiB, 2 KiB/s":             {"x", 2048, 1024, time.Second},
		"x: 3 KiB, 1 KiB/s":                             {"x", 3072, 0, 3 * time.Second},
	} {
		if got := s.String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestPlain(t *testing.T) {
	lines := make(chan Status, 1000)
	d := New(Plain, new(buffer), time.Millisecond, func(s Status) { lines <- s })
	task := d.Start("copy", 100)
	task.Add(30)
	s := <-lines
	for s.Done != 30 { // the first may be from before Add
		s = <-lines
	}
	if s.Name != "copy" || s.Total != 100 {
		t.Errorf("%+v", s)
	}
	var wg sync.WaitGroup
	for range 7 {
		wg.Go(func() { task.Add(10) })
	}
	wg.Wait()
	task.Done()
	task.Done()
	left := d.Start("left", 0)
	left.Add(5)
	last := map[string]Status{}
	for s := range lines {
		last[s.Name] = s
		if s.Name == "left" {
			break
		}
	}
	d.Close() // ends it
	d.Close()
	close(lines)
	for s := range lines {
		last[s.Name] = s
	}
	if last["copy"].Done != 100 || last["left"].Done != 5 {
		t.Errorf("last lines %+v", last)
	}
}

// A task that is shorter than the interval is none of the log's business.
func TestShort(t *testing.T) {
	d := New(Plain, new(buffer), time.Hour, func(s Status) { t.Errorf("line %q", s) })
	task := d.Start("copy", 100)
	task.Add(100)
	task.Done()
	d.Close()
}

func TestBar(t *testing.T) {
	out := new(buffer)
	d := New(Bar, out, time.Hour, func(Status) { t.Error("a line beside the bar") })
	task, never := d.Start("copy", 100), d.Start("never", 50)
	task.Add(100)
	task.Done()
	if _, err := d.Write([]byte("a log line\n")); err != nil {
		t.Error(err)
	}
	d.Close()
	if _, err := d.Write([]byte("later\n")); err != nil {
		t.Error(err)
	}
	text := out.String()
	for _, want := range []string{"a log line\n", "copy", "100 %", "100 B of 100 B", "later\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in %q", want, text)
		}
	}
	if never.Status().Done != 0 || task.Status().Done != 100 {
		t.Error("wrong status")
	}
}

// Where results go to the same terminal, nothing is drawn over them once the last bar has ended; another one may
// follow.
func TestBarEnds(t *testing.T) {
	out := new(buffer)
	d := New(Bar, out, time.Hour, nil)
	for _, name := range []string{"first", "second"} {
		task := d.Start(name, 100)
		task.Add(100)
		task.Done()
		fmt.Fprintln(out, "results of the", name)
	}
	d.Close()
	if text := out.String(); !strings.HasSuffix(text, "results of the second\n") || !strings.Contains(text, "results of the first\n") || strings.Count(text, "100 %") < 2 {
		t.Errorf("%q", text)
	}
}

func TestNothing(t *testing.T) {
	out := new(buffer)
	d := New(None, out, time.Nanosecond, func(Status) { t.Error("a line") })
	task := d.Start("x", 10)
	task.Add(10)
	task.Done()
	first := task.Status()
	d.Close()
	if again := task.Status(); again != first {
		t.Errorf("%+v, later %+v", first, again)
	}
	if out.String() != "" || task.Status().Percent() != 100 {
		t.Errorf("%q, %+v", out.String(), task.Status())
	}
	var noTask *Task
	noTask.Add(1)
	noTask.Done()
	var noDisplay *Display
	noDisplay.Start("x", 1).Add(1)
	noDisplay.Close()
	if noTask.Status() != (Status{}) {
		t.Error("a status of nothing")
	}
}
