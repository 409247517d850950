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
	clear(f.restSum)
	clear(f.dualSum)
	return 12.5 / f.largest
}

// solveApproximate runs a round in basicpy's order: S, R, B, Y.
func (f *fit) solveApproximate() {
	first := f.restart(1)
	f.relativeMeans(f.mean)
	copy(f.before, f.brightness)
	if f.even == nil {
		f.even = f.newEvenness()
	}
	f.even.restart()
	a := make([]float32, f.t)
	mu := first
	for range f.how.Steps {
		copy(f.change, f.narrow)
		f.updateSmooth(mu, 1-f.meanBrightness())
		for i, b := range f.brightness {
			a[i] = float32(f.mu * (float64(f.before[i]) - float64(b)))
		}
		residual := 0.0
		if f.even.step(f, mu) {
			residual = f.even.residual(f)
		} else {
			f.advance(mu, a, nil)
			copy(f.before, f.brightness)
			f.rebalance(mu)
			residual = f.rebalancedResidual(mu)
		}
		f.dual(mu)
		if f.mu, mu = mu, min(penaltyGrowth*mu, penaltyMax*first); !(residual > f.how.tolerance*f.norm) || f.err != nil {
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
	clear(f.state)
	clear(f.change)
	a := make([]float32, f.t)
	mu := first
	for range f.how.Steps {
		f.advance(mu, a, f.pull)
		copy(f.change, f.narrow)
		f.updateSmooth(mu, 0)
		for i, s := range f.narrow {
			f.change[i] -= s
		}
		residual := f.smoothedResidual(mu)
		f.dual(mu)
		copy(f.before, f.brightness)
		f.rebalance(mu)
		f.mu = mu
		if !(residual >= f.how.tolerance*f.norm) || f.err != nil {
			copy(f.brightness, f.before) // those that belong to R
			break
		}
		for i, b := range f.before {
			a[i] = float32(mu * float64(b))
		}
		mu = min(penaltyGrowth*mu, penaltyMax*first)
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

// rebalance sets B from the sums that advance left.
func (f *fit) rebalance(mu float64) {
	means := make([]float64, f.t)
	for i := range means {
		means[i] = f.mean[i] + total(f.partial, i)/(mu*pixels)
	}
	f.relativeMeans(means)
}

// updateSmooth sets S from the mean of I − R + Y/μ. keep is the share of the old S that remains: S is what is left
// when S·B is taken from that mean, plus the old S.
func (f *fit) updateSmooth(mu, keep float64) {
	if f.err != nil {
		return
	}
	inverse := 1 / mu
	for i, v := range f.imageSum {
		f.sum[i] = (v - f.restSum[i] + float64(f.dualSum[i]*inverse)) / float64(f.t)
	}
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

// advance makes R and Y of all images, see [step], and the sums of R over the images. pull may be nil.
func (f *fit) advance(mu float64, a []float32, pull []float64) {
	f.each(func(first int) {
		excess := f.restSum[first:][:band:band]
		clear(excess)
		var force []float64
		if pull != nil {
			force = pull[first:][:band:band]
			clear(force)
		}
		p, q := f.change[first:][:band:band], f.narrow[first:][:band:band]
		var s sums
		for i, b := range f.brightness {
			by := factors{mu: float32(mu), a: a[i], b: float32(mu * float64(b))}
			step(f.piece(f.state, i, first), f.of(i, first), f.weights(i, first), p, q, by, excess, force, &s)
			k := i*bands + first/band
			f.partial[k], f.square[k], f.along[k] = s.total()
		}
		for x, v := range excess {
			excess[x] = -v / mu
		}
	})
}

// dual adds μ times I − S·B − R to the sums of Y over the images.
func (f *fit) dual(mu float64) {
	all := 0.0
	for _, b := range f.brightness {
		all += float64(b)
	}
	for i, v := range f.imageSum {
		f.dualSum[i] += float64(mu * (v - f.restSum[i] - float64(float64(f.narrow[i])*all)))
	}
}

// rebalancedResidual returns ‖I − S·B − R‖ from what advance left, which had the B of before.
func (f *fit) rebalancedResidual(mu float64) float64 {
	size, square := 0.0, 0.0
	for _, s := range f.narrow {
		size += float64(float64(s) * float64(s))
	}
	for i, b := range f.brightness {
		d := mu * (float64(b) - float64(f.before[i]))
		square += total(f.square, i) - float64(2*d*total(f.along, i)) + float64(d*d*size)
	}
	return math.Sqrt(max(0, square)) / mu
}

// smoothedResidual returns ‖I − S·B − R‖ from what advance left, which had an S greater by change.
func (f *fit) smoothedResidual(mu float64) float64 {
	size, square := 0.0, 0.0
	for i, p := range f.change {
		square += float64(2 * float64(p) * f.pull[i])
		size += float64(float64(p) * float64(p))
	}
	for i, b := range f.brightness {
		d := mu * float64(b)
		square += total(f.square, i) + float64(d*d*size)
	}
	return math.Sqrt(max(0, square)) / mu
}
