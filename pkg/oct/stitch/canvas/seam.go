package canvas

import (
	"cmp"
	"math"
	"slices"

	"strata/pkg/oct"
	"strata/pkg/oct/compute/fusion"
)

// SeamSums accumulates the differences between tiles where they overlap.
type SeamSums map[seamKey]*fusion.SeamSum

// seamKey identifies a part of an overlap. One worker at a time fills each part, in increasing z, so that the sums
// do not depend on the order of workers.
type seamKey struct {
	a, b   int
	column *fusion.Column
}

// Seam describes how well two neighbouring tiles agree, as placed, where they and no others overlap. It is
// measured on every fourth plane.
type Seam struct {
	Tiles       [2][2]int `json:"tiles"`           // (i, j) of the two
	Voxels      int64     `json:"voxels"`          // number of compared voxels
	Difference  float64   `json:"mean_difference"` // mean of the absolute differences, in the mosaic's units
	Relative    float64   `json:"relative"`        // Difference relative to the mean value
	Correlation float64   `json:"correlation"`     // normalised cross-correlation
}

// of returns the sums of a column's seams. It must not be called concurrently.
func (s SeamSums) of(c *fusion.Column) (sums []*fusion.SeamSum) {
	for _, n := range c.Seams {
		k := seamKey{n[0], n[1], c}
		if s[k] == nil {
			s[k] = &fusion.SeamSum{}
		}
		sums = append(sums, s[k])
	}
	return sums
}

// Seams returns all seams in order; nx is the number of tiles along x.
func (s SeamSums) Seams(nx int) []Seam {
	keys := make([]seamKey, 0, len(s))
	for k := range s {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(p, q seamKey) int {
		return cmp.Or(p.a-q.a, p.b-q.b, p.column.Box.Y0-q.column.Box.Y0, p.column.Box.X0-q.column.Box.X0)
	})
	out := []Seam{}
	for len(keys) > 0 {
		a, b := keys[0].a, keys[0].b
		var n, abs, sa, sb float64
		var parts []*fusion.SeamSum
		for len(keys) > 0 && keys[0].a == a && keys[0].b == b {
			m := s[keys[0]]
			keys = keys[1:]
			if m.N == 0 {
				continue
			}
			parts = append(parts, m)
			k := float64(m.N)
			n, abs, sa, sb = n+k, abs+m.Abs, sa+m.A+k*m.Offset, sb+m.B+k*m.Offset
		}
		if n == 0 {
			continue
		}
		ma, mb := sa/n, sb/n
		var aa, bb, ab float64
		for _, m := range parts {
			// about the means of the whole
			k, da, db := float64(m.N), m.Offset-ma, m.Offset-mb
			aa += m.AA + 2*da*m.A + k*da*da
			bb += m.BB + 2*db*m.B + k*db*db
			ab += m.AB + da*m.B + db*m.A + k*da*db
		}
		e := Seam{Tiles: [2][2]int{{a / nx, a % nx}, {b / nx, b % nx}}, Voxels: int64(n), Difference: oct.Digits(abs / n)}
		if mean := math.Abs(ma+mb) / 2; mean > 0 {
			e.Relative = oct.Digits(abs / n / mean)
		}
		if aa > 0 && bb > 0 {
			e.Correlation = oct.Digits(ab / math.Sqrt(aa*bb))
		}
		out = append(out, e)
	}
	return out
}
