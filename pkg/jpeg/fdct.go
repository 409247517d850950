package jpeg

import "math/bits"

// forward computes the DCT of x in one direction: coefficients 0 and 4 without fractional bits, the others
// with 13.
func forward(x *[8]int32) {
	s0, s1, s2, s3 := x[0]+x[7], x[1]+x[6], x[2]+x[5], x[3]+x[4]
	d0, d1, d2, d3 := x[0]-x[7], x[1]-x[6], x[2]-x[5], x[3]-x[4]
	x[0], x[4] = s0+s3+s1+s2, s0+s3-s1-s2
	a, b := s0-s3, s1-s2
	x[2], x[6] = a*even20+b*even21, a*even60+b*even61
	x[1] = d0*odd10 + d1*odd11 + d2*odd12 + d3*odd13
	x[3] = d0*odd30 + d1*odd31 + d2*odd32 + d3*odd33
	x[5] = d0*odd50 + d1*odd51 + d2*odd52 + d3*odd53
	x[7] = d0*odd70 + d1*odd71 + d2*odd72 + d3*odd73
}

// fdct sets c to 8 times the DCT of 8×8 samples, as libjpeg does it: rows first, with 2 more bits kept between the
// passes.
func fdct(c *[64]int16, samples []byte, stride int) {
	var pass [64]int32
	var x [8]int32
	for j := range 8 {
		row := samples[j*stride:][:8]
		for i := range 8 {
			x[i] = int32(row[i]) - 128
		}
		forward(&x)
		for i := range 8 {
			if i&3 == 0 {
				pass[8*j+i] = x[i] << 2
			} else {
				pass[8*j+i] = (x[i] + 1<<10) >> 11
			}
		}
	}
	for i := range 8 {
		for j := range 8 {
			x[j] = pass[8*j+i]
		}
		forward(&x)
		for j := range 8 {
			if j&3 == 0 {
				c[8*j+i] = int16((x[j] + 2) >> 2)
			} else {
				c[8*j+i] = int16((x[j] + 1<<14) >> 15)
			}
		}
	}
}

// divisors divide coefficients by 8 times the numbers of a quantization table: the absolute value and half of the
// number, times factor, times scale, the upper 16 bits of each product. With a factor of 16 bits that is exact for what
// is below 2¹⁴, as coefficients of 8-bit samples are.
type divisors struct{ half, factor, scale [64]uint16 }

func (d *divisors) set(quant *[64]uint16) {
	for k, q := range quant {
		n := 8 * uint32(q)
		log := bits.Len32(n - 1)
		d.half[k] = uint16(n / 2)
		d.factor[k] = uint16((uint32(1)<<(15+log) + n - 1) / n)
		d.scale[k] = 1 << (17 - log)
	}
}

// quantize divides coefficients; halves are rounded away from 0.
func (d *divisors) quantize(c *[64]int16) {
	for k := range c {
		v := int32(c[k])
		sign := v >> 31
		q := (uint32((v^sign)-sign) + uint32(d.half[k])) * uint32(d.factor[k]) >> 16 * uint32(d.scale[k]) >> 16
		c[k] = int16((int32(q) ^ sign) - sign)
	}
}

// transform sets the coefficients of a row of MCUs.
func (p *plane) transform() {
	n := p.stride / 8 // blocks in a row
	for v := range p.v {
		samples, c := p.samples[8*v*p.stride:], p.coefficients[64*v*n:]
		if haveAVX2 {
			for x := 0; x < n; x += 2 { // one too many, if the number is odd, which is overwritten or not used
				_, _ = samples[8*x+7*p.stride+15], c[64*x+127]
				fdct2AVX2(&c[64*x], &samples[8*x], p.stride, &p.divide)
			}
			continue
		}
		for x := range n {
			block := (*[64]int16)(c[64*x:])
			fdct(block, samples[8*x:], p.stride)
			p.divide.quantize(block)
		}
	}
}
