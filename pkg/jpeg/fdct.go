package jpeg

import "math/bits"

// forward is the DCT of x in one direction: coefficients 0 and 4 without bits after the point, the others with 13.
func forward(x *[8]int32) (y [8]int32) {
	var s, d [4]int32
	for i := range 4 {
		s[i], d[i] = x[i]+x[7-i], x[i]-x[7-i]
	}
	a, b := s[0]+s[3], s[1]+s[2]
	y[0], y[4] = a+b, a-b
	a, b = s[0]-s[3], s[1]-s[2]
	y[2] = a*even[0][0] + b*even[0][1]
	y[6] = a*even[1][0] + b*even[1][1]
	for i := range odd {
		f := &odd[i]
		y[2*i+1] = d[0]*f[0] + d[1]*f[1] + d[2]*f[2] + d[3]*f[3]
	}
	return y
}

// fdct sets c to 8 times the DCT of 8×8 samples, as libjpeg does it: rows first, with 2 more bits kept between the passes.
func fdct(c *coefficients, samples []byte, stride int) {
	var pass [64]int32
	var x [8]int32
	for j := range 8 {
		row := samples[j*stride:][:8]
		for i := range 8 {
			x[i] = int32(row[i]) - 128
		}
		y := forward(&x)
		for i := range 8 {
			if i&3 == 0 {
				pass[8*j+i] = y[i] << 2
			} else {
				pass[8*j+i] = (y[i] + 1<<10) >> 11
			}
		}
	}
	for i := range 8 {
		for j := range 8 {
			x[j] = pass[8*j+i]
		}
		y := forward(&x)
		for j := range 8 {
			if j&3 == 0 {
				c[8*j+i] = int16((y[j] + 2) >> 2)
			} else {
				c[8*j+i] = int16((y[j] + 1<<14) >> 15)
			}
		}
	}
}

// divisor divides numbers below 2¹⁶ by multiplication: by 8 times a number of the quantization table, with rounding.
type divisor struct{ factor, half uint32 }

const divisorShift = 32

func divisorOf(q uint16) divisor {
	d := 8 * uint32(q)
	return divisor{uint32((1<<divisorShift + uint64(d) - 1) / uint64(d)), d / 2}
}

// quantize divides coefficients by those of the table; halves are rounded away from 0.
func (p *plane) quantize(c *coefficients) {
	for k := range p.divide {
		d := &p.divide[k]
		v := int32(c[k])
		sign := v >> 31
		q, _ := bits.Mul32(uint32((v^sign)-sign)+d.half, d.factor)
		c[k] = int16((int32(q) ^ sign) - sign)
	}
}
