package benchkit

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"time"

	"strata/pkg/bench"
)

// Sample is the result of one repetition.
type Sample struct {
	Seconds, CPU float64
	Peak         int64  // most resident memory
	Grown        int64  // part of it that the process did not have before; 0: not measured
	Device       int64  // bytes that crossed to or from a device
	Backend      string // that really ran
	Note         string // what did not go as the setting says
	More         any    // what only the program that measures knows of
}

// A Stopwatch measures the time and resources between Start and Stop.
type Stopwatch struct {
	began time.Time
	usage bench.Usage
}

// Start starts a stopwatch, after giving the memory of what came before back to the system.
func Start() Stopwatch {
	debug.FreeOSMemory()
	return Stopwatch{usage: bench.Begin(), began: time.Now()}
}

// Stop returns what was used since the start.
func (w Stopwatch) Stop() Sample {
	s := Sample{Seconds: time.Since(w.began).Seconds()}
	s.CPU, s.Peak = w.usage.End()
	return s
}

// Processors limits the number of threads of the process that compute, and returns a function that undoes it.
func Processors(n int) (undo func()) {
	was := runtime.GOMAXPROCS(0)
	runtime.GOMAXPROCS(min(n, runtime.NumCPU()))
	return func() { runtime.GOMAXPROCS(was) }
}

// Unable reports that a way, or another program, cannot do what it was asked for. Its result says so, and the run goes
// on.
type Unable struct{ Reason error }

func (e *Unable) Error() string { return e.Reason.Error() }

// Unwrap returns the reason.
func (e *Unable) Unwrap() error { return e.Reason }

// Unablef returns an error of type [Unable].
func Unablef(format string, args ...any) error { return &Unable{fmt.Errorf(format, args...)} }

// A Contestant is one of the ways in which an operation is measured. What its result has besides times, such as the
// bytes that a repetition moves, is set before, and holds if there are repetitions.
type Contestant struct {
	Result  bench.Result
	Sum     uint64 // checksum of the data
	Samples []Sample
	// Check does the operation once, outside of any measurement, and returns the checksum of the data.
	Check func(ctx context.Context) (uint64, error)
	// Round does the operation once and measures it.
	Round func(ctx context.Context) (Sample, error)
}

// Compare does an operation once in all ways. It calls differ for a way whose checksum is not that of the first.
func Compare(ctx context.Context, list []*Contestant, differ func(c, first *Contestant) error) error {
	var first *Contestant
	for _, c := range list {
		if c.Result.Reason != "" {
			continue
		}
		sum, err := c.Check(ctx)
		if err != nil {
			if err := c.fail(ctx, err); err != nil {
				return err
			}
			continue
		}
		c.Sum, c.Result.Checksum = sum, fmt.Sprint(sum)
		if first == nil {
			first = c
		}
		if sum != first.Sum {
			if err := differ(c, first); err != nil {
				return err
			}
		}
	}
	return nil
}

// Race measures contestants in rounds and computes their results. In each round every contestant has a turn, and
// another one begins, because a machine's speed drifts and the first may find memory in another state. before is called
// ahead of each repetition, done behind those that succeed.
func Race(ctx context.Context, list []*Contestant, reps int, before func(ctx context.Context) error, done func(c *Contestant, s Sample)) error {
	for round := range reps {
		for i := range list {
			c := list[(i+round)%len(list)]
			if c.Result.Reason != "" {
				continue
			}
			if err := before(ctx); err != nil {
				return err
			}
			s, err := c.Round(ctx)
			if err != nil {
				if err := c.fail(ctx, err); err != nil {
					return err
				}
				continue
			}
			c.Samples = append(c.Samples, s)
			done(c, s)
		}
	}
	for _, c := range list {
		c.fill()
	}
	return nil
}

// fail records why a contestant is not measured, if the reason is its own. Other errors end the run and are returned.
func (c *Contestant) fail(ctx context.Context, err error) error {
	var unable *Unable
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.As(err, &unable):
		c.Result.Reason, c.Samples = err.Error(), nil
		return nil
	}
	return err
}

// Remark adds to the note of the result.
func (c *Contestant) Remark(text string) {
	if c.Result.Note != "" {
		c.Result.Note += "; "
	}
	c.Result.Note += text
}

// fill computes the result from the samples.
func (c *Contestant) fill() {
	r := &c.Result
	if len(c.Samples) == 0 {
		r.Bytes, r.Pixels, r.Ops, r.Checksum = 0, 0, 0, ""
		return
	}
	var cpu []float64
	note := ""
	for _, s := range c.Samples {
		r.Seconds = append(r.Seconds, s.Seconds)
		cpu = append(cpu, s.CPU)
		r.RSS, r.Grown, r.Device, r.Backend = max(r.RSS, s.Peak), max(r.Grown, s.Grown), max(r.Device, s.Device), s.Backend
		if note == "" {
			note = s.Note
		}
	}
	if r.CPU = bench.Median(cpu); note != "" {
		c.Remark(note)
	}
}
