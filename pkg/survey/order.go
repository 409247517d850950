package survey

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"strata/pkg/tilefiles"
)

// route is a way of an index through a grid, and how well pictures fit it.
type route struct {
	line    int // tiles of a row, or of a column
	snake   bool
	forward bool // the next row is below, the next column to the right
	score   float64
}

// found is the grid of an index as pictures show it.
type found struct {
	opt      tilefiles.Options // Grid, Columns, Snake, Start
	along    float64           // mean correlation of consecutive tiles
	across   float64           // of tiles of neighbouring lines
	second   float64           // the same for the best other length of lines
	pictures int
}

// search looks for the route of an index.
type search struct {
	*pictures
	n    int // tiles
	axis int // along which consecutive tiles lie
	step fit // how most of them lie
	opt  Options
}

// samples of consecutive tiles, and of neighbouring lines.
const (
	samples     = 24
	lineSamples = 4
)

// order finds the grid of n tiles, and how their index runs through it, from pictures. Options that are given hold. ok
// is false if pictures do not show it.
func (m *pictures) order(ctx context.Context, n int, opt Options) (f found, ok bool, err error) {
	along, step, axis, err := m.consecutive(ctx, n, opt)
	f.along, f.opt.Columns = along, axis == 0
	if err != nil || along < fair {
		return f, false, err
	}
	s := &search{pictures: m, n: n, axis: axis, step: step, opt: opt}
	var best route
	var second float64
	if n-1 > 2*samples || opt.Tiles.Grid != [2]int{} || !m.unbroken(ctx, n, axis) {
		if best, second, err = s.best(ctx); err != nil {
			return f, false, err
		}
	}
	f.across, f.second, f.pictures = best.score, second, len(m.seen)
	lines := (n + best.line - 1) / max(1, best.line)
	switch {
	case best.score >= fair && best.score > second:
	case opt.Tiles.Grid == [2]int{} && along >= good && n > 1 && m.unbroken(ctx, n, axis): // one line
		best, lines = route{line: n, forward: true}, 1
	default:
		return f, false, nil
	}
	f.opt.Snake = best.snake
	f.opt.Grid = [2]int{lines, best.line}
	if f.opt.Columns {
		f.opt.Grid = [2]int{best.line, lines}
	}
	right, err := m.firstDirection(ctx, n, axis, best)
	if err != nil {
		return f, false, err
	}
	f.opt.Start = corner(axis, right, best.forward)
	if opt.Started {
		f.opt.Start = opt.Tiles.Start
	}
	return f, true, nil
}

// corner returns the corner in which an index begins. along says whether its first line runs forward along the axis,
// across whether its lines follow each other forward.
func corner(axis int, along, across bool) tilefiles.Corner {
	top, left := across, along
	if axis == 0 {
		top, left = along, across
	}
	return tilefiles.CornerAt(!top, !left)
}

// consecutive finds the axis along which consecutive tiles are neighbours. along is the mean correlation of the better
// half of them, and step how most of them fit.
func (m *pictures) consecutive(ctx context.Context, n int, opt Options) (along float64, step fit, axis int, err error) {
	var fits [2][]fit
	for _, i := range spread(samples, n-1) {
		for axis := range 2 {
			if opt.Ordered && opt.Tiles.Columns != (axis == 0) {
				continue
			}
			f, _, err := m.along(ctx, i, i+1, axis)
			if err != nil {
				return 0, step, 0, err
			}
			fits[axis] = append(fits[axis], f)
		}
	}
	y, x := agreeing(fits[0]), agreeing(fits[1])
	if y > x {
		return y, consensus(fits[0]), 0, nil
	}
	return x, consensus(fits[1]), 1, nil
}

// agreeing returns the mean score of the better half of fits, those that do not agree with most taken for 0.
func agreeing(fits []fit) float64 {
	best := consensus(fits)
	var v []float64
	for _, f := range fits {
		if !f.agree(best) {
			f.score = 0
		}
		v = append(v, f.score)
	}
	return better(v)
}

// better returns the mean of the better half of scores: a part of the tiles may show nothing.
func better(v []float64) float64 {
	if len(v) == 0 {
		return 0
	}
	slices.SortFunc(v, func(a, b float64) int { return cmp.Compare(b, a) })
	v = v[:(len(v)+1)/2]
	sum := 0.0
	for _, s := range v {
		sum += s
	}
	return sum / float64(len(v))
}

// lengths returns possible lengths of the lines of n tiles: first the divisors of n, nearest to a square first, then
// others.
func lengths(n, axis int, opt Options) (out []int) {
	if g := opt.Tiles.Grid; g != [2]int{} {
		return []int{g[axis]}
	}
	root := math.Sqrt(float64(n))
	near := func(list []int) []int {
		slices.SortStableFunc(list, func(a, b int) int {
			return cmp.Compare(math.Abs(math.Log(float64(a)/root)), math.Abs(math.Log(float64(b)/root)))
		})
		return list
	}
	var others []int
	for l := 2; l <= n/2+n%2 && l < n; l++ {
		if n%l == 0 {
			out = append(out, l)
		} else if float64(l) > root/3 && float64(l) < root*3 {
			others = append(others, l)
		}
	}
	return append(near(out), near(others)...)
}

// best returns the route that pictures fit best, and the score of the best of another length or with turns instead of
// jumps.
func (s *search) best(ctx context.Context) (best route, second float64, err error) {
	for _, line := range lengths(s.n, s.axis, s.opt) {
		if s.n%line != 0 && best.score >= fair && s.n%best.line == 0 { // what divides the number of tiles is likelier
			break
		}
		for _, snake := range []bool{false, true} {
			if s.opt.Snaked && snake != s.opt.Tiles.Snake {
				continue
			}
			r, err := s.try(ctx, line, snake)
			if err == nil && r.score >= fair {
				err = s.contradict(ctx, &r)
			}
			if err == errEnough {
				return best, second, nil
			}
			if err != nil {
				return best, second, err
			}
			if r.score > best.score {
				best, second = r, best.score
			} else {
				second = max(second, r.score)
			}
		}
	}
	return best, second, nil
}

// contradict lowers the score of a route by the fraction of consecutive tiles that lie otherwise than it says: side by
// side where it jumps or turns, or across its lines where it does neither. Multiples and parts of the length of lines
// differ in nothing else.
func (s *search) contradict(ctx context.Context, r *route) error {
	lines := (s.n + r.line - 1) / r.line
	at := spread(samples/2, s.n-1)
	for _, k := range spread(2*lineSamples, lines-1) {
		at = append(at, (k+1)*r.line-1)
		for _, part := range []int{2, 3, 5, 7} {
			if r.line%part == 0 && r.line > part {
				at = append(at, k*r.line+r.line/part-1)
			}
		}
	}
	slices.Sort(at)
	tested, bad := 0, 0
	for _, i := range slices.Compact(at) {
		along, _, err := s.along(ctx, i, i+1, s.axis)
		if err != nil {
			return err
		}
		across, _, err := s.along(ctx, i, i+1, 1-s.axis)
		if err != nil {
			return err
		}
		end := (i+1)%r.line == 0
		switch {
		case along.score >= fair && along.score > across.score && along.agree(s.step):
			tested++
			if end {
				bad++
			}
		case across.score >= good && across.score > along.score && math.Abs(across.overlap-s.step.overlap) < 2*repeat:
			tested++
			if !end || !r.snake {
				bad++
			}
		}
	}
	if tested > 0 {
		right := 1 - float64(bad)/float64(tested)
		r.score *= float64(right * right)
	}
	return nil
}

// try compares tiles of neighbouring lines along the axis across them: at several places of a line the best of several
// lines.
func (s *search) try(ctx context.Context, line int, snake bool) (route, error) {
	m, n, across := s.pictures, s.n, 1-s.axis
	r := route{line: line, snake: snake}
	lines := (n + line - 1) / line
	places := []int{0, line / 3, line - 1}
	if snake {
		places = []int{0, line / 4, line / 3}
	}
	slices.Sort(places)
	var groups [2][][]fit // by direction and place of a line
	for _, at := range slices.Compact(places) {
		if snake && at > 0 && 2*at+1 == line { // in the middle of a line jumps and turns are alike
			continue
		}
		var here [2][]fit
		for _, k := range spread(lineSamples, lines-1) {
			a, b := k*line+at, (k+1)*line+at
			if snake {
				a, b = (k+1)*line-1-at, (k+1)*line+at
			}
			if b >= n {
				continue
			}
			forward, err := m.behind(ctx, a, b, across)
			if err != nil {
				return r, err
			}
			back, err := m.behind(ctx, b, a, across)
			if err != nil {
				return r, err
			}
			here[0], here[1] = append(here[0], forward), append(here[1], back)
		}
		groups[0], groups[1] = append(groups[0], here[0]), append(groups[1], here[1])
	}
	forward, back := together(groups[0]), together(groups[1])
	r.score, r.forward = max(forward, back), forward >= back
	return r, nil
}

// together returns the mean over groups of the better half of their scores, those of fits that do not agree with most
// taken for 0.
func together(groups [][]fit) (mean float64) {
	best := consensus(slices.Concat(groups...))
	for _, g := range groups {
		var v []float64
		for _, f := range g {
			if !f.agree(best) {
				f.score = 0
			}
			v = append(v, f.score)
		}
		mean += better(v) / float64(len(groups))
	}
	return mean
}

// unbroken reports whether all sampled pairs of consecutive tiles that show something are neighbours along one axis, in
// one direction.
func (m *pictures) unbroken(ctx context.Context, n, axis int) bool {
	sum := 0
	list := spread(2*samples, n-1)
	for _, i := range list {
		f, d, err := m.along(ctx, i, i+1, axis)
		if err != nil || f.score < fair {
			return false
		}
		sum += d
	}
	return sum == len(list) || sum == -len(list)
}

// firstDirection reports whether the first line of a route runs forward along its axis.
func (m *pictures) firstDirection(ctx context.Context, n, axis int, r route) (bool, error) {
	votes := 0.0
	for _, i := range spread(samples, n-1) {
		if (i+1)%r.line == 0 {
			continue // the next tile is in another line
		}
		f, d, err := m.along(ctx, i, i+1, axis)
		if err == errEnough {
			break
		}
		if err != nil {
			return false, err
		}
		if r.snake && i/r.line%2 == 1 {
			d = -d
		}
		votes += float64(float64(d) * f.score)
	}
	return votes >= 0, nil
}

// String describes the order that was found.
func (f found) String() string {
	return fmt.Sprintf("consecutive tiles correlate by %.2f, tiles of neighbouring lines by %.2f, those of the next best grid by %.2f (%d tiles read)", f.along, f.across, f.second, f.pictures)
}
