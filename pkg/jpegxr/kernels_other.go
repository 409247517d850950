package jpegxr

func inverse(v []int32, stride, n int) { inverseScalar(v, stride, n) }

func overlap(topLeft, topRight, bottomLeft, bottomRight []int32, stride, n int) {
	overlapScalar(topLeft, topRight, bottomLeft, bottomRight, stride, n)
}
