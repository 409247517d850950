package filter

// Blend moves a row of a running weighted mean towards the next value: acc[i] += alpha[i]·(v[i] − acc[i]) in
// the precision of F, with the product rounded before the sum. With alpha_k = w_k/(w_1 + … + w_k) for the
// k-th of several values the result is their mean with weights w, and exactly their value if they agree. An
// alpha of 1 or more replaces acc, one of 0 or less leaves it. If one of the two is NaN, the result is the
// other; infinities persist (opposite ones give NaN). All three slices have the length of acc.
func Blend[F float32 | float64](acc, v []F, alpha []float32) {
	v, alpha = v[:len(acc)], alpha[:len(acc)]
	n := blendVector(acc, v, alpha)
	for i := n; i < len(acc); i++ {
		a, b, w := acc[i], v[i], F(alpha[i])
		r := a + F(w*F(b-a))
		if r != r {
			r = a + b // infinite, or NaN
		}
		if w <= 0 {
			r = a
		}
		if w >= 1 || a != a {
			r = b
		}
		if b != b {
			r = a
		}
		acc[i] = r
	}
}

// Between interpolates between two rows: dst[i] = a[i] + t·(b[i] − a[i]), in the
// precision of F, the product rounded before the sum. dst may be a or b.
func Between[F float32 | float64](dst, a, b []F, t F) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := betweenVector(dst, a, b, t); i < len(dst); i++ {
		dst[i] = a[i] + F(t*F(b[i]-a[i]))
	}
}
