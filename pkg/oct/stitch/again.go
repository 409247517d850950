package stitch

import (
	"context"
	"math"
	"slices"

	"strata/pkg/filter"
	"strata/pkg/oct/stitch/consensus"
)

const (
	// nearlyAll is how much farther from 1 the correlation of a pair may be than most others' if it lies where it
	// should not. With 1, the errors of all mosaics of make quality QUALITY=tiles add up to 9 % more.
	nearlyAll = 2
	// nearlyDoubted is the same for a pair with which the overviews agree by less than leastEvidence, but by more than
	// leastDoubted standard deviations of chance. Without it, five of these more have a wrong tile.
	nearlyDoubted, leastDoubted = 20, 1
)

// readmit restores the vote of pairs that were excluded because they lie too far from the expected place or have little
// support in the overviews, if they correlate about as well as most voting pairs. Wrong pairs among them will
// contradict the others and be dropped later.
func readmit(measures []measure) {
	var unlike []float64
	for _, m := range measures {
		if m.reason == "" {
			unlike = append(unlike, 1-m.correlation)
		}
	}
	if len(unlike) == 0 {
		return
	}
	most := filter.MedianOf(unlike)
	for i := range measures {
		m := &measures[i]
		far := m.reason == TooFar && 1-m.correlation <= nearlyAll*most
		doubted := m.reason == noTexture && m.evidence > leastDoubted && 1-m.correlation <= min(nearlyDoubted*most, 1-leastReadmitted)
		if far || doubted {
			m.reason = ""
		}
	}
}

// leastReadmitted is the least correlation of a doubted pair that votes.
const leastReadmitted = 0.5

// rejoin returns by how much farther the tiles lie that nothing joins to the rest than an arrangement has them, (y, x)
// in px: where the overviews of all pairs that could join them agree.
func (e *estimator) rejoin(a *consensus.Arrangement, pairs []consensus.Pair) [][2]float64 {
	joining := map[int][]consensus.Pair{} // by group
	main := e.main(a.Fit)
	for _, p := range pairs {
		if main[p.A] == main[p.B] {
			continue
		}
		sign, tile := 1.0, p.B
		if main[p.B] {
			sign, tile = -1, p.A
		}
		at := a.Displacement(p.A, p.B)
		p.Candidates = slices.Clone(p.Candidates)
		for i := range p.Candidates {
			c := &p.Candidates[i]
			c.D = [2]float64{sign * (c.D[0] - at[0]), sign * (c.D[1] - at[1])}
		}
		joining[a.Group(tile)] = append(joining[a.Group(tile)], p)
	}
	out := make([][2]float64, len(e.grid.Row))
	for g, all := range joining {
		// Groups that slipped reach 12 and 14 votes in eight of these mosaics (TILE_SEEDS=3), others 3.
		if d, v := consensus.VoteOffset(all, e.chance, e.least()); v.Votes > leastVotes {
			out[g] = d
		}
	}
	for t := range out {
		out[t] = out[a.Group(t)]
	}
	return out
}

// main reports for each tile whether it belongs to the largest group of connected tiles of its mosaic.
func (e *estimator) main(f *consensus.Fit) []bool {
	largest := slices.Clone(e.first)
	for t, m := range e.grid.Mosaic {
		if f.Connected(t) > f.Connected(largest[m]) {
			largest[m] = t
		}
	}
	out := make([]bool, len(e.grid.Mosaic))
	for t, m := range e.grid.Mosaic {
		out[t] = f.SameGroup(t, largest[m])
	}
	return out
}

// again measures the pairs without a vote a second time, near the positions that the arrangement a plus offset gives
// them. A pair that is found this time replaces its entry in measures.
func (e *estimator) again(ctx context.Context, a *consensus.Arrangement, offset [][2]float64, measures []measure) error {
	silent := map[[2]int]int{}
	for i, m := range measures {
		if m.reason != "" && !m.emptyA && !m.emptyB {
			silent[[2]int{m.a, m.b}] = i
		}
	}
	if len(silent) == 0 {
		return nil
	}
	t := e.all[0].grid.tile
	wide := min(max(nearby, int(math.Ceil(2.5*e.scatter))), max(t[0], t[1])/8)
	every := make([][]pair, len(e.all))
	for k, al := range e.all {
		every[k] = al.pairs
		al.pairs = slices.DeleteFunc(slices.Clone(al.pairs), func(p pair) bool {
			_, is := silent[[2]int{p.a + e.first[k], p.b + e.first[k]}]
			return !is
		})
	}
	found, err := e.compare(ctx, e.expects(a, offset), func(k int, p pair) int {
		if a.SameGroup(p.a+e.first[k], p.b+e.first[k]) {
			return nearby
		}
		return wide
	}, leastEvidenceAgain)
	for k, al := range e.all {
		al.pairs = every[k]
	}
	for _, m := range found {
		if m.reason == "" {
			measures[silent[[2]int{m.a, m.b}]] = m
		}
	}
	return err
}

// nearby is the search range, in px, around the position that other pairs give a pair.
const nearby = 4
