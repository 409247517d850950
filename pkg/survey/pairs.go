package survey

import (
	"context"
	"math"
	"slices"

	"strata/pkg/filter"
)

const (
	// good is the correlation of an overlap above which two tiles are neighbours.
	good = 0.4
	// fair is the least mean correlation of neighbours from which an order is concluded.
	fair = 0.3
	// leastOverlap and mostSlant bound where neighbours lie: the fraction of a tile that both show, and how far it is
	// to the side.
	leastOverlap, mostSlant = 0.015, 0.15
	// repeat bounds how much the steps of the stage may differ, as a fraction of a tile.
	repeat = 0.035
	// surely is the overlap below which correlations count less.
	surely = 0.06
)

// fit describes how well tile b follows tile a along an axis.
type fit struct {
	score   float64 // the correlation of the overlap; 0: none
	overlap float64 // fraction of a tile
	slant   float64 // by how much b lies to the side of a, as a fraction of a tile
}

// agree reports whether two fits may be of the same grid: the stage repeats its steps to a few per cent of a tile.
func (f fit) agree(o fit) bool {
	return math.Abs(f.overlap-o.overlap) <= repeat && math.Abs(f.slant-o.slant) <= repeat
}

// consensus returns the fit that agrees with others whose scores have the highest sum.
func consensus(fits []fit) (best fit) {
	top := 0.0
	for _, f := range fits {
		sum := 0.0
		for _, o := range fits {
			if f.agree(o) {
				sum += o.score
			}
		}
		if sum > top {
			best, top = f, sum
		}
	}
	return best
}

// behind fits tile b behind tile a along an axis: below it (0) or to its right (1). It compares two tiles once.
func (m *pictures) behind(ctx context.Context, a, b, axis int) (fit, error) {
	if f, ok := m.fits[[3]int{a, b, axis}]; ok {
		return f, nil
	}
	f, err := m.compare(ctx, a, b, axis)
	if err == nil {
		m.fits[[3]int{a, b, axis}] = f
	}
	return f, err
}

func (m *pictures) compare(ctx context.Context, a, b, axis int) (fit, error) {
	p, err := m.picture(ctx, a)
	if err != nil {
		return fit{}, err
	}
	q, err := m.picture(ctx, b)
	if err != nil || p == nil || q == nil || p.ny != q.ny || p.nx != q.nx {
		return fit{}, err
	}
	half := [2]int{p.ny, p.nx}
	half[axis] /= 2
	if min(half[0], half[1]) < 8 {
		return fit{}, nil
	}
	from := [2]int{}
	from[axis] = [2]int{p.ny, p.nx}[axis] - half[axis]
	fixed := filter.Crop(p.detail, p.nx, from, half[0], half[1])
	moving := filter.Crop(q.detail, q.nx, [2]int{}, half[0], half[1])
	expected := [2]int{}
	expected[axis] = half[axis] / 2
	match := m.phase.MatchNear(fixed, moving, half[0], half[1], expected, half[axis]/2)
	d := [2]int{match.DY, match.DX}
	overlap := float64(half[axis]-d[axis]) / float64([2]int{p.ny, p.nx}[axis])
	slant := float64(d[1-axis]) / float64(half[1-axis])
	if overlap < leastOverlap || math.Abs(slant) > mostSlant || math.IsNaN(match.Correlation) {
		return fit{}, nil
	}
	// A narrow overlap of smooth tissue correlates by chance.
	return fit{max(0, match.Correlation) * math.Sqrt(min(1, overlap/surely)), overlap, slant}, nil
}

// along fits tile b before or behind tile a along an axis, and returns the better with its direction, 1 or −1.
func (m *pictures) along(ctx context.Context, a, b, axis int) (fit, int, error) {
	forward, err := m.behind(ctx, a, b, axis)
	if err != nil {
		return fit{}, 0, err
	}
	back, err := m.behind(ctx, b, a, axis)
	if back.score > forward.score {
		return back, -1, err
	}
	return forward, 1, err
}

// spread returns at most n numbers from 0 to below all, evenly spread.
func spread(n, all int) (out []int) {
	n = min(n, all)
	for i := range n {
		out = append(out, (2*i+1)*all/(2*n))
	}
	return slices.Compact(out)
}

// mostPairs is the number of pairs along an axis of which the overlap is measured.
const mostPairs = 10

// measure measures the overlap of neighbours, and returns the fits along y and x of those that correlate, and how many
// were compared. direction is −1 for an axis along which places run against the pictures.
func (m *pictures) measure(ctx context.Context) (fits [2][]fit, direction [2]int, compared int, err error) {
	for axis := range 2 {
		step := [2]int{}
		step[axis] = 1
		var pairs [][2]int
		for i := range m.grid[0] {
			for j := range m.grid[1] {
				a, ok := m.at[[2]int{i, j}]
				b, there := m.at[[2]int{i + step[0], j + step[1]}]
				if ok && there {
					pairs = append(pairs, [2]int{a, b})
				}
			}
		}
		votes := 0
		for _, k := range spread(mostPairs, len(pairs)) {
			f, d, err := m.along(ctx, pairs[k][0], pairs[k][1], axis)
			if err == errEnough {
				break
			}
			if err != nil {
				return fits, direction, compared, err
			}
			compared++
			if f.score >= good {
				fits[axis] = append(fits[axis], f)
				votes += d
			}
		}
		direction[axis] = 1
		if votes < 0 && 2*votes <= -len(fits[axis]) { // three of four, since the grid is turned round by it
			direction[axis] = -1
		}
	}
	return fits, direction, compared, nil
}

// overlapOf combines fits into an overlap. It leaves out fits that disagree with most others.
func overlapOf(fits []fit) *Overlap {
	var v []float64
	best := consensus(fits)
	for _, f := range fits {
		if f.agree(best) {
			v = append(v, f.overlap)
		}
	}
	if len(v) == 0 {
		return nil
	}
	round := func(x float64) float64 { return math.Round(x*1000) / 1000 }
	return &Overlap{Median: round(filter.MedianOf(slices.Clone(v))), Low: round(slices.Min(v)), High: round(slices.Max(v)), Pairs: len(v)}
}
