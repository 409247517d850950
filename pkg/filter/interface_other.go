//go:build !amd64 || noasm

package filter

func magnitudesVector([]float32, float32) (done int) { return 0 }

func steepestVector([]float32, []int32, []float32, []int64, []float32, int32) (done int) { return 0 }
