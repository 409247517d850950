package basic

import "math"

// restart begins a round: R = Y = 0. It returns the first μ.
func (f *fit) restart(smooth float64) float64 {
	for i := range f.smooth {
		f.smooth[i] = smooth
		f.narrow[i] = float32(smooth)
	}
	clear(f.spectrum)
	f.spectrum[0] = Size * smooth
	clear(f.rest)
	clear(f.multiplier)
	return 12.5 / f.largest
}

// solveApproximate runs a round in basicpy's order: S, R, B, Y.
func (f *fit) solveApproximate() {
	first := f.restart(1)
	f.relativeMeans(f.mean)
	f.sumImages(f.sum)
	mu := first
	for range f.how.Steps {
		f.updateSmooth(mu, 1-f.meanBrightness())
		f.separate(mu, nil)
		f.rebalance()
		next := min(penaltyGrowth*mu, penaltyMax*first)
		residual := f.dual(mu, next, f.sum)
		if mu = next; residual <= f.how.tolerance*f.norm || f.err != nil {
			break
		}
	}
}

// solveSorted runs a round in linum-basic's order: R, S, Y with the old B, and B.
func (f *fit) solveSorted() {
	first := f.restart(0)
	for i := range f.brightness {
		f.brightness[i] = 1
	}
	old := make([]float32, f.t)
	mu := first
	for range f.how.Steps {
		f.separate(mu, f.sum)
		f.updateSmooth(mu, 0)
		copy(old, f.brightness)
		residual := f.dual(mu, mu, nil)
		f.rebalance()
		mu = min(penaltyGrowth*mu, penaltyMax*first)
		if residual < f.how.tolerance*f.norm || f.err != nil {
			copy(f.brightness, old) // those that belong to R
			break
		}
	}
}

// relativeMeans sets B to the means of images, relative to their mean.
func (f *fit) relativeMeans(means []float64) {
	all := 0.0
	for _, m := range means {
		all += m
	}
	all /= float64(f.t)
	for i, m := range means {
		f.brightness[i] = 0
		if all != 0 {
			f.brightness[i] = float32(max(0, m/all))
		}
	}
}

// rebalance sets B from the sums of I − R that separate left.
func (f *fit) rebalance() {
	means := make([]float64, f.t)
	for i := range means {
		means[i] = f.total(i) / pixels
	}
	f.relativeMeans(means)
}

// updateSmooth sets S from the mean of I − R + Y/μ. keep is the share of the old S that remains: S is what is left
// when S·B is taken from that mean, plus the old S.
func (f *fit) updateSmooth(mu, keep float64) {
	if f.err != nil {
		return
	}
	scale(f.sum, 1/float64(f.t))
	f.dct.forward(f.sum)
	threshold := f.how.Smoothness / mu
	for i, v := range f.sum {
		v += float64(keep * f.spectrum[i])
		f.spectrum[i] = v - max(-threshold, min(v, threshold))
	}
	copy(f.smooth, f.spectrum)
	f.dct.inverse(f.smooth)
	for i, v := range f.smooth {
		f.narrow[i] = float32(v)
	}
}

// separate makes R, which is I − SB + Y/μ moved towards 0 by W/μ, and leaves the sums of I − R of each image. If sum
// is not nil, it becomes that of I − R + Y/μ over the images.
func (f *fit) separate(mu float64, sum []float64) {
	inverse := float32(1 / mu)
	f.each(func(first int) {
		var all []float64
		if sum != nil {
			all = sum[first:][:band:band]
			clear(all)
		}
		smooth := f.narrow[first:][:band:band]
		for i, b := range f.brightness {
			weight, rest, multiplier, image := of(f.weight, i, first), of(f.rest, i, first), of(f.multiplier, i, first), of(f.images, i, first)
			f.partial[i*bands+first/band] = separate(rest, image, smooth, multiplier, weight, b, inverse, all)
		}
	})
}

// separate is [fit.separate] for a band of an image.
func separate(rest, image, smooth, multiplier, weight []float32, b, inverse float32, all []float64) (sum float64) {
	n := len(image)
	rest, smooth, multiplier, weight = rest[:n], smooth[:n], multiplier[:n], weight[:n]
	for x, p := range image {
		y := float32(multiplier[x] * inverse)
		v := p - float32(smooth[x]*b) + y
		t := float32(weight[x] * inverse)
		r := v - max(-t, min(v, t))
		rest[x] = r
		sum += float64(p - r)
		if all != nil {
			all[x] += float64(p - r + y)
		}
	}
	return sum
}

// dual adds μ times the residual I − SB − R to Y and returns the norm of that. If sum is not nil, it becomes that of
// I − R + Y/next over the images.
func (f *fit) dual(mu, next float64, sum []float64) float64 {
	step, inverse := float32(mu), float32(1/next)
	squares := make([]float64, bands)
	f.each(func(first int) {
		var all []float64
		if sum != nil {
			all = sum[first:][:band:band]
			clear(all)
		}
		smooth, square := f.narrow[first:][:band:band], 0.0
		for i, b := range f.brightness {
			square += dual(of(f.multiplier, i, first), of(f.images, i, first), smooth, of(f.rest, i, first), b, step, inverse, all)
		}
		squares[first/band] = square
	})
	square := 0.0
	for _, v := range squares {
		square += v
	}
	return math.Sqrt(square)
}

// dual is [fit.dual] for a band of an image; it returns the square of the norm.
func dual(multiplier, image, smooth, rest []float32, b, step, inverse float32, all []float64) (square float64) {
	n := len(image)
	multiplier, smooth, rest = multiplier[:n], smooth[:n], rest[:n]
	for x, p := range image {
		left := p - rest[x]
		d := left - float32(smooth[x]*b)
		y := multiplier[x] + float32(step*d)
		multiplier[x] = y
		square += float64(float64(d) * float64(d))
		if all != nil {
			all[x] += float64(left + float32(y*inverse))
		}
	}
	return square
}
