//go:build !noasm

package filter

// Vector versions of Mix, Dots and Rigid.Resample: the same operations in the
// same order as the scalar ones, on 8 or 4 elements at a time.

//go:noescape
func mixAVX2(fixed, moving *float32, n int, w float64, gain float32)

//go:noescape
func dots4AVX2(sums *[16]float64, a, b0, b1, b2, b3 *float32, n int)

//go:noescape
func sumsAVX2(sums, squares *[4]float64, v *float32, n int)

//go:noescape
func rigidAVX2(row, src *float32, n int, r *rigidRow)

// mixVector blends the leading multiple of 8 and says how many elements that were.
func mixVector(fixed, moving []float32, w float64, gain float32) int {
	n := len(fixed) &^ 7
	if !useAVX2 || n == 0 {
		return 0
	}
	_ = moving[n-1]
	mixAVX2(&fixed[0], &moving[0], n, w, gain)
	return n
}

func dots4(dst []float64, a []float32, bs [][]float32) bool {
	n := len(a) &^ 3
	if !useAVX2 || n == 0 {
		return false
	}
	for _, b := range bs {
		_ = b[len(a)-1]
	}
	var s [16]float64
	dots4AVX2(&s, &a[0], &bs[0][0], &bs[1][0], &bs[2][0], &bs[3][0], n)
	for k := range 4 {
		l := (*[4]float64)(s[4*k:])
		for i := n; i < len(a); i++ {
			l[i&3] += float64(float64(a[i]) * float64(bs[k][i]))
		}
		dst[k] = (l[0] + l[1]) + (l[2] + l[3])
	}
	return true
}

// rigidVector makes the leading multiple of 4 pixels and says how many those
// were. The offsets of pixels must fit in 31 bits.
func rigidVector(row, src []float32, r *rigidRow) int {
	n := len(row) &^ 3
	if !useAVX2 || n == 0 || r.ny > (1<<31-1)/r.nx {
		return 0
	}
	_ = src[r.ny*r.nx-1]
	rigidAVX2(&row[0], &src[0], n, r)
	return n
}

// sumsVector sums the leading multiple of 4 and says how many elements that were.
func sumsVector(v []float32, s, q *[4]float64) int {
	n := len(v) &^ 3
	if !useAVX2 || n == 0 {
		return 0
	}
	sumsAVX2(s, q, &v[0], n)
	return n
}
