//go:build !noasm

package basic

import "golang.org/x/sys/cpu"

// useAVX2 is a variable so that the tests can compare both ways.
var useAVX2 = cpu.X86.HasAVX2

//go:noescape
func stepAVX2(u, image, weight, p, q *float32, n int, mu, a, b float32, excess, pull *float64, s *sums)

// stepVector is [step], if the processor can.
func stepVector(u, image, weight, p, q []float32, f factors, excess, pull []float64, s *sums) bool {
	n := len(u)
	if !useAVX2 || n == 0 || n&7 != 0 {
		return false
	}
	image, weight, p, q, excess = image[:n], weight[:n], p[:n], q[:n], excess[:n]
	var to *float64
	if pull != nil {
		to = &pull[:n][0]
	}
	stepAVX2(&u[0], &image[0], &weight[0], &p[0], &q[0], n, f.mu, f.a, f.b, &excess[0], to, s)
	return true
}
