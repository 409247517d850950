package oct

import "math"

// Digits rounds a number of a report to six significant digits; infinities and NaN become 0.
func Digits(v float64) float64 {
	if v == 0 || v-v != 0 {
		return 0
	}
	e := math.Pow(10, 5-math.Floor(math.Log10(math.Abs(v))))
	if e-e != 0 || e == 0 {
		return v
	}
	return math.Round(v*e) / e
}
