package oct

import "math"

// Digits rounds a number for a report to six significant digits. It returns 0 for infinities and NaN.
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
