//go:build !amd64 || noasm

package filter

var useAVX2 = false

func addPlanesVector([]float64, any, int) (done int, nonFinite int64) { return 0, 0 }
