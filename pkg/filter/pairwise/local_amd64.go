//go:build !noasm

package pairwise

import "golang.org/x/sys/cpu"

// useAVX2 is a variable so that the tests can compare both ways.
var useAVX2 = cpu.X86.HasAVX2

//go:noescape
func slideAVX2(dst *float32, sums *float64, in, out *float32, n int)

// slideVector is [slide] for the first values, and returns how many.
func slideVector(dst []float32, sums []float64, in, out []float32) int {
	n := len(sums) &^ 7
	if !useAVX2 || n == 0 {
		return 0
	}
	dst, in, out = dst[:n], in[:n], out[:n]
	slideAVX2(&dst[0], &sums[0], &in[0], &out[0], n)
	return n
}

//go:noescape
func subtractMeansAVX2(v, sum, count, known *float32, n int, none float32)

// subtractVector is [subtractMeans] for the first pixels, and returns how many.
func subtractVector(v, sum, count, known []float32) int {
	n := len(v) &^ 7
	if !useAVX2 || n == 0 {
		return 0
	}
	sum, count, known = sum[:n], count[:n], known[:n]
	subtractMeansAVX2(&v[0], &sum[0], &count[0], &known[0], n, nan)
	return n
}
