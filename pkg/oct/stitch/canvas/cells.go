package canvas

import (
	"slices"

	"strata/pkg/oct"
	"strata/pkg/oct/compute/fusion"
)

// arrange divides a box into regions that are each covered by the same tiles throughout. It considers only the
// tiles in among, which must be increasing.
func arrange(box oct.Rectangle, places []Place, among []int) []fusion.Region {
	ys := []int{box.Y0, box.Y1}
	var near []int
	for _, k := range among {
		r := places[k].And(box)
		if r.Empty() {
			continue
		}
		near = append(near, k)
		ys = append(ys, r.Y0, r.Y1)
	}
	slices.Sort(ys)
	ys = slices.Compact(ys)
	var out []fusion.Region
	above := 0 // first region of the row above
	for k := range len(ys) - 1 {
		y0, y1 := ys[k], ys[k+1]
		first := len(out)
		var row []int
		xs := []int{box.X0, box.X1}
		for _, t := range near {
			if p := &places[t]; p.Y0 <= y0 && y1 <= p.Y1 {
				row = append(row, t)
				xs = append(xs, max(p.X0, box.X0), min(p.X1, box.X1))
			}
		}
		slices.Sort(xs)
		xs = slices.Compact(xs)
		for i := range len(xs) - 1 {
			x0, x1 := xs[i], xs[i+1]
			var who []int
			for _, t := range row {
				if p := &places[t]; p.X0 <= x0 && x1 <= p.X1 {
					who = append(who, t)
				}
			}
			if n := len(out); n > first && slices.Equal(out[n-1].Who, who) {
				out[n-1].X1 = x1
				continue
			}
			out = append(out, fusion.Region{Rectangle: oct.Rect(y0, y1, x0, x1), Who: who, Seam: -1})
		}
		// a row that continues the one above region by region is the same row
		if same := slices.EqualFunc(out[above:first], out[first:], func(a, b fusion.Region) bool {
			return a.X0 == b.X0 && a.X1 == b.X1 && slices.Equal(a.Who, b.Who)
		}); first > 0 && same {
			for i := above; i < first; i++ {
				out[i].Y1 = y1
			}
			out = out[:first]
		} else {
			above = first
		}
	}
	return out
}
