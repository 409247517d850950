//go:build !amd64 || noasm

package basic

var useAVX2 = false

func stepVector(_, _, _, _, _ []float32, _ factors, _, _ []float64, _ *sums) bool { return false }
