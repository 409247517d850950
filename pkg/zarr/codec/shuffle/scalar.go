package shuffle

import "encoding/binary"

// The scalar loops work on elements first … n-1 of n; the assembly has done the ones before. src and dst hold n·ts
// bytes or more. Rows of shuffled bytes begin stride bytes apart.

func shuffleScalar(dst, src []byte, ts, n, stride, first int) {
	switch ts {
	case 2:
		p0, p1 := dst[:n], dst[stride:][:n]
		for i := first; i < n; i++ {
			v := binary.LittleEndian.Uint16(src[2*i:])
			p0[i], p1[i] = byte(v), byte(v>>8)
		}
	case 3:
		p0, p1, p2 := dst[:n], dst[stride:][:n], dst[2*stride:][:n]
		for i := first; i < n; i++ {
			v := src[3*i:][:3]
			p0[i], p1[i], p2[i] = v[0], v[1], v[2]
		}
	case 4:
		p0, p1, p2, p3 := dst[:n], dst[stride:][:n], dst[2*stride:][:n], dst[3*stride:][:n]
		for i := first; i < n; i++ {
			v := binary.LittleEndian.Uint32(src[4*i:])
			p0[i], p1[i], p2[i], p3[i] = byte(v), byte(v>>8), byte(v>>16), byte(v>>24)
		}
	default:
		for j := range ts {
			plane := dst[j*stride:][:n]
			for i := first; i < n; i++ {
				plane[i] = src[i*ts+j]
			}
		}
	}
}

func unshuffleScalar(dst, src []byte, ts, n, stride, first int) {
	switch ts {
	case 2:
		p0, p1 := src[:n], src[stride:][:n]
		for i := first; i < n; i++ {
			binary.LittleEndian.PutUint16(dst[2*i:], uint16(p0[i])|uint16(p1[i])<<8)
		}
	case 3:
		p0, p1, p2 := src[:n], src[stride:][:n], src[2*stride:][:n]
		for i := first; i < n; i++ {
			v := dst[3*i:][:3]
			v[0], v[1], v[2] = p0[i], p1[i], p2[i]
		}
	case 4:
		p0, p1, p2, p3 := src[:n], src[stride:][:n], src[2*stride:][:n], src[3*stride:][:n]
		for i := first; i < n; i++ {
			binary.LittleEndian.PutUint32(dst[4*i:], uint32(p0[i])|uint32(p1[i])<<8|uint32(p2[i])<<16|uint32(p3[i])<<24)
		}
	default:
		for j := range ts {
			plane := src[j*stride:][:n]
			for i := first; i < n; i++ {
				dst[i*ts+j] = plane[i]
			}
		}
	}
}

// transpose8 transposes the 8×8 bits of x: bit c of byte r becomes bit r of byte c. It is its own inverse. Each step
// swaps the off-diagonal blocks of twice the size of the step before (Warren, Hacker's Delight, section 7-3).
func transpose8(x uint64) uint64 {
	t := (x ^ x>>7) & 0x00AA00AA00AA00AA
	x ^= t ^ t<<7
	t = (x ^ x>>14) & 0x0000CCCC0000CCCC
	x ^= t ^ t<<14
	t = (x ^ x>>28) & 0x00000000F0F0F0F0
	return x ^ t ^ t<<28
}

// n and first are multiples of 8.
func bitShuffleScalar(dst, src []byte, ts, n, first int) {
	nb := n / 8 // bytes in a row
	for j := range ts {
		p := dst[j*n : (j+1)*n]
		r0, r1, r2, r3 := p[:nb], p[nb:2*nb], p[2*nb:3*nb], p[3*nb:4*nb]
		r4, r5, r6, r7 := p[4*nb:5*nb], p[5*nb:6*nb], p[6*nb:7*nb], p[7*nb:8*nb]
		for c := first / 8; c < nb; c++ {
			in := src[c*8*ts+j:]
			_ = in[7*ts]
			x := transpose8(uint64(in[0]) | uint64(in[ts])<<8 | uint64(in[2*ts])<<16 | uint64(in[3*ts])<<24 |
				uint64(in[4*ts])<<32 | uint64(in[5*ts])<<40 | uint64(in[6*ts])<<48 | uint64(in[7*ts])<<56)
			r0[c], r1[c], r2[c], r3[c] = byte(x), byte(x>>8), byte(x>>16), byte(x>>24)
			r4[c], r5[c], r6[c], r7[c] = byte(x>>32), byte(x>>40), byte(x>>48), byte(x>>56)
		}
	}
}

// n and first are multiples of 8.
func bitUnshuffleScalar(dst, src []byte, ts, n, first int) {
	nb := n / 8
	for j := range ts {
		p := src[j*n : (j+1)*n]
		r0, r1, r2, r3 := p[:nb], p[nb:2*nb], p[2*nb:3*nb], p[3*nb:4*nb]
		r4, r5, r6, r7 := p[4*nb:5*nb], p[5*nb:6*nb], p[6*nb:7*nb], p[7*nb:8*nb]
		for c := first / 8; c < nb; c++ {
			x := transpose8(uint64(r0[c]) | uint64(r1[c])<<8 | uint64(r2[c])<<16 | uint64(r3[c])<<24 |
				uint64(r4[c])<<32 | uint64(r5[c])<<40 | uint64(r6[c])<<48 | uint64(r7[c])<<56)
			out := dst[c*8*ts+j:]
			_ = out[7*ts]
			out[0], out[ts], out[2*ts], out[3*ts] = byte(x), byte(x>>8), byte(x>>16), byte(x>>24)
			out[4*ts], out[5*ts], out[6*ts], out[7*ts] = byte(x>>32), byte(x>>40), byte(x>>48), byte(x>>56)
		}
	}
}
