//go:build !amd64 || noasm

package pairwise

var useAVX2 = false

func slideVector([]float32, []float64, []float32, []float32) int { return 0 }

func subtractVector(_, _, _, _ []float32) int { return 0 }
