//go:build !amd64 || noasm

package filter

func combineVector(_, _ []float32, _ int, _ []float32, _ bool) (done int) { return 0 }

func transposeVector(_, _ []float32, _, _, _, _ int) (rows, columns int) { return 0, 0 }
