//go:build !amd64 || noasm

package filter

import "strata/pkg/dtype"

func toFloat32Vector[T dtype.Element]([]float32, []T) (done int)   { return 0 }
func fromFloat32Vector[T dtype.Element]([]T, []float32) (done int) { return 0 }
func countNonFiniteVector([]float32) (done int, n int64)           { return 0, 0 }
func lnVector([]float32) (done int)                                { return 0 }
func belowVector([]float32, uint32) int                            { return 0 }
