package stitch

import (
	"cmp"
	"math"
	"slices"
	"sync"
)

// seamStep is how many planes apart the differences at the seams are taken.
const seamStep = 4

// seamSums gathers what two tiles say differently where they overlap.
type seamSums struct {
	mu   sync.Mutex
	sums map[seamKey]*seamSum
}

// seamKey is a part of an overlap: each is filled by one worker at a time, in
// increasing z, so that the sums do not depend on who is first.
type seamKey struct {
	a, b   int
	column *outColumn
}

// seamSum has the sums of a part of an overlap.
type seamSum struct {
	n                int64
	abs              float64
	a, b, aa, bb, ab float64
	offset           float64 // the sums of a and b are about it
}

// Seam says how well two neighbouring tiles agree where they, and no others,
// overlap as they were placed: on every fourth plane.
type Seam struct {
	Tiles       [2][2]int `json:"tiles"`           // (i, j) of the two
	Voxels      int64     `json:"voxels"`          // that were compared
	Difference  float64   `json:"mean_difference"` // mean of the absolute differences, in the mosaic's units
	Relative    float64   `json:"relative"`        // of the mean value there
	Correlation float64   `json:"correlation"`     // normalised cross-correlation
}

func newSeamSums() *seamSums { return &seamSums{sums: map[seamKey]*seamSum{}} }

// seamRow adds a row of the first tile's values and the second's.
func seamRow[F float32 | float64](s *seamSums, a, b int, column *outColumn, va, vb []F) {
	key := seamKey{a, b, column}
	s.mu.Lock()
	m := s.sums[key]
	if m == nil {
		m = &seamSum{}
		s.sums[key] = m
	}
	s.mu.Unlock()
	for i, v := range va {
		p, q := float64(v), float64(vb[i])
		d := p - q
		if d-d != 0 {
			continue
		}
		if m.n == 0 {
			m.offset = p
		}
		p, q = p-m.offset, q-m.offset
		m.n++
		m.abs += math.Abs(d)
		m.a, m.b = m.a+p, m.b+q
		m.aa, m.bb, m.ab = m.aa+float64(p*p), m.bb+float64(q*q), m.ab+float64(p*q)
	}
}

// seams are the overlaps in order.
func (s *seamSums) seams(nx int) []Seam {
	keys := make([]seamKey, 0, len(s.sums))
	for k := range s.sums {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(p, q seamKey) int {
		return cmp.Or(p.a-q.a, p.b-q.b, p.column.box.Y0-q.column.box.Y0, p.column.box.X0-q.column.box.X0)
	})
	out := []Seam{}
	for len(keys) > 0 {
		a, b := keys[0].a, keys[0].b
		var n, abs, sa, sb float64
		var parts []*seamSum
		for len(keys) > 0 && keys[0].a == a && keys[0].b == b {
			m := s.sums[keys[0]]
			parts = append(parts, m)
			k := float64(m.n)
			n, abs, sa, sb = n+k, abs+m.abs, sa+m.a+k*m.offset, sb+m.b+k*m.offset
			keys = keys[1:]
		}
		if n == 0 {
			continue
		}
		ma, mb := sa/n, sb/n
		var aa, bb, ab float64
		for _, m := range parts {
			// about the means of the whole
			k, da, db := float64(m.n), m.offset-ma, m.offset-mb
			aa += m.aa + 2*da*m.a + k*da*da
			bb += m.bb + 2*db*m.b + k*db*db
			ab += m.ab + da*m.b + db*m.a + k*da*db
		}
		e := Seam{Tiles: [2][2]int{{a / nx, a % nx}, {b / nx, b % nx}}, Voxels: int64(n), Difference: digits(abs / n)}
		if mean := math.Abs(ma+mb) / 2; mean > 0 {
			e.Relative = digits(abs / n / mean)
		}
		if aa > 0 && bb > 0 {
			e.Correlation = digits(ab / math.Sqrt(aa*bb))
		}
		out = append(out, e)
	}
	return out
}

// digits rounds a number of a report to six significant digits; what is no
// number becomes 0.
func digits(v float64) float64 {
	if v == 0 || v-v != 0 {
		return 0
	}
	e := math.Pow(10, 5-math.Floor(math.Log10(math.Abs(v))))
	if e-e != 0 || e == 0 {
		return v
	}
	return math.Round(v*e) / e
}
