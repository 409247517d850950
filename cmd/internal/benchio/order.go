package benchio

import "math/bits"

// order is a permutation of the numbers below n that needs no table: a Feistel network over the next power of
// four, iterated until it yields a number below n.
type order struct {
	n    uint64
	half uint // bits
	seed uint64
}

func newOrder(n int64, seed uint64) order {
	b := uint(bits.Len64(uint64(max(n, 1) - 1)))
	return order{n: uint64(n), half: max((b+1)/2, 1), seed: seed}
}

// at returns the number at place i; from n on the order repeats.
func (o order) at(i int64) int64 {
	v := uint64(i) % o.n
	for {
		if v = o.mix(v); v < o.n {
			return int64(v)
		}
	}
}

func (o order) mix(v uint64) uint64 {
	mask := uint64(1)<<o.half - 1
	l, r := v>>o.half, v&mask
	for round := range uint64(4) {
		x := (r ^ o.seed ^ round<<32) * 0x9e3779b97f4a7c15
		x = (x ^ x>>29) * 0xbf58476d1ce4e5b9
		l, r = r, l^(x>>32)&mask
	}
	return l<<o.half | r
}
