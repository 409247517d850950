package filter

import "math"

// truncate is the extent of a Gaussian in standard deviations.
const truncate = 4

// GaussianKernel returns a Gaussian (order 0) or its first derivative (order 1) as weights of a correlation:
// out[i] = Σ k[r+j]·in[i+j], j = −r…r, with r = ⌊4·sigma + ½⌋ = len/2. The Gaussian sums to one; the
// derivative is that of the sampled Gaussian, positive on a rising edge. The values equal those of
// scipy.ndimage.gaussian_filter1d with its default truncate of 4.
//
// If sigma is so small that r = 0, or not above zero, nothing is smoothed: the kernel is {1}, its derivative
// {0}. The bits are the same on every machine.
func GaussianKernel(sigma float64, order int) []float64 {
	r := 0
	if sigma > 0 {
		r = int(truncate*sigma + 0.5)
	}
	if r == 0 {
		return []float64{float64(1 - order)}
	}
	k := make([]float64, 2*r+1)
	var sum float64
	for j := -r; j <= r; j++ {
		v := exp(-0.5 / (sigma * sigma) * float64(j*j))
		k[r+j] = v
		sum += v
	}
	for j := -r; j <= r; j++ {
		k[r+j] /= sum
		if order == 1 {
			k[r+j] *= float64(j) / (sigma * sigma)
		}
	}
	return k
}

// SobelKernel returns the weights of Sobel's operator along an axis, in the form of [GaussianKernel]: 1, 2, 1
// across the direction of the derivative (order 0), −1, 0, 1 along it (order 1).
func SobelKernel(order int) []float64 {
	if order == 1 {
		return []float64{-1, 0, 1}
	}
	return []float64{1, 2, 1}
}

// AntiAliasSigma returns the standard deviation, in input samples, of the blur before an axis of in samples
// is resampled to out: (f−1)/2 for f = in/out > 1, and zero otherwise (stages specification, resample).
func AntiAliasSigma(in, out int) float64 {
	return max(0, (float64(in)/float64(out)-1)/2)
}

// Exp returns the exponential function of x ≤ 0 to one unit in the last place, with the same bits on every machine.
func Exp(x float64) float64 { return exp(x) }

// exp returns the exponential function of x ≤ 0 to one unit in the last place. math.Exp differs in the last
// bit between processors.
func exp(x float64) float64 {
	const (
		high = 6.93147180369123816490e-01 // ln 2 = high + low; high has 21 zero bits at its end
		low  = 1.90821492927058770002e-10
	)
	if x < -745 {
		return 0
	}
	k := math.RoundToEven(x / math.Ln2)
	r := x - float64(k*high) - float64(k*low) // |r| ≤ ln 2 / 2
	p := 1.0
	for n := 14.0; n > 0; n-- { // the Taylor series up to r¹⁴/14!
		p = 1 + float64(p*r)/n
	}
	return math.Ldexp(p, int(k))
}
