package filter

import "slices"

// Binned averages a plane of ny × nx pixels over whole blocks of bin pixels (y, x). A non-finite pixel affects only its
// block. It returns the result, in the memory of dst if that is large enough.
func Binned(dst, src []float32, ny, nx int, bin [2]int) []float32 {
	h, w := ny/bin[0], nx/bin[1]
	dst = slices.Grow(dst[:0], h*w)[:h*w]
	if bin == [2]int{1, 1} {
		copy(dst, src)
		return dst
	}
	sums := make([]float64, w)
	for y := range h {
		clear(sums)
		for r := range bin[0] {
			addBinned(sums, src[(y*bin[0]+r)*nx:][:nx], bin[1])
		}
		Mean(dst[y*w:][:w], sums, bin[0]*bin[1])
	}
	return dst
}

// addBinned adds each n pixels of a row to a sum, one after the other.
func addBinned(sums []float64, row []float32, n int) {
	if n == 2 {
		for x := range sums {
			two := row[:2]
			sums[x] = sums[x] + float64(two[0]) + float64(two[1])
			row = row[2:]
		}
		return
	}
	for x := range sums {
		sum := sums[x]
		for _, f := range row[:n] {
			sum += float64(f)
		}
		sums[x], row = sum, row[n:]
	}
}
