//go:build !noasm

package filter

//go:noescape
func magnitudesAVX2(v *float32, n int, clip float32)

//go:noescape
func steepestAVX2(best *float32, arg *int32, ring *float32, n int, offsets *int64, weights *float32, taps int, z int32)

func magnitudesVector(v []float32, clip float32) (done int) {
	n := len(v) &^ 7
	if !useAVX2 || n == 0 {
		return 0
	}
	magnitudesAVX2(&v[0], n, clip)
	return n
}

func steepestVector(best []float32, arg []int32, ring []float32, offsets []int64, weights []float32, z int32) (done int) {
	n := len(best) &^ 7
	if !useAVX2 || n == 0 || len(weights) == 0 {
		return 0
	}
	steepestAVX2(&best[0], &arg[0], &ring[0], n, &offsets[0], &weights[0], len(weights), z)
	return n
}
