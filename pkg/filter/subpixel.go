package filter

import "math"

// Fit is the best agreement of two planes that are aligned to about a pixel.
type Fit struct {
	// DY, DX is the remaining displacement in fractions of a pixel: moving(y, x) = fixed(y+DY, x+DX).
	DY, DX float64
	// Correlation is the normalised cross-correlation at this displacement.
	Correlation float64
	// Peak reports that the best agreement lies within a pixel. Otherwise DY and DX are the whole pixel that
	// leads uphill: align by it and fit again.
	Peak bool
	// YY, YX, XX are the negative second derivatives of the correlation at this displacement: the sharpness of its
	// peak.
	YY, YX, XX float64
	// Contrast is the standard deviation of the compared signal in the planes' units: the geometric mean of
	// the two.
	Contrast float64
}

// SubPixel fits the displacement of planes of height × width pixels that are aligned to about a pixel. It
// removes a polynomial of second degree from both (shading, which belongs to the microscope) and smooths them
// by a Gaussian of 1 px, so that the peak is as wide as the parabola fitted to the normalised
// cross-correlations at the nine shifts around it. Within ±0.5 px this is accurate to a few hundredths of a
// pixel at a microscope's resolution; noise adds to that. ok is false if there is nothing to compare.
func (p *Phase) SubPixel(fixed, moving []float32, height, width int) (f Fit, ok bool) {
	if height < 2*fitMargin+3 || width < 2*fitMargin+3 {
		return Fit{}, false
	}
	p.flatF, p.flatM = sized(p.flatF, height*width), sized(p.flatM, height*width)
	p.line = sized(p.line, height*width)
	_, okF := p.flatten(p.flatF, fixed, height, width)
	_, okM := p.flatten(p.flatM, moving, height, width)
	if !okF || !okM {
		return Fit{}, false
	}
	blur(p.flatF, p.line, height, width)
	blur(p.flatM, p.line, height, width)
	c, contrast, ok := p.correlations(height, width)
	if !ok {
		return Fit{}, false
	}
	best := 4
	for k := range 9 {
		if c[k/3][k%3] > c[best/3][best%3] {
			best = k
		}
	}
	if best != 4 {
		return Fit{DY: float64(best/3 - 1), DX: float64(best%3 - 1), Correlation: c[best/3][best%3]}, true
	}
	gy, gx := (c[2][1]-c[0][1])/2, (c[1][2]-c[1][0])/2
	f.YY, f.XX = 2*c[1][1]-c[2][1]-c[0][1], 2*c[1][1]-c[1][2]-c[1][0]
	f.YX = -(c[2][2] + c[0][0] - c[0][2] - c[2][0]) / 4
	det := f.YY*f.XX - f.YX*f.YX
	if !(f.YY > 0 && det > 1e-9*f.YY*f.XX) {
		return Fit{}, false
	}
	f.DY, f.DX = (f.XX*gy-f.YX*gx)/det, (f.YY*gx-f.YX*gy)/det
	if max(math.Abs(f.DY), math.Abs(f.DX)) > 0.75 {
		f.ridge(gy, gx)
	}
	f.Correlation = min(c[1][1]+(gy*f.DY+gx*f.DX)/2, 1)
	f.Peak, f.Contrast = true, contrast
	return f, true
}

// ridge fits a ridge, whose top is far away: along it nothing is known. Across it, it has its top where the derivatives
// gy and gx put it, and all of its curvature.
func (f *Fit) ridge(gy, gx float64) {
	half, mean := (f.YY-f.XX)/2, (f.YY+f.XX)/2
	sharp := mean + math.Hypot(half, f.YX)
	// the direction across
	y, x := f.YX, sharp-f.YY
	if math.Abs(sharp-f.XX) > math.Abs(x) {
		y, x = sharp-f.XX, f.YX
	}
	n := math.Hypot(y, x)
	y, x = y/n, x/n
	top := min(max((gy*y+gx*x)/sharp, -0.75), 0.75)
	f.DY, f.DX = top*y, top*x
	const faint = 1e-6 // so that it can be inverted
	f.YY, f.YX, f.XX = sharp*(y*y+faint), sharp*y*x, sharp*(x*x+faint)
}

// fitMargin is the largest of the nine shifts.
const fitMargin = 1

// correlations returns the normalised cross-correlations of the two flat planes at the nine shifts around
// none, by dy+1 and dx+1, and the planes' contrast.
func (p *Phase) correlations(height, width int) (c [3][3]float64, contrast float64, ok bool) {
	n := width - 2*fitMargin
	bb := 0.0
	for y := fitMargin; y < height-fitMargin; y++ {
		for _, q := range p.flatM[y*width+fitMargin:][:n] {
			bb += float64(q * q)
		}
	}
	for dy := -1; dy <= 1; dy++ {
		// three shifts at a time: their sums do not wait for each other
		var ab0, ab1, ab2, aa0, aa1, aa2 float64
		for y := fitMargin; y < height-fitMargin; y++ {
			a := p.flatF[(y+dy)*width:][:width]
			for x, q := range p.flatM[y*width+fitMargin:][:n] {
				u, v, w := a[x], a[x+1], a[x+2]
				ab0, aa0 = ab0+float64(u*q), aa0+float64(u*u)
				ab1, aa1 = ab1+float64(v*q), aa1+float64(v*v)
				ab2, aa2 = ab2+float64(w*q), aa2+float64(w*w)
			}
		}
		if !(min(aa0, aa1, aa2) > 0 && bb > 0) {
			return c, 0, false
		}
		if dy == 0 {
			contrast = math.Sqrt(math.Sqrt(aa1) * math.Sqrt(bb) / float64(n*(height-2*fitMargin)))
		}
		c[dy+1] = [3]float64{ab0 / math.Sqrt(aa0*bb), ab1 / math.Sqrt(aa1*bb), ab2 / math.Sqrt(aa2*bb)}
	}
	return c, contrast, true
}

// flatten copies a plane to dst without its slow shading: the residual of a least-squares fit by a polynomial
// of second degree. Pixels that are not finite count as the mean, which it returns. ok is false if the plane
// is constant.
func (p *Phase) flatten(dst []float64, src []float32, height, width int) (mean float64, ok bool) {
	n, lo, hi := 0, math.Inf(1), math.Inf(-1)
	for _, f := range src {
		v := float64(f)
		if v-v == 0 {
			mean += v
			n++
			if v < lo {
				lo = v
			}
			if v > hi {
				hi = v
			}
		}
	}
	if !(hi > lo) {
		return mean, false
	}
	mean /= float64(n)
	for i, f := range src {
		v := float64(f) - mean
		if v-v != 0 {
			v = 0
		}
		dst[i] = v
	}
	fit := newSurface(dst, height, width, 2)
	left, all := 0.0, 0.0
	for y := range height {
		p.row = fit.row(p.row, y)
		for x, v := range dst[y*width:][:width] {
			d := v - p.row[x]
			dst[y*width+x] = d
			left, all = left+float64(d*d), all+float64(v*v)
		}
	}
	return mean, left > 1e-10*all
}

// blurTaps is a Gaussian of 1 px standard deviation, cut off at 3.
var blurTaps = func() (t [4]float64) {
	sum := 0.0
	for i := range t {
		t[i] = math.Exp(-0.5 * float64(i*i))
		sum += t[i] * float64(min(i, 1)+1)
	}
	for i := range t {
		t[i] /= sum
	}
	return t
}()

// blur smooths a plane in place, its edges repeated.
func blur(v, scratch []float64, height, width int) {
	const reach = len(blurTaps) - 1
	for y := range height {
		row, out := v[y*width:][:width], scratch[y*width:][:width]
		for x := range out {
			if x == reach && width > 2*reach { // the middle, without the edges' care
				blurMiddle(out, row)
			}
			if x >= reach && x < width-reach {
				continue
			}
			s := float64(blurTaps[0] * row[x])
			for d := 1; d <= reach; d++ {
				s += float64(blurTaps[d] * (row[max(x-d, 0)] + row[min(x+d, width-1)]))
			}
			out[x] = s
		}
	}
	for y := range height {
		out := v[y*width:][:width]
		for x, m := range scratch[y*width:][:width] {
			out[x] = float64(blurTaps[0] * m)
		}
		for d := 1; d < len(blurTaps); d++ {
			up, down := scratch[max(y-d, 0)*width:][:width], scratch[min(y+d, height-1)*width:][:width]
			for x := range out {
				out[x] += float64(blurTaps[d] * (up[x] + down[x]))
			}
		}
	}
}

// blurMiddle smooths the samples of a row that are three or more from its ends.
func blurMiddle(out, row []float64) {
	t0, t1, t2, t3 := blurTaps[0], blurTaps[1], blurTaps[2], blurTaps[3]
	n := len(row) - 6
	l3, l2, l1, m, r1, r2, r3 := row[:n], row[1:][:n], row[2:][:n], row[3:][:n], row[4:][:n], row[5:][:n], row[6:][:n]
	for i := range out[3:][:n] {
		s := float64(t0*m[i]) + float64(t1*(l1[i]+r1[i]))
		s += float64(t2 * (l2[i] + r2[i]))
		out[3+i] = s + float64(t3*(l3[i]+r3[i]))
	}
}
