package benchczi

import (
	"context"
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
	round(ctx context.Context) (benchkit.Sample, error)
}

// contestant returns a reader of a scan's tiles as a contestant.
func (s *scan) contestant(result bench.Result, r reader) *benchkit.Contestant {
	return &benchkit.Contestant{Result: result, Round: r.round, Check: func(ctx context.Context) (uint64, error) {
		sum, err := r.check(ctx, checked(s.tiles))
		return uint64(sum), err
	}}
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

// measure does an operation in rounds, by turns. The pixels of some tiles are compared with those of the first
// contestant.
func measure(ctx context.Context, s *scan, list []*benchkit.Contestant, reps int, done func(int64)) error {
	if err := benchkit.Compare(ctx, list, func(c, first *benchkit.Contestant) error {
		if c.Result.Who == bench.Strata {
			return fmt.Errorf("%s: %s reads other pixels than %s: the checksums are %d and %d", s.path, c.Result.Axes, first.Result.Axes, c.Sum, first.Sum)
		}
		c.Result.Reason = "reads other pixels than " + first.Result.Who
		return nil
	}); err != nil {
		return err
	}
	var held float64
	before := func(context.Context) error {
		if !s.cold {
			return nil
		}
		n, err := s.forget()
		held = max(held, n)
		return err
	}
	if err := benchkit.Race(ctx, list, reps, before, func(c *benchkit.Contestant, _ benchkit.Sample) { done(c.Result.Bytes) }); err != nil {
		return err
	}
	for _, c := range list {
		if held > 0.01 && c.Result.Measured() {
			c.Remark(fmt.Sprintf("%.0f%% of the file stayed in the page cache", 100*held))
		}
	}
	return nil
}
