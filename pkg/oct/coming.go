package oct

import (
	"context"
	"time"
)

// A Coming describes a device that is still being initialised while a stage already works on the CPU.
type Coming struct {
	// First is the expected duration of the first pieces of work on the device. They are slow, because its libraries
	// load their kernels at the first call.
	First time.Duration
	// Piece is the maximum expected duration of each later piece of work on the device, from reading to writing.
	Piece time.Duration
	// Alone is the expected duration of the whole work on the CPU alone.
	Alone time.Duration

	*arrival
}

// arrival holds the outcome of initialising a device.
type arrival struct {
	known chan struct{}
	add   func(*Resources) // nil: no device comes
}

// NewComing returns a device whose initialisation has not ended yet.
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

// Settle ends the initialisation: add puts the device into resources; nil means that the device is not available.
// Settle must be called exactly once.
func (c *Coming) Settle(add func(*Resources)) {
	c.add = add
	close(c.known)
}

// Known returns a channel that is closed when the initialisation has ended, or nil if c is nil.
func (c *Coming) Known() <-chan struct{} {
	if c == nil {
		return nil
	}
	return c.known
}

// Late reports whether the CPU will finish all pieces before the device finishes its first ones. done is the number of
// pieces that the CPU has finished in the time took; while it is 0, the CPU is assumed to be as fast as expected.
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

// Settled waits until the initialisation of the device has ended, and returns the resources with the device if it is
// available. Use it for work that CPU and device cannot share.
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
