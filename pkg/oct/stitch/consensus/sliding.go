package consensus

import "math"

// firm is the standard deviation in px of a place from which on it is not held.
const firm = 1

// sliding marks two kinds of tiles. A tile is Sliding if its overlaps show only parallel edges, so that only its
// expected position fixes it along them. A tile is Doubtful if only a weak, unchecked link fixes it along some
// direction.
func (f *Fit) sliding(links []Link) {
	good, _ := f.kept(links)
	n := len(f.R)
	group := groups(n, good)
	f.Sliding = make([]bool, n)
	doubtful := make([]bool, n)
	for axis := range 2 {
		var along []Link
		for _, l := range good {
			if v := l.P.Inverse(); math.Sqrt([2]float64{v.YY, v.XX}[axis])*f.Noise < firm {
				along = append(along, l)
			}
		}
		alone := unchecked(n, group, along, func(l *Link) bool { return !l.Weak })
		for t, out := range outside(group, groups(n, along)) {
			f.Sliding[t], doubtful[t] = f.Sliding[t] || out, doubtful[t] || alone[t]
		}
	}
	for f.hold(good) {
	}
	for t, is := range doubtful {
		f.Doubtful[t] = f.Doubtful[t] || is && !f.Sliding[t]
	}
}

// hold unmarks sliding tiles that links to several other tiles fix together, and reports whether it unmarked any.
func (f *Fit) hold(links []Link) bool {
	by := make([]Sym, len(f.R))
	for _, l := range links {
		if f.Sliding[l.A] && !f.Sliding[l.B] {
			by[l.A] = by[l.A].Add(l.P)
		}
		if f.Sliding[l.B] && !f.Sliding[l.A] {
			by[l.B] = by[l.B].Add(l.P)
		}
	}
	any := false
	for t, p := range by {
		if f.Sliding[t] && p.least()*firm*firm > f.Noise*f.Noise {
			f.Sliding[t], any = false, true
		}
	}
	return any
}
