//go:build !noasm

package filter

import (
	"encoding/binary"
	"math/bits"
)

// Vector versions of Mix, Dots, Rigid.Resample and AddCommon: the same operations in the
// same order as the scalar ones, on 8 or 4 elements at a time.

//go:noescape
func mixAVX2(fixed, moving *float32, n int, w float64, gain float32)

//go:noescape
func dots4AVX2(sums *[16]float64, a, b0, b1, b2, b3 *float32, n int)

//go:noescape
func sumsAVX2(sums, squares *[4]float64, v *float32, n int)

//go:noescape
func rigidAVX2(row, src *float32, n int, r *rigidRow)

// mixVector blends the leading multiple of 8 elements and returns their number.
func mixVector(fixed, moving []float32, w float64, gain float32) int {
	n := len(fixed) &^ 7
	if !useAVX2 || n == 0 {
		return 0
	}
	_ = moving[n-1]
	mixAVX2(&fixed[0], &moving[0], n, w, gain)
	return n
}

func dots4(dst []float64, a []float32, bs [][]float32) bool {
	n := len(a) &^ 3
	if !useAVX2 || n == 0 {
		return false
	}
	for _, b := range bs {
		_ = b[len(a)-1]
	}
	var s [16]float64
	dots4AVX2(&s, &a[0], &bs[0][0], &bs[1][0], &bs[2][0], &bs[3][0], n)
	for k := range 4 {
		l := (*[4]float64)(s[4*k:])
		for i := n; i < len(a); i++ {
			l[i&3] += float64(float64(a[i]) * float64(bs[k][i]))
		}
		dst[k] = (l[0] + l[1]) + (l[2] + l[3])
	}
	return true
}

// rigidVector computes the leading multiple of 4 pixels and returns their number. The offsets of pixels must
// fit in 31 bits.
func rigidVector(row, src []float32, r *rigidRow) int {
	n := len(row) &^ 3
	if !useAVX2 || n == 0 || r.ny > (1<<31-1)/r.nx {
		return 0
	}
	_ = src[r.ny*r.nx-1]
	rigidAVX2(&row[0], &src[0], n, r)
	return n
}

// sumsVector sums the leading multiple of 4 elements and returns their number.
func sumsVector(v []float32, s, q *[4]float64) int {
	n := len(v) &^ 3
	if !useAVX2 || n == 0 {
		return 0
	}
	sumsAVX2(s, q, &v[0], n)
	return n
}

//go:noescape
func commonAVX2(a, b *float32, n int, limits *[4]float32, masks *byte, counts *[3]int64)

// commonAtOnce is the number of elements that the vector version of AddCommon inspects before it keeps those
// within the range.
const commonAtOnce = 2048

// commonVector adds the leading multiple of 8 elements and returns their number. A vector instruction counts
// 8 elements and marks those within the range.
func commonVector(a, b []float32, in, other *Bracket) int {
	n := len(a) &^ 7
	if !useAVX2 || n == 0 {
		return 0
	}
	_ = b[n-1]
	limits := [4]float32{in.Lo, in.Hi, other.Lo, other.Hi}
	var counts [3]int64
	var masks [commonAtOnce / 4]byte // of eight elements: within in, within other
	for at := 0; at < n; at += commonAtOnce {
		k := min(commonAtOnce, n-at)
		commonAVX2(&a[at], &b[at], k, &limits, &masks[0], &counts)
		clear(masks[k/4 : (k/4+7)/8*8])
		for i := 0; i < k/4; i += 8 {
			for marks := binary.LittleEndian.Uint64(masks[i:]); marks != 0; marks &= marks - 1 {
				bit := bits.TrailingZeros64(marks)
				if e := at + i*4 + bit/16*8 + bit%8; bit&8 == 0 {
					in.keep(a[e])
				} else {
					other.keep(b[e])
				}
			}
		}
	}
	in.n, other.n = in.n+counts[0], other.n+counts[0]
	in.below, other.below = in.below+counts[1], other.below+counts[2]
	return n
}
