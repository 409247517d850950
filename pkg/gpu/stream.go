package gpu

import (
	"cmp"
	"errors"
	"fmt"
	"sync/atomic"
	"unsafe"

	"strata/pkg/mem"
)

// Stream is a queue of work on a device. Its work runs in order, concurrently with other streams. Only one
// goroutine at a time may use it. The first error persists: later calls do nothing, and Wait returns it.
type Stream struct {
	device *Device
	thread *thread
	handle uintptr
	args   []byte // of a launch, outside the Go heap, where the driver may read it
	stretch
	marked []stretch // those that end at a mark, the oldest first
	idle   []uintptr // events that no mark uses
	ends   []func()  // before the stream does
	silent bool      // copies are not counted
}

// stretch holds what has been queued since the previous mark.
type stretch struct {
	mark   uintptr        // the event at its end
	checks []func() error // of what has run
	after  []func()       // once it has run
	err    error          // of queueing it
}

// ran calls the functions that waited for the stretch and returns the first error of queuing, of waiting, or
// of these.
func (s *stretch) ran(waited error) error {
	err := cmp.Or(s.err, waited)
	for _, f := range s.checks {
		if err == nil {
			err = f()
		}
	}
	for _, f := range s.after {
		f()
	}
	return err
}

// Uncounted sets whether copies queued from now on are left out of [Device.Traffic], for tests of the device.
func (s *Stream) Uncounted(yes bool) { s.silent = yes }

// count counts bytes of a copy.
func (s *Stream) count(to *atomic.Int64, n int64) {
	if !s.silent {
		to.Add(n)
	}
}

const nonBlocking = 1 // CU_STREAM_NON_BLOCKING: does not wait for the null stream

// Stream returns a new stream. The caller closes it.
func (d *Device) Stream() (*Stream, error) {
	args, err := mem.Alloc(argsSize)
	if err != nil {
		return nil, err
	}
	s := &Stream{device: d, thread: newThread(), args: args}
	s.call("cuCtxSetCurrent", func() result { return driver.CtxSetCurrent(d.ctx) })
	s.call("cuStreamCreate", func() result { return driver.StreamCreate(&s.handle, nonBlocking) })
	if s.err != nil {
		s.thread.end()
		mem.Free(args)
		return nil, s.err
	}
	return s, nil
}

// Device returns the stream's device.
func (s *Stream) Device() *Device { return s.device }

// Close waits for queued work and ends the stream. It returns an error that no Wait has returned, unless the
// context is lost.
func (s *Stream) Close() error {
	err := s.Wait()
	for _, f := range s.ends {
		f()
	}
	if s.device.Lost() != nil {
		err = nil // whoever queued the work has the error
	}
	s.thread.do(func() {
		for _, e := range s.idle {
			err = errors.Join(err, s.device.givenBack(check("cuEventDestroy_v2", driver.EventDestroy(e))))
		}
		err = errors.Join(err, s.device.givenBack(check("cuStreamDestroy_v2", driver.StreamDestroy(s.handle))))
		_ = driver.CtxSetCurrent(0)
	})
	s.thread.end()
	mem.Free(s.args)
	return err
}

// Handle returns the stream's CUstream, for libraries that take one.
func (s *Stream) Handle() uintptr { return s.handle }

// OnClose calls f when the stream is closed, after its queued work has run.
func (s *Stream) OnClose(f func()) { s.ends = append(s.ends, f) }

// Queue lets another library queue work: it calls f on the stream's thread, where the context is current,
// with the stream's handle (CUstream), unless the stream has failed. An error of f becomes the stream's.
func (s *Stream) Queue(f func(handle uintptr) error) {
	if s.err != nil {
		return
	}
	s.thread.do(func() { s.err = s.device.note(f(s.handle)) })
}

// Check calls f once the work queued so far has run and been waited for without an error, to inspect results
// in page-locked memory. Wait returns its error.
func (s *Stream) Check(f func() error) { s.checks = append(s.checks, f) }

// call queues something, unless something failed before.
func (s *Stream) call(name string, f func() result) {
	if s.err != nil {
		return
	}
	s.thread.do(func() { s.err = s.device.note(check(name, f())) })
}

// fail remembers an error that the driver does not know of.
func (s *Stream) fail(err error) {
	if s.err == nil {
		s.err = err
	}
}

// Upload copies page-locked host memory to the beginning of dst. The memory must not
// change before Wait.
func (s *Stream) Upload(dst Span, src []byte) {
	if int64(len(src)) > dst.bytes {
		s.fail(fmt.Errorf("upload of %d bytes into %d", len(src), dst.bytes))
	}
	if len(src) == 0 {
		return
	}
	s.call("cuMemcpyHtoDAsync_v2", func() result {
		s.count(&s.device.up, int64(len(src)))
		return driver.MemcpyHtoD(dst.address, unsafe.Pointer(unsafe.SliceData(src)), uint64(len(src)), s.handle)
	})
}

// Download copies the beginning of src to page-locked host memory, where it is valid after Wait.
func (s *Stream) Download(dst []byte, src Span) {
	if int64(len(dst)) > src.bytes {
		s.fail(fmt.Errorf("download of %d bytes from %d", len(dst), src.bytes))
	}
	if len(dst) == 0 {
		return
	}
	s.call("cuMemcpyDtoHAsync_v2", func() result {
		s.count(&s.device.down, int64(len(dst)))
		return driver.MemcpyDtoH(unsafe.Pointer(unsafe.SliceData(dst)), src.address, uint64(len(dst)), s.handle)
	})
}

// Copy copies src to the beginning of dst. They must not overlap.
func (s *Stream) Copy(dst, src Span) {
	if src.bytes > dst.bytes {
		s.fail(fmt.Errorf("copy of %d bytes into %d", src.bytes, dst.bytes))
	}
	if src.bytes == 0 {
		return
	}
	s.call("cuMemcpyDtoDAsync_v2", func() result {
		s.count(&s.device.across, src.bytes)
		return driver.MemcpyDtoD(dst.address, src.address, uint64(src.bytes), s.handle)
	})
}

// Zero sets all bytes of dst to zero.
func (s *Stream) Zero(dst Span) {
	if dst.bytes == 0 {
		return
	}
	s.call("cuMemsetD8Async", func() result { return driver.MemsetD8(dst.address, 0, uint64(dst.bytes), s.handle) })
}

// Release returns a buffer to its pool once the work queued so far has run.
func (s *Stream) Release(b *Buffer) { s.After(b.Release) }

// After calls f once the work queued so far has run and been waited for, even after an error.
func (s *Stream) After(f func()) { s.after = append(s.after, f) }

// Mark ends a section of the queue, so that [Stream.Passed] can wait for it while later work continues.
func (s *Stream) Mark() {
	done := s.stretch
	s.stretch = stretch{}
	if n := len(s.idle); n > 0 {
		done.mark, s.idle = s.idle[n-1], s.idle[:n-1]
	} else {
		s.call("cuEventCreate", func() result { return driver.EventCreate(&done.mark, disableTiming|blockingSync) })
	}
	s.call("cuEventRecord", func() result { return driver.EventRecord(done.mark, s.handle) })
	done.err, s.err = cmp.Or(done.err, s.err), nil
	s.marked = append(s.marked, done)
}

// Passed waits for the oldest section that [Stream.Mark] ended and that was not waited for, and returns the section's
// first error. Without such a section it does nothing.
func (s *Stream) Passed() error {
	if len(s.marked) == 0 {
		return nil
	}
	first := s.marked[0]
	s.marked = s.marked[1:]
	later := s.err
	s.err = nil
	if first.mark != 0 {
		s.call("cuEventSynchronize", func() result { return driver.EventSynchronize(first.mark) })
		s.idle = append(s.idle, first.mark)
	}
	waited := s.err
	s.err = later
	return first.ran(waited)
}

// Wait waits until all queued work has run. It returns the first error since the last Wait; afterwards the
// stream can be used again, unless the context is lost.
func (s *Stream) Wait() error {
	all := append(s.marked, s.stretch)
	s.marked, s.stretch = nil, stretch{}
	s.call("cuStreamSynchronize", func() result { return driver.StreamSynchronize(s.handle) })
	var err error
	for _, part := range all {
		if part.mark != 0 {
			s.idle = append(s.idle, part.mark)
		}
		err = cmp.Or(err, part.ran(cmp.Or(err, s.err))) // after an error nothing is looked at
	}
	s.err = nil
	return err
}

// Event is a point in a stream's queue that other streams can wait for.
type Event struct {
	device *Device
	handle uintptr
}

const (
	blockingSync  = 1 // CU_EVENT_BLOCKING_SYNC: who waits for it sleeps
	disableTiming = 2 // CU_EVENT_DISABLE_TIMING: recording costs less
)

// Event returns a new event, not yet recorded. It only orders streams; [Device.TimedEvent] also measures
// time.
func (d *Device) Event() (*Event, error) { return d.event(disableTiming) }

// TimedEvent returns a new event for [Event.Since].
func (d *Device) TimedEvent() (*Event, error) { return d.event(0) }

func (d *Device) event(flags uint32) (*Event, error) {
	e := &Event{device: d}
	err := d.do(func() error { return check("cuEventCreate", driver.EventCreate(&e.handle, flags)) })
	if err != nil {
		return nil, err
	}
	return e, nil
}

// Close destroys the event.
func (e *Event) Close() error {
	return e.device.givenBack(e.device.do(func() error { return check("cuEventDestroy_v2", driver.EventDestroy(e.handle)) }))
}

// Record sets the event to the point behind all work queued on the stream.
func (s *Stream) Record(e *Event) {
	s.call("cuEventRecord", func() result { return driver.EventRecord(e.handle, s.handle) })
}

// Follow makes work queued from now on wait for the event, which another stream recorded.
func (s *Stream) Follow(e *Event) {
	s.call("cuStreamWaitEvent", func() result { return driver.StreamWaitEvent(s.handle, e.handle, 0) })
}

// Since returns the seconds of device time from the event from to e. Both come from [Device.TimedEvent] and
// must have been waited for.
func (e *Event) Since(from *Event) (float64, error) {
	var ms float32
	err := e.device.do(func() error {
		return check("cuEventElapsedTime", driver.EventElapsedTime(&ms, from.handle, e.handle))
	})
	return float64(ms) / 1e3, err
}
