package filter

// Otsu splits a histogram in two so that the variance between the classes is largest (Otsu, IEEE Transactions
// on Systems, Man, and Cybernetics 9, 1979): bins 0 … split−1 are one class, the rest the other. Of equal
// splits it returns the lowest. split is 0 if fewer than two bins have counts.
func Otsu(counts []int64) (split int) {
	var total, moment float64
	for i, c := range counts {
		total += float64(c)
		moment += float64(c) * float64(i)
	}
	best, low, lowMoment := 0.0, 0.0, 0.0
	for i, c := range counts {
		low += float64(c)
		lowMoment += float64(c) * float64(i)
		high := total - low
		if low == 0 || high == 0 {
			continue
		}
		d := lowMoment/low - (moment-lowMoment)/high
		if v := low * high * d * d; v > best {
			best, split = v, i+1
		}
	}
	return split
}
