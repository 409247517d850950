package run

import (
	"context"
	"sync"

	"strata/pkg/runrecord"
	"strata/pkg/work"
)

// later is a GPU that is being initialised while the run computes on the CPU.
type later struct {
	cancel context.CancelFunc

	mu      sync.Mutex
	over    bool           // the run waits for it no more
	settled bool           // it is clear whether there is one
	device  Device         // nil: there is none
	there   []func(Device) // wait for it
}

// Later initialises the GPU in a goroutine while the run computes on the CPU. The goroutine first calls wanted to ask
// whether the GPU is worth it. It then calls there with the device, or with nil if the run continues without one; it
// does not call there if the run has ended. If there is no GPU, the run reports the reason, as [Run.Device] does. A
// further call of Later gets the same device.
//
// A driver takes up to a second to start and cannot be interrupted. The run does not wait for it at its end: the
// goroutine closes a device that comes too late, or the process ends first. Runs of --batch share one device and wait
// for it with [Run.Device].
func (r *Run) Later(ctx context.Context, wanted func() bool, there func(d Device)) {
	if r.later.join(there) {
		return
	}
	ctx, cancel := context.WithCancel(ctx)
	l := &later{cancel: cancel, there: []func(Device){there}}
	r.later = l
	work.Async(func() struct{} {
		var d Device
		defer func() { l.settle(d) }() // after a panic, too
		err := work.Guard(func() (err error) {
			if wanted() {
				if d, err = r.accelerator(ctx, r); err == nil {
					d.Begin(r)
				}
			}
			return err
		})
		if err != nil {
			d = nil
		}
		if err != nil && ctx.Err() == nil {
			r.withoutIt(err)
		}
		return struct{}{}
	})
}

// join lets a function wait for the device too. It returns false where it takes a further try.
func (l *later) join(there func(Device)) bool {
	if l == nil {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case !l.settled:
		l.there = append(l.there, there)
	case l.device != nil:
		there(l.device)
	default:
		return false
	}
	return true
}

// settle notes the device and passes it on, unless the run has ended.
func (l *later) settle(d Device) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over {
		if d != nil {
			_ = d.Close()
		}
		return
	}
	l.settled, l.device = true, d
	for _, there := range l.there {
		there(d)
	}
}

// end stops waiting for the device, and returns the device if it is available. late reports that its initialisation has
// not ended.
func (l *later) end() (d Device, late bool) {
	if l == nil {
		return nil, false
	}
	l.cancel()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.over = true
	return l.device, !l.settled
}

// tooLate notes that the work was done before a GPU could join.
func (r *Run) tooLate() {
	r.mu.Lock()
	c := runrecord.Choice{}
	if r.record.Choice != nil {
		c = *r.record.Choice
	}
	r.mu.Unlock()
	c.On, c.Reason = "cpu", "ran on the CPU: the work was done before a GPU had started"
	r.Chose(c)
}
