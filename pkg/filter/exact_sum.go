package filter

import "math"

// An ExactSum adds finite numbers of 32 bits without rounding, so that the order does not matter. It holds up to 2³⁹ of
// them.
type ExactSum struct {
	parts [256]int64 // by the exponent's bits: sums of mantissas
	n     int64
}

// Add adds a number, unless it is NaN or infinite.
func (s *ExactSum) Add(v float32) {
	bits := math.Float32bits(v)
	exponent := bits >> 23 & 0xff
	if exponent == 0xff {
		return
	}
	mantissa := int64(bits & (1<<23 - 1))
	if exponent > 0 {
		mantissa |= 1 << 23
	}
	if bits>>31 != 0 {
		mantissa = -mantissa
	}
	s.parts[exponent] += mantissa
	s.n++
}

// AddAll adds numbers. It adds clip for numbers above clip, and ignores NaN and infinite ones.
func (s *ExactSum) AddAll(v []float32, clip float32) {
	var parts [2][256]int64 // which the processor adds to at the same time
	limit := math.Float32bits(clip)
	for i, f := range v {
		bits := math.Float32bits(f)
		if bits>>23&0xff == 0xff {
			continue
		}
		if f > clip {
			bits = limit
		}
		exponent := bits >> 23 & 0xff
		mantissa := int64(bits&(1<<23-1) | 1<<23)
		if exponent == 0 {
			mantissa -= 1 << 23
		}
		sign := -int64(bits >> 31)
		parts[i&1][exponent] += (mantissa ^ sign) - sign
	}
	for k := range s.parts {
		s.parts[k] += parts[0][k] + parts[1][k]
	}
	s.n += int64(len(v)) - CountNonFinite(v)
}

// Merge adds the numbers of another sum.
func (s *ExactSum) Merge(p *ExactSum) {
	for i, v := range p.parts {
		s.parts[i] += v
	}
	s.n += p.n
}

// Mean returns the mean, rounded a few times; NaN without numbers.
func (s *ExactSum) Mean() float64 {
	sum := 0.0
	for i, v := range s.parts {
		sum += math.Ldexp(float64(v), max(i, 1)-150) // exact but for sums of more than 2²⁹ numbers
	}
	return sum / float64(s.n)
}

// Count returns how many numbers were added.
func (s *ExactSum) Count() int64 { return s.n }
