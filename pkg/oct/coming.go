package oct

import (
	"context"
	"time"
)

// A Coming is a device that is being taken into use while a stage begins on the CPU.
type Coming struct {
	// First is how long the first pieces of work may take on the device, whose libraries load their kernels when they
	// are first called.
	First time.Duration
	// Piece is the longest that a piece of work is expected to take there after that, from when it is taken until it is
	// written.
	Piece time.Duration
	// Alone is how long the CPU is expected to take for all of the work.
	Alone time.Duration

	*arrival
}

// arrival is what becomes of a device.
type arrival struct {
	known chan struct{}
	add   func(*Resources) // nil: no device comes
}

// NewComing returns a device of which nothing is known yet.
func NewComing(first, piece, alone time.Duration) *Coming {
	return &Coming{First: first, Piece: piece, Alone: alone, arrival: &arrival{known: make(chan struct{})}}
}

// Pass returns the device for one of n passes over the input, which take about as long as each other.
func (c *Coming) Pass(n int) *Coming {
	if c == nil {
		return nil
	}
	pass := *c
	pass.Alone /= time.Duration(n)
	return &pass
}

// Settle ends the wait for the device: add puts it into resources, and nil means that none comes. It must be called
// once.
func (c *Coming) Settle(add func(*Resources)) {
	c.add = add
	close(c.known)
}

// Known returns a channel that is closed once it is clear whether the device comes; nil if none was on its way.
func (c *Coming) Known() <-chan struct{} {
	if c == nil {
		return nil
	}
	return c.known
}

// Late reports whether the CPU, which has done a part of some work in the given time, will have done all of it before
// the device would have done its first pieces. Before it has done any, it is taken to be as fast as expected.
func (c *Coming) Late(done, all int, took time.Duration) bool {
	whole := float64(c.Alone)
	if done > 0 {
		whole = float64(took) * float64(all) / float64(done)
	}
	return whole*float64(all-done) < float64(c.First+c.Piece)*float64(all)
}

// WithDevice returns the resources with the device that was coming. It returns false if there is none, and must be
// called after [Coming.Known] has been closed.
func (r Resources) WithDevice() (Resources, bool) {
	c := r.Coming
	if c == nil || c.add == nil {
		return r, r.Device != nil
	}
	c.add(&r)
	r.Coming = nil
	return r, true
}

// Settled waits until it is clear whether a device comes, and returns the resources with or without it. Use it for work
// that CPU and device cannot share.
func (r Resources) Settled(ctx context.Context) (Resources, error) {
	if r.Coming == nil {
		return r, nil
	}
	select {
	case <-r.Coming.Known():
	case <-ctx.Done():
		return r, ctx.Err()
	}
	r, _ = r.WithDevice()
	r.Coming = nil
	return r, nil
}
