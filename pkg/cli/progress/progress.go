// Package progress shows how far a run is: a bar on a terminal, otherwise a
// line now and then. Both give percent, throughput and the time that is left.
//
// A nil *Task is valid and shows nothing, so that library calls need not ask.
package progress

import (
	"errors"
	"io"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"

	"strata/pkg/units"
)

// Mode is how progress is shown.
type Mode int

// The modes of a display.
const (
	None  Mode = iota
	Plain      // lines
	Bar        // a bar that is drawn over itself
)

// Display shows tasks on a writer, and lets log lines pass above the bars.
// Its methods are safe for concurrent use.
type Display struct {
	mode     Mode
	out      io.Writer
	interval time.Duration
	line     func(Status)

	mu      sync.Mutex
	bars    *mpb.Progress // nil: no bar is shown
	running int           // bars that have not ended
	wg      sync.WaitGroup
	stop    []func()
}

// Status is one look at a task.
type Status struct {
	Name        string
	Done, Total int64         // bytes; Total 0: not known
	Elapsed     time.Duration // since the task began
}

// Percent is the share that is done, from 0 to 100; 0 if the total is not known.
func (s Status) Percent() float64 {
	if s.Total <= 0 {
		return 0
	}
	return min(100, 100*float64(s.Done)/float64(s.Total))
}

// Rate is the mean throughput in bytes per second.
func (s Status) Rate() float64 {
	if s.Elapsed <= 0 {
		return 0
	}
	return float64(s.Done) / s.Elapsed.Seconds()
}

// Left is the time that the rest takes at the mean throughput; 0 if unknown.
func (s Status) Left() time.Duration {
	if s.Total <= s.Done || s.Done <= 0 {
		return 0
	}
	return time.Duration(float64(s.Elapsed) * float64(s.Total-s.Done) / float64(s.Done))
}

// String is a status for people: "project: 42 %, 1.2 GiB of 2.9 GiB, 512 MiB/s, 3s left".
func (s Status) String() string {
	if s.Total > 0 {
		return s.Name + ": " + formatPercent(s.Percent()) + ", " + s.amounts()
	}
	return s.Name + ": " + s.amounts()
}

// amounts is String without name and percent.
func (s Status) amounts() string {
	text := units.FormatSize(s.Done)
	if s.Total > 0 {
		text += " of " + units.FormatSize(s.Total)
	}
	text += ", " + units.FormatSize(int64(s.Rate())) + "/s"
	if left := s.Left(); left > 0 {
		text += ", " + units.FormatDuration(left) + " left"
	}
	return text
}

func formatPercent(p float64) string {
	return strconv.Itoa(int(p)) + " %" // rounded down: 100 % is only said of what is done
}

// New makes a display. In Plain mode line is called every interval while a task runs, and, if it was called, once more
// when the task is done: a task that is shorter than the interval shows nothing. Bars are drawn on out.
func New(mode Mode, out io.Writer, interval time.Duration, line func(Status)) *Display {
	return &Display{mode: mode, out: out, interval: interval, line: line}
}

// Write passes a log line on, above the bars if there are any.
func (d *Display) Write(p []byte) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.bars != nil {
		if n, err := d.bars.Write(p); !errors.Is(err, mpb.ErrDone) {
			return n, err
		}
	}
	return d.out.Write(p)
}

// Task is a piece of work whose size is known, in bytes.
type Task struct {
	name  string
	total int64
	done  atomic.Int64
	start time.Time
	took  atomic.Int64 // nanoseconds from start to Done; 0 before
	bar   *mpb.Bar
	end   func()
}

// Start shows a new task of so many bytes; 0 if that is not known. Call Done
// at its end; [Display.Close] does it for those that are left.
func (d *Display) Start(name string, total int64) *Task {
	t := &Task{name: name, total: max(0, total), start: time.Now()}
	if d == nil || d.mode == None {
		return t
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	switch d.mode {
	case Plain:
		quit := make(chan struct{})
		d.wg.Go(func() { d.tick(t, quit) })
		t.end = sync.OnceFunc(func() { close(quit) })
	case Bar:
		if d.bars == nil {
			d.bars = mpb.New(mpb.WithOutput(d.out), mpb.WithAutoRefresh(), mpb.WithWidth(40), mpb.WithRefreshRate(200*time.Millisecond))
		}
		t.bar = d.bars.New(t.total, mpb.BarStyle().Rbound("|").Lbound("|"),
			mpb.PrependDecorators(decor.Name(name, decor.WC{C: decor.DindentRight | decor.DextraSpace}), decor.Percentage(decor.WC{W: 5})),
			mpb.AppendDecorators(decor.Any(func(decor.Statistics) string { return " " + t.Status().amounts() })))
		t.end = sync.OnceFunc(func() {
			t.bar.SetTotal(t.done.Load(), true)
			if !t.bar.Completed() {
				t.bar.Abort(false)
			}
			d.drawn()
		})
		d.running++
	}
	d.stop = append(d.stop, t.Done)
	return t
}

// drawn waits, when the last of the bars has ended, until it is drawn for the last time: results that are printed from
// then on would be overwritten.
func (d *Display) drawn() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.running--; d.running == 0 && d.bars != nil {
		d.bars.Wait()
		d.bars = nil
	}
}

func (d *Display) tick(t *Task, quit <-chan struct{}) {
	ticker := time.NewTicker(d.interval)
	defer ticker.Stop()
	begun := false
	for {
		select {
		case <-ticker.C:
			d.line(t.Status())
			begun = true
		case <-quit:
			if begun {
				d.line(t.Status())
			}
			return
		}
	}
}

// Add says that n more bytes are done. It is cheap and safe for concurrent use.
func (t *Task) Add(n int64) {
	if t == nil {
		return
	}
	t.done.Add(n)
	if t.bar != nil {
		t.bar.IncrInt64(n)
	}
}

// Done ends the task.
func (t *Task) Done() {
	if t == nil {
		return
	}
	t.took.CompareAndSwap(0, max(1, int64(time.Since(t.start))))
	if t.end != nil {
		t.end()
	}
}

// Status is how far the task is.
func (t *Task) Status() Status {
	if t == nil {
		return Status{}
	}
	elapsed := time.Duration(t.took.Load())
	if elapsed == 0 {
		elapsed = time.Since(t.start)
	}
	return Status{t.name, t.done.Load(), t.total, elapsed}
}

// Close ends all tasks and waits until nothing is drawn any more. Lines
// written afterwards go straight out.
func (d *Display) Close() {
	if d == nil {
		return
	}
	d.mu.Lock()
	stop, bars := d.stop, d.bars
	d.stop = nil
	d.mu.Unlock()
	for _, end := range stop {
		end()
	}
	d.wg.Wait()
	if bars != nil {
		bars.Wait()
		d.mu.Lock()
		d.bars = nil
		d.mu.Unlock()
	}
}
