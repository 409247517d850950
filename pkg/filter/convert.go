package filter

import (
	"math"

	"strata/pkg/dtype"
)

// ToFloat32 converts src to float32, rounding to nearest even. len(dst) ≥ len(src).
func ToFloat32[T dtype.Element](dst []float32, src []T) {
	if v, ok := any(src).([]float32); ok {
		copy(dst, v)
		return
	}
	dst = dst[:len(src)]
	for i := toFloat32Vector(dst, src); i < len(src); i++ {
		dst[i] = float32(src[i])
	}
}

// FromFloat32 converts src to T: integers round half to even, values outside T's range are clamped, and NaN
// becomes 0. len(dst) ≥ len(src).
func FromFloat32[T dtype.Element](dst []T, src []float32) {
	if v, ok := any(dst).([]float32); ok {
		copy(v, src)
		return
	}
	done := fromFloat32Vector(dst, src)
	dtype.ConvertSlice(dst[done:len(src)], dtype.Bytes(src[done:]), dtype.Float32)
}

// ToFloat converts src to F as [ToFloat32] does to float32.
func ToFloat[F float32 | float64, T dtype.Element](dst []F, src []T) {
	if d, ok := any(dst).([]float32); ok {
		ToFloat32(d, src)
		return
	}
	for i, v := range src {
		dst[i] = F(v)
	}
}

// FromFloat converts src to T as [FromFloat32] does from float32.
func FromFloat[F float32 | float64, T dtype.Element](dst []T, src []F) {
	if s, ok := any(src).([]float32); ok {
		FromFloat32(dst, s)
		return
	}
	dtype.ConvertSlice(dst[:len(src)], dtype.Bytes(src), dtype.Of[F]())
}

// CountNonFinite returns the number of NaN and infinite elements.
func CountNonFinite[T dtype.Element](src []T) (n int64) {
	switch v := any(src).(type) {
	case []float32:
		done, n := countNonFiniteVector(v)
		for _, f := range v[done:] {
			if f-f != 0 {
				n++
			}
		}
		return n
	case []float64:
		for _, f := range v {
			if f-f != 0 {
				n++
			}
		}
	}
	return n
}

// Ln replaces every number above 0 by its natural logarithm, within 2 units in
// the last place; others stay. It is computed in float32, with the minimax
// polynomial of the Cephes library's logf, in the same order on every machine.
func Ln(v []float32) {
	for i := lnVector(v); i < len(v); i++ {
		if v[i] > 0 && v[i] <= math.MaxFloat32 {
			v[i] = ln(v[i])
		}
	}
}

const (
	lnHalf    = 0x3f3504f3 // bits of √½
	lnHigh    = 0.693359375
	lnLow     = -2.12194440e-4 // lnHigh + lnLow = ln 2
	subnormal = 0x00800000     // bits of the smallest normal number
)

// lnPolynomial is of (ln(1+f) − f + f²/2) / f³, the highest power first.
var lnPolynomial = [9]float32{
	7.0376836292e-2, -1.1514610310e-1, 1.1676998740e-1, -1.2420140846e-1, 1.4249322787e-1,
	-1.6668057665e-1, 2.0000714765e-1, -2.4999993993e-1, 3.3333331174e-1,
}

func ln(v float32) float32 {
	bits, e := int32(math.Float32bits(v)), int32(0)
	if bits < subnormal {
		bits, e = int32(math.Float32bits(v*(1<<23))), -23
	}
	k := (bits - lnHalf) >> 23
	e += k
	f := math.Float32frombits(uint32(bits-k<<23)) - 1
	p := lnPolynomial[0]
	for _, c := range lnPolynomial[1:] {
		p = float32(p*f) + c
	}
	square := f * f
	p = float32(float32(p*f) * square)
	x := float32(e)
	p += float32(x * lnLow)
	p -= float32(0.5 * square)
	return float32(f+p) + float32(x*lnHigh)
}
