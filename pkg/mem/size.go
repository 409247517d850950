package mem

import (
	"math"
	"math/bits"
)

// Mul multiplies sizes; ok is false when one is negative or the product does not fit an int.
func Mul(a, b int) (p int, ok bool) {
	hi, lo := bits.Mul64(uint64(a), uint64(b))
	if a < 0 || b < 0 || hi != 0 || lo > math.MaxInt {
		return 0, false
	}
	return int(lo), true
}

// Sum adds sizes that are not negative. A sum that does not fit an int is math.MaxInt, which
// stands for a size that nothing has.
func Sum(sizes ...int) int {
	sum := 0
	for _, n := range sizes {
		if n > math.MaxInt-sum {
			return math.MaxInt
		}
		sum += n
	}
	return sum
}

// Product multiplies sizes that are not negative, as [Sum] adds them.
func Product(sizes ...int) int {
	p := 1
	for _, n := range sizes {
		if n == 0 {
			return 0
		}
	}
	for _, n := range sizes {
		var ok bool
		if p, ok = Mul(p, n); !ok {
			return math.MaxInt
		}
	}
	return p
}
