package basic

import "math"

// dct computes the orthonormal two-dimensional cosine transform of type II of images of Size × Size numbers,
// and its inverse, by Lee's recursion (IEEE Transactions on Acoustics, Speech, and Signal Processing 32,
// 1984): whole rows are added at a time.
type dct struct {
	halfSecant [bits + 1][]float64 // of a transform of 2^k numbers: 1/(2·cos((i+½)π/2^k))
	scratch    []float64
}

func newDCT() *dct {
	d := &dct{scratch: make([]float64, pixels)}
	for k := 1; k <= bits; k++ {
		n := 1 << k
		for i := range n / 2 {
			d.halfSecant[k] = append(d.halfSecant[k], 0.5/math.Cos((float64(i)+0.5)*math.Pi/float64(n)))
		}
	}
	return d
}

// forward transforms an image in place.
func (d *dct) forward(v []float64) {
	for range 2 {
		d.split(v, d.scratch, bits)
		scale(v[:Size], math.Sqrt(1.0/Size))
		scale(v[Size:], math.Sqrt(2.0/Size))
		transpose(v)
	}
}

// inverse undoes forward.
func (d *dct) inverse(v []float64) {
	for range 2 {
		scale(v[:Size], math.Sqrt(1.0/Size))
		scale(v[Size:], math.Sqrt(2.0/Size))
		d.join(v, d.scratch, bits)
		transpose(v)
	}
}

func scale(v []float64, f float64) {
	for i := range v {
		v[i] *= f
	}
}

func transpose(v []float64) {
	for y := range Size {
		for x := range y {
			v[y*Size+x], v[x*Size+y] = v[x*Size+y], v[y*Size+x]
		}
	}
}

func row(v []float64, i int) *[Size]float64 { return (*[Size]float64)(v[i*Size:]) }

// split computes the cosine transform along the first axis of 2^k rows: X[j] = Σ x[i]·cos(π(i+½)j/2^k).
func (d *dct) split(v, tmp []float64, k int) {
	if k == 0 {
		return
	}
	n := 1 << k
	for i := range n / 2 {
		f := d.halfSecant[k][i]
		a, b, s, t := row(v, i), row(v, n-1-i), row(tmp, i), row(tmp, n/2+i)
		for x := range a {
			s[x] = a[x] + b[x]
			t[x] = (a[x] - b[x]) * f
		}
	}
	d.split(tmp[:n/2*Size], v[:n/2*Size], k-1)
	d.split(tmp[n/2*Size:], v[n/2*Size:], k-1)
	for i := range n / 2 {
		*row(v, 2*i) = *row(tmp, i)
		to, a := row(v, 2*i+1), row(tmp, n/2+i)
		if i == n/2-1 {
			*to = *a
			break
		}
		b := row(tmp, n/2+i+1)
		for x := range to {
			to[x] = a[x] + b[x]
		}
	}
}

// join computes the cosine series along the first axis of 2^k rows: x[i] = Σ X[j]·cos(π(i+½)j/2^k).
func (d *dct) join(v, tmp []float64, k int) {
	if k == 0 {
		return
	}
	n := 1 << k
	for i := range n / 2 {
		*row(tmp, i) = *row(v, 2*i)
		to, a := row(tmp, n/2+i), row(v, 2*i+1)
		if i == 0 {
			*to = *a
			continue
		}
		b := row(v, 2*i-1)
		for x := range to {
			to[x] = b[x] + a[x]
		}
	}
	d.join(tmp[:n/2*Size], v[:n/2*Size], k-1)
	d.join(tmp[n/2*Size:], v[n/2*Size:], k-1)
	for i := range n / 2 {
		f := d.halfSecant[k][i]
		a, b, s, t := row(v, i), row(v, n-1-i), row(tmp, i), row(tmp, n/2+i)
		for x := range a {
			h := float64(t[x] * f)
			a[x], b[x] = s[x]+h, s[x]-h
		}
	}
}
