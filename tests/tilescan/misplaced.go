package tilescan

import (
	"math"
	"slices"
)

// Wrong is the error in px from which a tile is wrong, and MostRMS the root mean square of all that full scans must
// reach.
const Wrong, MostRMS = 2, 1

// Misplaced compares places (y, x) in px with the truth of tiles with tissue, after the common shift (the median, so
// that one wrong tile does not blame the others).
func (r *Rendered) Misplaced(place func(t int) [2]float64) (rms float64, wrong, tiles int) {
	var off [2][]float64
	for t, is := range r.Tissue {
		if is {
			for k := range off {
				off[k] = append(off[k], place(t)[k]-r.Places[t][k])
			}
		}
	}
	var shift [2]float64
	for k := range off {
		shift[k] = slices.Sorted(slices.Values(off[k]))[len(off[k])/2]
	}
	tiles = len(off[0])
	for i := range off[0] {
		far := math.Hypot(off[0][i]-shift[0], off[1][i]-shift[1])
		rms += far * far / float64(tiles)
		if far > Wrong {
			wrong++
		}
	}
	return math.Sqrt(rms), wrong, tiles
}
