package filter

import "math"

// Dots computes the inner products of a with each of bs:
//
//	dst[k] = Σ a[i]·bs[k][i]
//
// in float64, where the product of two float32 is exact. Four running sums take
// the elements i mod 4 in increasing i and are added at the end as (0+1)+(2+3).
// All slices of bs have the length of a, dst that of bs.
func Dots(dst []float64, a []float32, bs [][]float32) {
	for k := 0; k < len(bs); k += 4 {
		from := min(k, max(len(bs)-4, 0)) // the last four may be done twice
		to := min(from+4, len(bs))
		if to-from == 4 && dots4(dst[from:to], a, bs[from:to]) {
			continue
		}
		for j := from; j < to; j++ {
			dst[j] = dot(a, bs[j])
		}
	}
}

func dot(a, b []float32) float64 {
	var s [4]float64
	b = b[:len(a)]
	for i, v := range a {
		s[i&3] += float64(float64(v) * float64(b[i]))
	}
	return (s[0] + s[1]) + (s[2] + s[3])
}

// Sums returns Σ v[i] and Σ v[i]², in the order of [Dots].
func Sums(v []float32) (sum, squares float64) {
	var s, q [4]float64
	for i := sumsVector(v, &s, &q); i < len(v); i++ {
		f := float64(v[i])
		s[i&3] += f
		q[i&3] += float64(f * f)
	}
	return (s[0] + s[1]) + (s[2] + s[3]), (q[0] + q[1]) + (q[2] + q[3])
}

// Moments holds the sums that give the normalised cross-correlation of two images a, b. Sums of parts of the
// images can be added.
type Moments struct {
	N          int64
	A, B       float64 // Σa, Σb
	AA, BB, AB float64 // Σa², Σb², Σab
}

// Add adds the moments of another part.
func (m *Moments) Add(p Moments) {
	m.N += p.N
	m.A, m.B = m.A+p.A, m.B+p.B
	m.AA, m.BB, m.AB = m.AA+p.AA, m.BB+p.BB, m.AB+p.AB
}

// flat is the standard deviation, in parts of the mean, under which an image
// counts as constant: the sums do not resolve less.
const flat = 1e-6

// NCC returns the normalised cross-correlation
//
//	mean((a−mean a)/(std a + 1e-8) · (b−mean b)/(std b + 1e-8))
//
// with the standard deviation of the population (stages specification, stack: z overlap). It is 0 where an
// image is constant (to 1e-6 of its mean) and NaN where one holds NaN or infinite values or nothing.
func (m Moments) NCC() float64 {
	if m.N == 0 {
		return math.NaN()
	}
	n := float64(m.N)
	a, b := m.A/n, m.B/n
	va, vb := m.AA/n-float64(a*a), m.BB/n-float64(b*b)
	if va <= flat*flat*a*a || vb <= flat*flat*b*b {
		return 0
	}
	return (m.AB/n - float64(a*b)) / ((math.Sqrt(va) + 1e-8) * (math.Sqrt(vb) + 1e-8))
}

// NCC returns the normalised cross-correlation of two images of the same size: see [Moments.NCC].
func NCC(a, b []float32) float64 {
	m := Moments{N: int64(len(a)), AB: dot(a, b)}
	m.A, m.AA = Sums(a)
	m.B, m.BB = Sums(b)
	return m.NCC()
}
