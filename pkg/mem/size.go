package mem

import (
	"math"
	"math/bits"
)

// Mul multiplies sizes; ok is false if one is negative or the product overflows an int.
func Mul(a, b int) (p int, ok bool) {
	hi, lo := bits.Mul64(uint64(a), uint64(b))
	if a < 0 || b < 0 || hi != 0 || lo > math.MaxInt {
		return 0, false
	}
	return int(lo), true
}

// Sum adds sizes that are not negative. If the sum overflows an int, it returns math.MaxInt, a size that
// nothing has.
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

// Product multiplies sizes that are not negative, with the overflow rule of [Sum].
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
