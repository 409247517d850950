package jpeg

// The inverse DCT is that of Loeffler, Ligtenberg and Moschytz in integers of 13 bits after the point, columns first,
// with 2 more bits kept between the passes: libjpeg's accurate one, whose rounding it shares. What is added there
// before it is multiplied is multiplied out here, which changes nothing in integers. Where coefficients are far out of
// range, intermediate values are cut off as the AVX2 form does it: products with the quantization table to 16 bits,
// results of a pass by saturation.

// Factors of the DCT and its inverse: even ones of coefficients 2 and 6, odd ones of 1, 3, 5 and 7.
const (
	even20, even21 = 10703, 4433
	even60, even61 = 4433, -10704

	odd10, odd11, odd12, odd13 = 11363, 9633, 6437, 2260
	odd30, odd31, odd32, odd33 = 9633, -2259, -11362, -6436
	odd50, odd51, odd52, odd53 = 6437, -11362, 2261, 9633
	odd70, odd71, odd72, odd73 = 2260, -6436, 9633, -11363
)

// inverse computes the inverse DCT of x in one direction, with round added.
func inverse(x *[8]int32, round int32) {
	even0, even1 := (x[0]+x[4])<<13+round, (x[0]-x[4])<<13+round
	x2, x6 := x[2], x[6]
	d, e := x2*even20+x6*even21, x2*even60+x6*even61
	x1, x3, x5, x7 := x[1], x[3], x[5], x[7]
	o0 := x1*odd10 + x3*odd11 + x5*odd12 + x7*odd13
	o1 := x1*odd30 + x3*odd31 + x5*odd32 + x7*odd33
	o2 := x1*odd50 + x3*odd51 + x5*odd52 + x7*odd53
	o3 := x1*odd70 + x3*odd71 + x5*odd72 + x7*odd73
	x[0], x[7] = even0+d+o0, even0+d-o0
	x[1], x[6] = even1+e+o1, even1+e-o1
	x[2], x[5] = even1-e+o2, even1-e-o2
	x[3], x[4] = even0-d+o3, even0-d-o3
}

func saturate16(v int32) int16 { return int16(max(-1<<15, min(v, 1<<15-1))) }

// idctScalar writes the 8×8 samples of c, and sets c to 0.
func idctScalar(dst []byte, stride int, c *coefficients, quant *[64]uint16) {
	var pass [64]int16
	for i := range 8 {
		dc := c[i] * int16(quant[i])
		if c[8+i]|c[16+i]|c[24+i]|c[32+i]|c[40+i]|c[48+i]|c[56+i] == 0 { // as most columns
			v := saturate16(int32(dc) << 2)
			for j := 0; j < 64; j += 8 {
				pass[j+i] = v
			}
			continue
		}
		x := [8]int32{int32(dc)}
		for j := 1; j < 8; j++ {
			x[j] = int32(c[8*j+i] * int16(quant[8*j+i]))
		}
		inverse(&x, 1<<10)
		for j := range 8 {
			pass[8*j+i] = saturate16(x[j] >> 11)
		}
	}
	for j := range 8 {
		p := pass[8*j:][:8]
		x := [8]int32{int32(p[0]), int32(p[1]), int32(p[2]), int32(p[3]), int32(p[4]), int32(p[5]), int32(p[6]), int32(p[7])}
		inverse(&x, 1<<17)
		row := dst[j*stride:][:8]
		for i := range row {
			row[i] = clamp(x[i]>>18 + 128)
		}
	}
	clear(c[:64])
}

// idctDC computes the inverse DCT of a block whose only coefficient is the first, dc.
func idctDC(dst []byte, stride int, dc int16, quant uint16) {
	v := saturate16(int32(dc*int16(quant)) << 2)
	s := uint64(clamp((int32(v)+16)>>5+128)) * 0x0101010101010101
	for j := range 8 {
		put64(dst[j*stride:], s)
	}
}
