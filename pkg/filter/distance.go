package filter

import "math"

// Distance writes, for each pixel of a plane of ny × nx pixels, its distance to the nearest pixel that is not above 0,
// which has 0. It returns false, and writes nothing, if there is none. The distances are exact (Felzenszwalb and
// Huttenlocher, Theory of Computing 8, 2012).
func Distance(dst, src []float32, ny, nx int) bool {
	n := max(ny, nx)
	line, out := make([]float64, n), make([]float64, n)
	at, from := make([]int, n), make([]float64, n+1)
	square := dst[:ny*nx]
	found := false
	for x := range nx { // along y: the distance to the nearest in the column
		last := math.Inf(1)
		for y := range ny {
			if last++; !(src[y*nx+x] > 0) {
				last, found = 0, true
			}
			square[y*nx+x] = float32(last)
		}
		last = math.Inf(1)
		for y := ny - 1; y >= 0; y-- {
			if last++; square[y*nx+x] == 0 {
				last = 0
			}
			square[y*nx+x] = min(square[y*nx+x], float32(last))
		}
	}
	if !found {
		return false
	}
	for y := range ny {
		row := square[y*nx:][:nx]
		for x, v := range row {
			line[x] = float64(v) * float64(v)
		}
		lowest(out[:nx], line[:nx], at, from)
		for x := range row {
			row[x] = float32(math.Sqrt(out[x]))
		}
	}
	return true
}

// lowest writes min over q of (p − q)² + f[q] for each p: the lower envelope of parabolas. at and from hold the
// envelope.
func lowest(dst, f []float64, at []int, from []float64) {
	k := -1
	for q, v := range f {
		if math.IsInf(v, 1) {
			continue
		}
		s := math.Inf(-1)
		for k >= 0 {
			p := at[k]
			if s = (v - f[p] + float64(q*q) - float64(p*p)) / float64(2*(q-p)); s > from[k] {
				break
			}
			k--
		}
		if k < 0 {
			s = math.Inf(-1)
		}
		k++
		at[k], from[k] = q, s
	}
	if k < 0 {
		for p := range dst {
			dst[p] = math.Inf(1)
		}
		return
	}
	from[k+1] = math.Inf(1)
	i := 0
	for p := range dst {
		for from[i+1] < float64(p) {
			i++
		}
		d := float64(p - at[i])
		dst[p] = float64(d*d) + f[at[i]]
	}
}
