package benchzarr

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"time"

	"strata/pkg/bench"
	cut "strata/pkg/bench/boxes"
	"strata/pkg/mem"
	"strata/pkg/work"
	"strata/pkg/zarr"
)

// job is an operation on an array.
type job struct {
	target *target
	op     string
	boxes  boxes
}

// bytes is how many bytes of elements a repetition moves.
func (j *job) bytes() int64 {
	n := int64(0)
	for _, b := range j.boxes.list {
		n += j.target.layout.bytes(b.Shape)
	}
	return n
}

// largest is how many bytes the largest box has.
func (j *job) largest() int64 {
	n := int64(0)
	for _, b := range j.boxes.list {
		n = max(n, j.target.layout.bytes(b.Shape))
	}
	return n
}

// makeRoom takes so much memory and gives it back. Where memory is full of cached files the kernel has
// to move them before there are huge pages, for seconds: whoever asks first would pay for the others.
func makeRoom(n int64) {
	b, err := mem.Alloc(int(n))
	if err != nil {
		return // who needs it will say so
	}
	for i := 0; i < len(b); i += os.Getpagesize() {
		b[i] = 1
	}
	mem.Free(b)
}

// sample is one repetition.
type sample struct {
	seconds, cpu float64
	peak         int64  // most resident memory
	device       int64  // bytes that crossed to or from the device
	backend      string // that really ran
	note         string // what did not go as the setting says
}

// reader reads as one setting says.
type reader interface {
	// check does the job once, outside of any measurement, and returns the checksum of what came.
	check(ctx context.Context, j *job) (uint32, error)
	// round does it once and measures it.
	round(ctx context.Context, j *job) (sample, error)
}

// stopwatch measures what lies between its calls of start and stop.
type stopwatch struct {
	began time.Time
	usage bench.Usage
}

func start() stopwatch {
	debug.FreeOSMemory() // of what came before
	return stopwatch{usage: bench.Begin(), began: time.Now()}
}

func (w stopwatch) stop() sample {
	s := sample{seconds: time.Since(w.began).Seconds()}
	s.cpu, s.peak = w.usage.End()
	return s
}

// processors lets so many threads of the process compute, and returns what undoes it.
func processors(n int) (undo func()) {
	was := runtime.GOMAXPROCS(0)
	runtime.GOMAXPROCS(min(n, runtime.NumCPU()))
	return func() { runtime.GOMAXPROCS(was) }
}

// hostReader reads into memory of the host.
type hostReader struct {
	setting setting
	mem     int64 // for scratch memory
	part    int64 // most bytes of a part of the whole
}

func (h *hostReader) options() []zarr.Option {
	return []zarr.Option{zarr.Workers(h.setting.workers()), zarr.Budget(h.mem)}
}

func (h *hostReader) check(ctx context.Context, j *job) (uint32, error) {
	var c checksum
	b := j.boxes
	if j.op == opStream { // the same elements, and one after the other
		b = boxes{cut.Split(j.target.layout.shape, j.target.layout.partOf(h.part)), true}
	}
	err := h.sequence(ctx, j, b, func(box zarr.Region, data []byte) { b.check(&c, j.target.layout, box, data) })
	return c.value(), err
}

func (h *hostReader) round(ctx context.Context, j *job) (sample, error) {
	defer processors(h.setting.threads)()
	w := start()
	var err error
	if j.op == opStream {
		err = h.stream(ctx, j)
	} else {
		err = h.sequence(ctx, j, j.boxes, nil)
	}
	s := w.stop()
	s.backend = h.setting.backend
	if s.backend == "auto" {
		s.backend = "host"
	}
	return s, err
}

// sequence opens the array and reads boxes one after the other, into memory that is new at the
// first of them, and that take may look at.
func (h *hostReader) sequence(ctx context.Context, j *job, b boxes, take func(zarr.Region, []byte)) error {
	a, st, err := j.target.open(ctx, h.setting, h.options()...)
	if err != nil {
		return err
	}
	defer st.Close()
	defer a.Close()
	var buf []byte
	defer func() { mem.Free(buf) }()
	for _, box := range b.list {
		n := int(j.target.layout.bytes(box.Shape))
		if n > cap(buf) {
			mem.Free(buf)
			if buf, err = mem.Alloc(n); err != nil {
				return err
			}
		}
		buf = buf[:n]
		if err := a.Read(ctx, box, buf); err != nil {
			return err
		}
		if take != nil {
			take(box, buf)
		}
	}
	return nil
}

// piece is how many bytes of a raw chunk a stream reads at a time: they stay in a core's cache.
const piece = 1 << 20

// stream opens the array and reads all of it, as many chunks at a time as the setting says, raw
// ones in pieces of whole planes. Each worker has memory of its own, which it uses again.
func (h *hostReader) stream(ctx context.Context, j *job) error {
	a, st, err := j.target.open(ctx, h.setting, h.options()...)
	if err != nil {
		return err
	}
	defer st.Close()
	defer a.Close()
	one := a.With(zarr.Workers(1))
	l := j.target.layout
	unit := slices.Clone(j.boxes.list[0].Shape)
	if j.target.raw && a.Shard() == nil {
		unit[0] = int(max(1, min(int64(unit[0]), int64(unit[0])*piece/max(l.bytes(unit), 1))))
	}
	each := l.bytes(unit)
	workers := int(max(1, min(int64(h.setting.workers()), h.part/max(each, 1), int64(len(j.boxes.list)))))
	bufs := make([][]byte, workers)
	defer func() {
		for _, b := range bufs {
			mem.Free(b)
		}
	}()
	for i := range bufs {
		if bufs[i], err = mem.Alloc(int(each)); err != nil {
			return err
		}
	}
	return work.Each(ctx, workers, len(j.boxes.list), func(worker, i int) error {
		box := zarr.Region{Start: slices.Clone(j.boxes.list[i].Start), Shape: slices.Clone(j.boxes.list[i].Shape)}
		end := box.Start[0] + box.Shape[0]
		for box.Start[0] < end {
			box.Shape[0] = min(unit[0], end-box.Start[0])
			if err := one.Read(ctx, box, bufs[worker][:l.bytes(box.Shape)]); err != nil {
				return err
			}
			box.Start[0] += box.Shape[0]
		}
		return nil
	})
}

// contestant is one way in which a job is measured beside others.
type contestant struct {
	result  bench.Result
	reader  reader
	sum     uint32
	samples []sample
}

// measure does a job in rounds. In each every contestant has its turn, and another one begins: a
// machine's speed drifts, and who comes first may find memory in another state. The first
// contestant's checksum is what the others' is compared with.
func (m *machine) measure(ctx context.Context, j *job, list []*contestant, reps int, cold bool, progress func(int64)) error {
	var held float64
	first := -1
	for i, c := range list {
		sum, err := c.reader.check(ctx, j)
		if err != nil {
			if err := c.fail(ctx, err); err != nil {
				return err
			}
			continue
		}
		if c.sum = sum; first < 0 {
			first = i
		}
		if o := list[first]; sum != o.sum {
			return fmt.Errorf("%s: %s has read other elements than %s: the checksums of %s are %d and %d", j.target.path, c.who(), o.who(), j.op, sum, o.sum)
		}
	}
	for round := range reps {
		for i := range list {
			c := list[(i+round)%len(list)]
			if c.result.Reason != "" {
				continue
			}
			makeRoom(j.largest())
			if cold {
				n, err := j.target.drop(ctx)
				if err != nil {
					return err
				}
				held = max(held, n)
			}
			s, err := c.reader.round(ctx, j)
			if err != nil {
				if err := c.fail(ctx, err); err != nil {
					return err
				}
				continue
			}
			c.samples = append(c.samples, s)
			progress(j.bytes())
		}
	}
	for _, c := range list {
		c.fill(j)
		if cold && held > 0.01 {
			c.remark(fmt.Sprintf("%.0f%% of the array stayed in the page cache", 100*held))
		}
	}
	return nil
}

// fail notes why a contestant is not measured, where that is its own matter: a backend that cannot
// serve the array, another program's trouble. Other errors end the run.
func (c *contestant) fail(ctx context.Context, err error) error {
	var backend errBackend
	var other *peerError
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.As(err, &backend), errors.As(err, &other):
		c.result.Reason = err.Error()
		c.samples = nil
		return nil
	}
	return err
}

func (c *contestant) who() string {
	if b := c.result.Axes.Get("backend"); c.result.Who == bench.Strata && b != "" {
		return c.result.Who + " (" + b + ")"
	}
	return c.result.Who
}

func (c *contestant) remark(text string) {
	if c.result.Note != "" {
		c.result.Note += "; "
	}
	c.result.Note += text
}

// fill makes the result of the samples.
func (c *contestant) fill(j *job) {
	if len(c.samples) == 0 {
		return
	}
	r := &c.result
	var cpu []float64
	for _, s := range c.samples {
		r.Seconds = append(r.Seconds, s.seconds)
		cpu = append(cpu, s.cpu)
		r.RSS, r.Device, r.Backend = max(r.RSS, s.peak), max(r.Device, s.device), s.backend
	}
	r.CPU, r.Bytes, r.Checksum = bench.Median(cpu), j.bytes(), fmt.Sprint(c.sum)
	for _, s := range c.samples {
		if s.note != "" {
			c.remark(s.note)
			break
		}
	}
}
