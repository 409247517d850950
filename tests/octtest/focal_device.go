package octtest

import (
	"math"

	"strata/pkg/dtype"
)

// Uneven returns voxel i of a mosaic without any pattern. Some voxels of floating-point types are not finite.
func Uneven[T dtype.Element](i int) T {
	switch {
	case !dtype.Of[T]().IsFloat():
		return T(uint32(i)*2654435761>>7%251 + uint32(i/2000))
	case i%9001 == 77:
		return T(math.NaN())
	case i%7001 == 5:
		return T(math.Inf(-1))
	case i%6007 == 5 && dtype.Of[T]() == dtype.Float64:
		big := 1e200
		return T(big)
	}
	return T(float64(uint32(i)*2654435761>>7%1013)/3 - 20)
}
