package register

import (
	"context"
	"fmt"

	"strata/pkg/oct"
)

// Numbered is a slice of a folder, or why it could not be opened.
type Numbered struct {
	Slice
	ID  int
	Err error
}

// Pair is two neighbouring slices of a folder.
type Pair struct {
	Fixed, Moving Numbered
}

// Pairs returns the neighbours among slices that are ordered by number.
func Pairs(all []Numbered) (pairs []Pair) {
	for i := 1; i < len(all); i++ {
		pairs = append(pairs, Pair{all[i-1], all[i]})
	}
	return pairs
}

// Missing returns the number of slices that are missing between the two.
func (p Pair) Missing() int { return p.Moving.ID - p.Fixed.ID - 1 }

// All registers pairs, as many at a time as there are workers and memory, and calls write with each result; several
// goroutines do. Where slices are missing between two, the slicing interval counts for each. If stop is true, the first
// pair that cannot be read ends it; otherwise its result is that of [failed]. The results, without what
// [Result.Picture] needs, have the order of the pairs.
func All(ctx context.Context, pairs []Pair, o Options, stop bool, res oct.Resources, write func(k int, r *Result) error) ([]*Result, error) {
	need := int64(1)
	for _, p := range pairs {
		if p.Fixed.Err != nil || p.Moving.Err != nil {
			continue
		}
		if n, err := Need(p.Fixed.Slice, p.Moving.Slice, o); err == nil { // else the pair says so when its turn comes
			need = max(need, n)
		}
	}
	workers := max(1, min(res.Workers, len(pairs), int(res.Mem/need)))
	each := res.Part(workers)
	// where memory holds fewer pairs than there are processors, more of these work on each
	crew := res.Crew(oct.Team{What: fmt.Sprintf("registering %d pairs", len(pairs)), Workers: workers, Pieces: workers, Each: need})
	out := make([]*Result, len(pairs))
	err := crew.Each(ctx, len(pairs), func(_, k int) error {
		p := pairs[k]
		r, err := p.run(ctx, o, each)
		if err != nil {
			if stop || ctx.Err() != nil {
				return err
			}
			r = failed(p.Fixed.Slice, p.Moving.Slice, o, err)
		}
		err = write(k, r)
		r.planes = [2]*plane{}
		out[k] = r
		return err
	})
	return out, err
}

// run registers the pair.
func (p Pair) run(ctx context.Context, o Options, res oct.Resources) (*Result, error) {
	for _, s := range []Numbered{p.Fixed, p.Moving} {
		if s.Err != nil {
			return nil, s.Err
		}
	}
	o.Apart = 1 + p.Missing()
	return Run(ctx, p.Fixed.Slice, p.Moving.Slice, o, res)
}
