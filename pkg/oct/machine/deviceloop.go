package machine

import (
	"context"
	"errors"
	"time"

	"strata/pkg/gpu"
	"strata/pkg/meter"
	"strata/pkg/oct"
	"strata/pkg/zarr"
	"strata/pkg/zarr/zarrgpu"
)

// MostSlots is how many regions of the input a worker has under way: one that the host reads, one that the device
// works on, and one that waits for it.
const MostSlots = 3

// Begin takes memory for what goes to the device and what comes back: as many slots as a
// worker can use, or as there is memory for, at least one, and for each a place of so
// many bytes of page-locked memory. The worker's end gives it back.
func (w *DeviceWorker) Begin(r *zarrgpu.Reader, shape []int, bytes int) (places [][]byte, err error) {
	for range MostSlots {
		p, err := w.Pinned(bytes)
		var s *zarrgpu.Slot
		if err == nil {
			s, err = r.Slot(shape)
		}
		if err != nil {
			if len(w.Slots) > 0 && errors.Is(err, gpu.ErrMemory) {
				break
			}
			return nil, err
		}
		places, w.Slots = append(places, p), append(w.Slots, s)
	}
	return places, nil
}

// DeviceJob is a part of a stage's output, as a worker makes it on a device.
type DeviceJob struct {
	Regions []zarr.Region // of the input, fetched in this order
	// queue queues on the worker's stream what is to be done with region i, from its
	// slot.Into on; with the last one, the copy of what comes back.
	Queue func(i int, slot *zarrgpu.Slot) error
	// write takes what came back, while the device works on the next job.
	Write func(ctx context.Context) error
}

// deviceStep is a region of a job, in the slot through which it goes.
type deviceStep struct {
	job  *DeviceJob
	i    int
	slot *zarrgpu.Slot
}

// ends reports whether the job is done with this step.
func (s *deviceStep) ends() bool { return s.i == len(s.job.Regions)-1 }

// DeviceLoop is a worker that does one job after the other. While the device works on a
// region, the host fetches the next one, of the same job or of the one behind it, and
// writes what came of the job before. With one slot all this is done in turn.
type DeviceLoop struct {
	Worker *DeviceWorker
	Res    *oct.Resources
	// next is the next job. What comes back of it has a place of its own among as many
	// as there are slots.
	Next func(place int) (*DeviceJob, bool)

	job         *DeviceJob // whose regions are being fetched
	i           int        // the next of them
	jobs, steps int        // that began
	over        bool       // there are no more jobs
}

// Run does jobs until there are none.
func (l *DeviceLoop) Run(ctx context.Context) error {
	var running *deviceStep // what the device works on
	for running != nil || !l.over {
		if running != nil && len(l.Worker.Slots) == 1 {
			if err := l.finish(ctx, running); err != nil {
				return err
			}
			running = nil
		}
		ahead := l.step()
		if ahead != nil {
			if err := ahead.slot.Fetch(ctx, ahead.job.Regions[ahead.i]); err != nil {
				return oct.Readable(err)
			}
		}
		if running != nil {
			if err := l.wait(running); err != nil {
				return err
			}
		}
		if ahead != nil {
			if err := l.queue(ahead.job, ahead.i, ahead.slot); err != nil {
				return err
			}
		}
		if running != nil && running.ends() {
			if err := running.job.Write(ctx); err != nil {
				return err
			}
		}
		running = ahead
	}
	return nil
}

// step is the next region to fetch; nil: there is none.
func (l *DeviceLoop) step() *deviceStep {
	if l.job == nil || l.i == len(l.job.Regions) {
		if l.over {
			return nil
		}
		var ok bool
		if l.job, ok = l.Next(l.jobs % len(l.Worker.Slots)); !ok {
			l.job, l.over = nil, true
			return nil
		}
		l.i = 0
		l.jobs++
	}
	s := &deviceStep{l.job, l.i, l.Worker.Slots[l.steps%len(l.Worker.Slots)]}
	l.i++
	l.steps++
	return s
}

// queue queues a step.
func (l *DeviceLoop) queue(job *DeviceJob, i int, slot *zarrgpu.Slot) error {
	start := time.Now()
	defer func() { l.Res.Meter.Since(meter.Compute, start) }()
	return job.Queue(i, slot)
}

// finish waits for a step and writes what came of its job, if it is done.
func (l *DeviceLoop) finish(ctx context.Context, s *deviceStep) error {
	if err := l.wait(s); err != nil || !s.ends() {
		return err
	}
	return s.job.Write(ctx)
}

// wait waits for a step.
func (l *DeviceLoop) wait(s *deviceStep) error {
	start := time.Now()
	err := l.Worker.Stream.Wait()
	l.Res.Meter.Since(meter.Compute, start)
	if err == nil {
		l.Res.Done(s.slot.Reader().Bytes(s.job.Regions[s.i].Shape))
	}
	return err
}
