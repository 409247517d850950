package benchczi

import (
	"context"
	"errors"
	"fmt"

	"strata/cmd/internal/benchkit"
	"strata/pkg/bench"
)

// reader does an operation in one way, with strata or another program.
type reader interface {
	// check does the operation once with the given tiles, outside of any measurement, and returns the checksum of the
	// data.
	check(ctx context.Context, tiles []int) (uint32, error)
	// round does the operation with all tiles and measures it.
	round(ctx context.Context) (sample, error)
}

// contestant is one of the ways in which an operation is measured.
type contestant struct {
	result  bench.Result
	reader  reader
	samples []sample
}

// mostChecked is the maximum number of tiles compared between ways and programs.
const mostChecked = 64

// checked returns evenly spread tiles of a list.
func checked(tiles []int) []int {
	n := min(len(tiles), mostChecked)
	out := make([]int, n)
	for k := range out {
		out[k] = tiles[k*len(tiles)/n]
	}
	return out
}

// measure does an operation in rounds. In each round every contestant has a turn, and another one begins, because
// a machine's speed drifts. The pixels are compared with those of the first contestant.
func measure(ctx context.Context, s *scan, list []*contestant, reps int, done func(int64)) error {
	if err := compared(ctx, s, list); err != nil {
		return err
	}
	var held float64
	for round := range reps {
		for i := range list {
			c := list[(i+round)%len(list)]
			if c.result.Reason != "" {
				continue
			}
			if s.cold {
				n, err := s.forget()
				if err != nil {
					return err
				}
				held = max(held, n)
			}
			x, err := c.reader.round(ctx)
			if err != nil {
				if err := c.fail(ctx, err); err != nil {
					return err
				}
				continue
			}
			c.samples = append(c.samples, x)
			done(c.result.Bytes)
		}
	}
	for _, c := range list {
		c.fill()
		if s.cold && held > 0.01 && c.result.Measured() {
			c.remark(fmt.Sprintf("%.0f%% of the file stayed in the page cache", 100*held))
		}
	}
	return nil
}

// compared does the operation once with some tiles in all ways, and compares the pixels.
func compared(ctx context.Context, s *scan, list []*contestant) error {
	tiles := checked(s.tiles)
	first := (*contestant)(nil)
	for _, c := range list {
		sum, err := c.reader.check(ctx, tiles)
		if err != nil {
			if err := c.fail(ctx, err); err != nil {
				return err
			}
			continue
		}
		c.result.Checksum = fmt.Sprint(sum)
		switch {
		case first == nil:
			first = c
		case c.result.Checksum == first.result.Checksum:
		case c.result.Who != bench.Strata:
			c.result.Reason = "reads other pixels than " + first.result.Who
		default:
			return fmt.Errorf("%s: %s reads other pixels than %s: the checksums are %s and %s", s.path, c.result.Axes, first.result.Axes, c.result.Checksum, first.result.Checksum)
		}
	}
	return nil
}

// fail records why a contestant is not measured, if the reason is its own: too little memory, or trouble with
// another program. Other errors end the run and are returned.
func (c *contestant) fail(ctx context.Context, err error) error {
	var memory *errMemory
	var other *benchkit.PeerError
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.As(err, &memory), errors.As(err, &other):
		c.result.Reason, c.samples = err.Error(), nil
		return nil
	}
	return err
}

func (c *contestant) remark(text string) {
	if c.result.Note != "" {
		c.result.Note += "; "
	}
	c.result.Note += text
}

// fill computes the result from the samples.
func (c *contestant) fill() {
	r := &c.result
	var cpu []float64
	for _, s := range c.samples {
		r.Seconds = append(r.Seconds, s.seconds)
		cpu = append(cpu, s.cpu)
		r.RSS, r.Grown = max(r.RSS, s.peak), max(r.Grown, s.grown)
	}
	r.CPU = bench.Median(cpu)
	if len(c.samples) == 0 {
		r.Bytes, r.Pixels, r.Ops, r.Checksum = 0, 0, 0, ""
	}
}
