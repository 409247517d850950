package preview

import (
	"fmt"
	"math"
	"strconv"
)

// barLength returns the length that a scale bar stands for: the largest of 1, 2, 5 × 10ⁿ µm that takes at
// most the given length.
func barLength(most float64) float64 {
	if !(most > 0) || math.IsInf(most, 0) {
		return 0
	}
	n := math.Floor(math.Log10(most))
	for _, m := range []float64{5, 2, 1} {
		if l := m * math.Pow(10, n); l <= most*(1+1e-12) {
			return l
		}
	}
	return math.Pow(10, n) // a power of ten that the logarithm rounded up to
}

// micrometres writes a length with at most three digits that matter.
func micrometres(um float64) string {
	if a := math.Abs(um); a >= 1000 {
		return strconv.FormatFloat(math.Round(um), 'f', -1, 64) + " µm"
	}
	return strconv.FormatFloat(um, 'g', 3, 64) + " µm"
}

// number writes a value of the window.
func number(v float64) string {
	if a := math.Abs(v); a >= 1e5 || (a < 1e-3 && a > 0) {
		return strconv.FormatFloat(v, 'e', 2, 64)
	}
	return strconv.FormatFloat(v, 'g', 4, 64)
}

// side writes a voxel's side, µm.
func side(v float64) string { return strconv.FormatFloat(v, 'g', 4, 64) }

// sizes writes numbers with × between them, the same ones once.
func sizes[T any](v []T, format func(T) string) string {
	s := ""
	for i, n := range v {
		if i > 0 {
			s += " × "
		}
		s += format(n)
	}
	return s
}

func plain(n int) string { return fmt.Sprint(n) }
