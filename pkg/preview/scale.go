package preview

import (
	"fmt"
	"math"
	"strconv"
)

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
