package overview

import "math"

const (
	// leastAlias is the minimum difference, as a fraction of a tile, between a found and the expected displacement at
	// which the found one may be off by a period of a repeating pattern.
	leastAlias = 0.05
	// aliasShare is the minimum correlation of a tile with itself one period away, as a fraction of the correlation of
	// neighbours, for a repeating pattern. Bricks reach 0.87 if neighbours show the same bricks, and 0.93 and 0.98 if
	// they do not.
	aliasShare = 0.9
	// aliasDip is a fraction of the correlation of a tile with itself one period away. In a repeating pattern, the
	// correlation falls below it somewhere between displacement 0 and the period; in a merely smooth tile it does not.
	aliasDip = 0.8
	// better is the minimum ratio of the neighbours' correlation at the expected displacement to that at the found one
	// for the expected one to be clearly better. Bricks in speckle reach 1.4 to 1.6 if they were found a period away,
	// and 0.85 if the true overlap was found.
	better = 1.2
	// aliasTiles is the approximate number of tiles, and of pairs, that are compared.
	aliasTiles = 30
	// mostAliasReach is the maximum search radius around a displacement, in pixels of the overview.
	mostAliasReach = 4
)

// Alias reports whether the found displacement may be off by a period of a repeating pattern: whether tiles agree with
// themselves, displaced by the difference between the found and the expected displacement (both in px), as well as
// neighbours agree at the found one. neighbours holds the pairs of tiles of each overview; scatter is the standard
// deviation of their displacements in px.
func Alias(all []*Overview, neighbours [][][2]int, found, expected [2]float64, scatter float64) bool {
	period := [2]float64{found[0] - expected[0], found[1] - expected[1]}
	reach, apart := all[0].around(scatter)
	if math.Hypot(period[0], period[1]) < apart {
		return false
	}
	themselves := make([][][2]int, len(all))
	for k, o := range all {
		for t := range o.Tile {
			themselves[k] = append(themselves[k], [2]int{t, t})
		}
	}
	alone := agreement(all, themselves, period, reach)
	if alone < aliasShare*agreement(all, neighbours, found, reach) {
		return false
	}
	// what is only smooth agrees with itself on all of the way
	for k := 1; k < 8; k++ {
		part := float64(k) / 8
		if agreement(all, themselves, [2]float64{part * period[0], part * period[1]}, 0) < aliasDip*alone {
			return true
		}
	}
	return false
}

// Better reports whether neighbours agree clearly better as expected than at the displacement that was found, and these
// are far apart: see [Alias].
func Better(all []*Overview, neighbours [][][2]int, found, expected [2]float64, scatter float64) bool {
	reach, apart := all[0].around(scatter)
	return math.Hypot(found[0]-expected[0], found[1]-expected[1]) >= apart &&
		agreement(all, neighbours, expected, reach) > better*agreement(all, neighbours, found, reach)
}

// around returns how far around a displacement that scatters, in px, is looked at, in pixels of the overview, and how
// far in px from it another displacement lies apart.
func (o *Overview) around(scatter float64) (reach int, apart float64) {
	step := min(o.Step[0], o.Step[1])
	reach = min(max(1, int(math.Round(scatter/float64(step)))), mostAliasReach)
	return reach, max(leastAlias*float64(min(o.Size[0]*o.Step[0], o.Size[1]*o.Step[1])), float64(3*reach*step))
}

// agreement returns the mean of the largest correlations of pairs of tiles within a reach, in pixels of the overview,
// of a displacement in px, for some of the pairs.
func agreement(all []*Overview, pairs [][][2]int, d [2]float64, reach int) float64 {
	sum, count := 0.0, 0.0
	for k, o := range all {
		var known [][2]int
		for _, p := range pairs[k] {
			if o.Tile[p[0]] != nil && o.Tile[p[1]] != nil {
				known = append(known, p)
			}
		}
		for i := 0; i < len(known); i += max(1, len(known)*len(all)/aliasTiles) {
			best := 0.0
			o.near(known[i][0], known[i][1], d, reach, func(_ [2]int, c float64) { best = max(best, c) })
			sum, count = sum+best, count+1
		}
	}
	return sum / max(count, 1)
}
