package jpeg

// The inverse DCT is that of Loeffler, Ligtenberg and Moschytz in integers of 13 bits after the point, columns first, with 2 more bits kept
// between the passes: libjpeg's accurate one, whose rounding it shares. What is added there before it is multiplied is multiplied out
// here, which changes nothing in integers. Where coefficients are far out of range, intermediate values are cut off as the AVX2
// form does it: products with the quantization table to 16 bits, results of a pass by saturation.

// even and odd are the factors of coefficients 2, 6 and 1, 3, 5, 7.
var (
	even = [2][2]int32{{10703, 4433}, {4433, -10704}}
	odd  = [4][4]int32{{11363, 9633, 6437, 2260}, {9633, -2259, -11362, -6436}, {6437, -11362, 2261, 9633}, {2260, -6436, 9633, -11363}}
)

// transform is the inverse DCT of x in one direction, with what rounds the results added.
func transform(x *[8]int32, round int32) (y [8]int32) {
	t0, t1 := (x[0]+x[4])<<13+round, (x[0]-x[4])<<13+round
	t2 := x[2]*even[1][0] + x[6]*even[1][1]
	t3 := x[2]*even[0][0] + x[6]*even[0][1]
	for i, e := range [4]int32{t0 + t3, t1 + t2, t1 - t2, t0 - t3} {
		f := &odd[i]
		o := x[1]*f[0] + x[3]*f[1] + x[5]*f[2] + x[7]*f[3]
		y[i], y[7-i] = e+o, e-o
	}
	return y
}

func saturate16(v int32) int16 { return int16(max(-1<<15, min(v, 1<<15-1))) }

// idctScalar writes the 8×8 samples of c, and sets c to 0.
func idctScalar(dst []byte, stride int, c *coefficients, quant *[64]uint16) {
	var pass [64]int16
	for i := range 8 {
		var x [8]int32
		for j := range 8 {
			x[j] = int32(c[8*j+i] * int16(quant[8*j+i]))
		}
		y := transform(&x, 1<<10)
		for j := range 8 {
			pass[8*j+i] = saturate16(y[j] >> 11)
		}
	}
	for j := range 8 {
		var x [8]int32
		for i := range 8 {
			x[i] = int32(pass[8*j+i])
		}
		y := transform(&x, 1<<17)
		row := dst[j*stride:][:8]
		for i := range 8 {
			row[i] = byte(max(-128, min(y[i]>>18, 127)) + 128)
		}
	}
	clear(c[:64])
}

// idctDC is the inverse DCT of a block of which only the first coefficient is there, which is dc.
func idctDC(dst []byte, stride int, dc int16, quant uint16) {
	v := saturate16(int32(dc*int16(quant)) << 2)
	s := uint64(max(-128, min((int32(v)+16)>>5, 127))+128) * 0x0101010101010101
	for j := range 8 {
		put64(dst[j*stride:], s)
	}
}
