package consensus

import "math"

// bridges reports for each link whether it alone connects two parts: nothing checks it.
func bridges(tiles int, links []Link) []bool {
	type step struct{ to, link int }
	next := make([][]step, tiles)
	for i, l := range links {
		next[l.A], next[l.B] = append(next[l.A], step{l.B, i}), append(next[l.B], step{l.A, i})
	}
	out := make([]bool, len(links))
	order, low := make([]int, tiles), make([]int, tiles) // 0: not visited
	type frame struct{ tile, from, k int }
	count := 0
	for t := range tiles {
		if order[t] != 0 {
			continue
		}
		stack := []frame{{t, -1, 0}}
		count++
		order[t], low[t] = count, count
		for len(stack) > 0 {
			f := &stack[len(stack)-1]
			if f.k < len(next[f.tile]) {
				s := next[f.tile][f.k]
				f.k++
				switch {
				case s.link == f.from:
				case order[s.to] != 0:
					low[f.tile] = min(low[f.tile], order[s.to])
				default:
					count++
					order[s.to], low[s.to] = count, count
					stack = append(stack, frame{s.to, s.link, 0})
				}
				continue
			}
			stack = stack[:len(stack)-1]
			if len(stack) > 0 {
				up := &stack[len(stack)-1]
				low[up.tile] = min(low[up.tile], low[f.tile])
				out[f.from] = low[f.tile] > order[up.tile]
			}
		}
	}
	return out
}

// farthest is the maximum deviation of an unchecked link from the expected displacement, in standard deviations of the
// checked links.
const farthest = 3

// distrust drops links that no other link checks and that deviate far more from the expected displacement than checked
// links do.
func (f *Fit) distrust(links []Link) {
	good, index := f.kept(links)
	alone := bridges(len(f.R), good)
	var usual []float64
	for k, l := range good {
		if !alone[k] {
			usual = append(usual, math.Hypot(l.D[0], l.D[1]))
		}
	}
	limit := max(farthest*math.Sqrt(2*variance(usual)), 2)
	for k, l := range good {
		if alone[k] && len(usual) > 0 && math.Hypot(l.D[0], l.D[1]) > limit {
			f.Bad[index[k]] = true
		}
	}
}

// kept returns the links that are not bad, with their indices.
func (f *Fit) kept(links []Link) (good []Link, index []int) {
	for i, l := range links {
		if !f.Bad[i] {
			good, index = append(good, l), append(index, i)
		}
	}
	return good, index
}

// doubtful finds the tiles that are connected to the largest group only by links that nothing checks and that do not
// say enough to be believed alone.
func (f *Fit) doubtful(links []Link) {
	good, _ := f.kept(links)
	f.Doubtful = unchecked(len(f.R), groups(len(f.R), good), good, func(l *Link) bool { return l.Sure })
}

// unchecked reports for each tile whether its group holds it only by links that nothing else checks, of those given,
// and that are not believed alone.
func unchecked(tiles int, group []int, links []Link, believed func(l *Link) bool) []bool {
	alone := bridges(tiles, links)
	var sure []Link
	for k, l := range links {
		if !alone[k] || believed(&l) {
			sure = append(sure, l)
		}
	}
	return outside(group, groups(tiles, sure))
}

// outside reports for each tile whether it lies outside the largest part of its group.
func outside(group, part []int) []bool {
	size := make([]int, len(part))
	for _, p := range part {
		size[p]++
	}
	core := map[int]int{}
	for t, g := range group {
		if c, is := core[g]; !is || size[part[t]] > size[c] {
			core[g] = part[t]
		}
	}
	out := make([]bool, len(part))
	for t, g := range group {
		out[t] = part[t] != core[g]
	}
	return out
}
