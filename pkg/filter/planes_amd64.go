//go:build !noasm

package filter

//go:noescape
func windowAVX2(src *float32, n int, low, high float32) (done int, below int64)

//go:noescape
func addClippedAVX2(acc *float64, src *float32, n, planes, stride int, clip float32) (nonFinite int64)

//go:noescape
func dividePlaneAVX2(v *float32, n int, by float64)

//go:noescape
func scalePlaneAVX2(v *float32, n int, low, high, divisor float32)

//go:noescape
func addFourAVX2(sums *[4]float64, src *float32, n int)

// windowVector counts the finite values below low, and stops in front of the first group of 16 values that contains one
// in low…high. It returns the position of that group.
func windowVector(v []float32, low, high float32) (done int, below int64) {
	if n := len(v) &^ (windowVectorSize - 1); useAVX2 && n > 0 {
		return windowAVX2(&v[0], n, low, high)
	}
	return 0, 0
}

// addClippedVector adds the leading multiple of 8 values of each plane.
func addClippedVector(acc []float64, src []float32, planes, stride int, clip float32) (done int, nonFinite int64) {
	if n := len(acc) &^ 7; useAVX2 && n > 0 && planes > 0 {
		return n, addClippedAVX2(&acc[0], &src[0], n, planes, 4*stride, clip)
	}
	return 0, 0
}

func dividePlaneVector(v []float32, by float64) (done int) {
	n := len(v) &^ 7
	if !useAVX2 || n == 0 {
		return 0
	}
	dividePlaneAVX2(&v[0], n, by)
	return n
}

func scalePlaneVector(v []float32, low, high, divisor float32) (done int) {
	n := len(v) &^ 7
	if !useAVX2 || n == 0 {
		return 0
	}
	scalePlaneAVX2(&v[0], n, low, high, divisor)
	return n
}

func addFourVector(sums *[4]float64, v []float32) (done int) {
	n := len(v) &^ 3
	if !useAVX2 || n == 0 {
		return 0
	}
	addFourAVX2(sums, &v[0], n)
	return n
}
