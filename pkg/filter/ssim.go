package filter

import "math"

// SSIMWindow is the width of the window of [SSIM].
const SSIMWindow = 7

// SSIM returns the mean structural similarity (Wang et al. 2004) of two planes of h × w pixels, at least [SSIMWindow]
// each: of all windows of 7 × 7 pixels inside the plane, with equal weights, sample covariances and a data range of 1.
// Each plane is first scaled to 0 … 1; a constant plane becomes 0. Non-finite pixels count as 0.
func SSIM(a, b []float32, h, w int) float64 {
	const (
		n          = SSIMWindow * SSIMWindow
		each       = 1.0 / n // weight of a pixel
		unbiased   = float64(n) / (n - 1)
		c1, c2     = 0.01 * 0.01, 0.03 * 0.03
		halfWindow = SSIMWindow - 1
	)
	sa, sb := newScale(a), newScale(b)
	// sums over 7 rows, by column: of a, b, a², b², ab; and these rows of a and b
	columns := make([][5]float64, w)
	rows := make([][2]float64, SSIMWindow*w)
	var total float64
	for y := range h {
		row := rows[y%SSIMWindow*w:][:w]
		if y > halfWindow { // y−7 leaves
			for x, v := range row {
				p, q, c := v[0], v[1], &columns[x]
				c[0] -= p
				c[1] -= q
				c[2] -= float64(p * p)
				c[3] -= float64(q * q)
				c[4] -= float64(p * q)
			}
		}
		ra, rb := a[y*w:][:w], b[y*w:][:w]
		for x := range row {
			p, q, c := sa.of(ra[x]), sb.of(rb[x]), &columns[x]
			row[x] = [2]float64{p, q}
			c[0] += p
			c[1] += q
			c[2] += float64(p * p)
			c[3] += float64(q * q)
			c[4] += float64(p * q)
		}
		if y < halfWindow {
			continue
		}
		var s0, s1, s2, s3, s4 float64
		for x := range columns {
			c := &columns[x]
			s0, s1, s2, s3, s4 = s0+c[0], s1+c[1], s2+c[2], s3+c[3], s4+c[4]
			if x < halfWindow {
				continue
			}
			ma, mb := s0*each, s1*each
			va := float64(unbiased * (float64(s2*each) - float64(ma*ma)))
			vb := float64(unbiased * (float64(s3*each) - float64(mb*mb)))
			vab := unbiased * (float64(s4*each) - float64(ma*mb))
			total += float64((float64(2*ma*mb)+c1)*(float64(2*vab)+c2)) / float64((float64(ma*ma)+float64(mb*mb)+c1)*(va+vb+c2))
			c = &columns[x-halfWindow]
			s0, s1, s2, s3, s4 = s0-c[0], s1-c[1], s2-c[2], s3-c[3], s4-c[4]
		}
	}
	return total / (float64(h-halfWindow) * float64(w-halfWindow))
}

// scale maps the values of a plane to 0 … 1.
type scale struct{ low, factor float64 }

func newScale(v []float32) scale {
	low, high := float32(math.Inf(1)), float32(math.Inf(-1))
	for _, f := range v {
		if f-f != 0 {
			f = 0
		}
		if f < low {
			low = f
		}
		if f > high {
			high = f
		}
	}
	if !(high > low) {
		return scale{float64(low), 0}
	}
	return scale{float64(low), 1 / (float64(high) - float64(low))}
}

func (s scale) of(f float32) float64 { return (finiteOr0(f) - s.low) * s.factor }

// finiteOr0 returns a value, or 0 for NaN and infinities.
func finiteOr0(f float32) float64 {
	if f-f != 0 {
		return 0
	}
	return float64(f)
}

// EdgeCorrelation returns Pearson's correlation of the gradients of two planes of h × w pixels: of the magnitudes of
// Sobel's operator, with the edge pixels repeated beyond the planes. It is 0 if either plane has no edges. Non-finite
// pixels count as 0.
func EdgeCorrelation(a, b []float32, h, w int) float64 {
	rows := [2][]float64{make([]float64, w), make([]float64, w)}
	var mean [2]float64
	for y := range h {
		for k, plane := range [][]float32{a, b} {
			sobelRow(rows[k], plane, y, h, w)
			for _, v := range rows[k] {
				mean[k] += v
			}
		}
	}
	mean[0] /= float64(h) * float64(w)
	mean[1] /= float64(h) * float64(w)
	var aa, bb, ab float64
	for y := range h {
		sobelRow(rows[0], a, y, h, w)
		sobelRow(rows[1], b, y, h, w)
		for x, v := range rows[0] {
			p, q := v-mean[0], rows[1][x]-mean[1]
			aa += float64(p * p)
			bb += float64(q * q)
			ab += float64(p * q)
		}
	}
	if aa == 0 || bb == 0 {
		return 0
	}
	return ab / (math.Sqrt(aa) * math.Sqrt(bb))
}

// sobelRow writes the magnitude of Sobel's operator for row y of a plane.
func sobelRow(dst []float64, plane []float32, y, h, w int) {
	above, here, below := plane[max(y-1, 0)*w:][:w], plane[y*w:][:w], plane[min(y+1, h-1)*w:][:w]
	at := func(x int) (smooth, step float64) { // across the three rows
		p, q, r := finiteOr0(above[x]), finiteOr0(here[x]), finiteOr0(below[x])
		return p + 2*q + r, r - p
	}
	s0, d0 := at(0)
	s1, d1 := s0, d0
	for x := range w {
		s2, d2 := at(min(x+1, w-1))
		gx, gy := s2-s0, d0+2*d1+d2
		dst[x] = math.Sqrt(float64(gx*gx) + float64(gy*gy))
		s0, d0, s1, d1 = s1, d1, s2, d2
	}
}
