package run

import (
	"context"
	"errors"
	"testing"
	"time"

	"strata/pkg/cli/flags"
	"strata/pkg/runrecord"
)

// fakeDevice tells when it is given back.
type fakeDevice chan struct{}

func (d fakeDevice) Begin(*Run)                     {}
func (d fakeDevice) Record() (runrecord.GPU, int64) { return runrecord.GPU{Name: "fake"}, 7 }
func (d fakeDevice) Close() error                   { close(d); return nil }

// closed reports whether the device is given back before long.
func (d fakeDevice) closed() bool {
	select {
	case <-d:
		return true
	case <-time.After(time.Minute):
		return false
	}
}

// TestLater: a device joins the run whenever it comes, and is given back; the end of the run does not wait for it.
func TestLater(t *testing.T) {
	ctx := context.Background()
	wanted := func() bool { return true }

	there, on := make(chan Device, 2), fakeDevice(make(chan struct{}))
	begun := 0
	r := &Run{gpu: &opened{}, accelerator: func(context.Context, *Run) (Device, error) { begun++; return on, nil }}
	r.Later(ctx, wanted, func(d Device) { there <- d })
	if d := <-there; d != Device(on) {
		t.Errorf("%v came", d)
	}
	r.Later(ctx, wanted, func(d Device) { there <- d })
	if d := <-there; d != Device(on) || begun != 1 {
		t.Errorf("a second time %v came, begun %d times", d, begun)
	}
	r.closeDevice()
	if !on.closed() || r.record.GPU == nil || r.record.GPU.Name != "fake" || r.record.Choice != nil {
		t.Errorf("record %+v, choice %+v", r.record.GPU, r.record.Choice)
	}

	late, opens := fakeDevice(make(chan struct{})), make(chan struct{})
	r = &Run{gpu: &opened{}, accelerator: func(context.Context, *Run) (Device, error) { <-opens; return late, nil }}
	r.Later(ctx, wanted, func(d Device) { t.Errorf("%v came after the end", d) })
	r.closeDevice()
	close(opens)
	if !late.closed() || r.record.GPU != nil || r.record.Choice == nil || r.record.Choice.On != "cpu" {
		t.Errorf("late: record %+v, choice %+v", r.record.GPU, r.record.Choice)
	}

	r = &Run{gpu: &opened{}, accelerator: func(context.Context, *Run) (Device, error) { t.Error("it was not wanted"); return nil, nil }}
	r.Later(ctx, func() bool { return false }, func(d Device) { there <- d })
	if d := <-there; d != nil {
		t.Errorf("not wanted, %v came", d)
	}

	r = &Run{gpu: &opened{}, Line: &flags.Line{}, accelerator: func(context.Context, *Run) (Device, error) { return nil, NoDriver(errors.New("no library")) }}
	r.Later(ctx, wanted, func(d Device) { there <- d })
	if d := <-there; d != nil || r.record.Fallback == nil || r.record.Fallback.Reason != "no library" {
		t.Errorf("%v came; fallback %+v", d, r.record.Fallback)
	}
}
