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

// samples of consecutive tiles, and of neighbouring lines.
const (
	samples     = 12
	lineSamples = 3
)

// order finds the grid of n tiles, and how their index runs through it, from pictures. Options that are given hold. ok is false if pictures
// do not show it.
func (m *pictures) order(ctx context.Context, n int, opt Options) (f found, ok bool, err error) {
	along, axis, err := m.consecutive(ctx, n, opt)
	if err != nil || along < fair {
		return f, false, err
	}
	f.along, f.opt.Columns = along, axis == 0
	best, second, err := m.best(ctx, n, axis, opt)
	if err != nil {
		return f, false, err
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

// corner returns where an index begins whose first line runs forward along an axis or not, and whose lines follow each other forward or not.
func corner(axis int, along, across bool) tilefiles.Corner {
	top, left := across, along
	if axis == 0 {
		top, left = along, across
	}
	switch {
	case top && left:
		return tilefiles.TopLeft
	case top:
		return tilefiles.TopRight
	case left:
		return tilefiles.BottomLeft
	}
	return tilefiles.BottomRight
}

// consecutive finds the axis along which consecutive tiles lie, and the mean correlation of the better half of them.
func (m *pictures) consecutive(ctx context.Context, n int, opt Options) (along float64, axis int, err error) {
	var scores [2][]float64
	for _, i := range spread(samples, n-1) {
		for axis := range 2 {
			if opt.Ordered && opt.Tiles.Columns != (axis == 0) {
				continue
			}
			f, _, err := m.along(ctx, i, i+1, axis)
			if err != nil {
				return 0, 0, err
			}
			scores[axis] = append(scores[axis], f.score)
		}
	}
	y, x := better(scores[0]), better(scores[1])
	if y > x {
		return y, 0, nil
	}
	return x, 1, nil
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

// lengths returns the lengths that the lines of n tiles may have: its divisors, those nearest to a square first, and then others.
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

// best returns the route that pictures fit best, and the score of the best of another length or with turns instead of jumps.
func (m *pictures) best(ctx context.Context, n, axis int, opt Options) (best route, second float64, err error) {
	for _, line := range lengths(n, axis, opt) {
		for _, snake := range []bool{false, true} {
			if opt.Snaked && snake != opt.Tiles.Snake {
				continue
			}
			r, err := m.try(ctx, n, line, 1-axis, snake)
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
		if n%line != 0 && best.score >= good && n%best.line == 0 { // what divides the number of tiles is likelier
			break
		}
	}
	return best, second, nil
}

// try compares tiles of neighbouring lines along the axis across them: at several places of a line the best of several lines.
func (m *pictures) try(ctx context.Context, n, line, across int, snake bool) (route, error) {
	r := route{line: line, snake: snake}
	lines := (n + line - 1) / line
	places := []int{0, line / 3, line - 1}
	if snake {
		places = []int{0, line / 4, line / 3}
	}
	slices.Sort(places)
	votes := 0.0
	var sum float64
	count := 0
	for _, at := range slices.Compact(places) {
		if snake && at > 0 && 2*at+1 == line { // in the middle of a line jumps and turns are alike
			continue
		}
		top := 0.0
		for _, k := range spread(lineSamples, lines-1) {
			a, b := k*line+at, (k+1)*line+at
			if snake {
				a, b = (k+1)*line-1-at, (k+1)*line+at
			}
			if b >= n {
				continue
			}
			f, d, err := m.along(ctx, a, b, across)
			if err != nil {
				return r, err
			}
			votes += float64(float64(d) * f.score)
			top = max(top, f.score)
		}
		sum, count = sum+top, count+1
	}
	r.score, r.forward = sum/float64(max(1, count)), votes >= 0
	return r, nil
}

// unbroken reports whether all sampled consecutive tiles that show something are neighbours along one axis in one direction.
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

// String describes what was found.
func (f found) String() string {
	return fmt.Sprintf("consecutive tiles correlate by %.2f, tiles of neighbouring lines by %.2f, those of the next best grid by %.2f (%d tiles read)", f.along, f.across, f.second, f.pictures)
}
