//go:build !noasm

package filter

//go:noescape
func blendF32AVX2(acc, v, alpha *float32, n int)

//go:noescape
func betweenF32AVX2(dst, a, b *float32, n int, t float32)

// blendVector blends the leading multiple of 8 elements and returns their number.
func blendVector[F float32 | float64](acc, v []F, alpha []float32) int {
	n := len(acc) &^ 7
	f, ok := any(acc).([]float32)
	if !useAVX2 || !ok || n == 0 {
		return 0
	}
	blendF32AVX2(&f[0], &any(v).([]float32)[0], &alpha[0], n)
	return n
}

// betweenVector interpolates the leading multiple of 8 elements and returns their number.
func betweenVector[F float32 | float64](dst, a, b []F, t F) int {
	n := len(dst) &^ 7
	d, ok := any(dst).([]float32)
	if !useAVX2 || !ok || n == 0 {
		return 0
	}
	betweenF32AVX2(&d[0], &any(a).([]float32)[0], &any(b).([]float32)[0], n, float32(t))
	return n
}
