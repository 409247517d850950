//go:build !amd64 || noasm

package filter

import "strata/pkg/dtype"

var useAVX2 = false

func addPlanesVector[T dtype.Element]([]float64, []T, int, int) (done int, nonFinite int64) {
	return 0, 0
}
