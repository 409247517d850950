package jpeg

// load copies a row of MCUs, from image row first on, into the planes. Samples beyond the image repeat its last column
// and row.
func (e *Encoder) load(src []byte, first int) {
	wide := e.planes[0].stride
	for j := range 8 * e.v {
		y := min(first+j, e.height-1)
		row := src[y*e.width*e.n:][:e.width*e.n]
		if e.tables == 2 {
			fromRGB(e.planes[0].all[j*wide:], e.planes[1].all[j*wide:], e.planes[2].all[j*wide:], row)
		} else {
			for i := range e.n {
				every(e.planes[i].all[j*wide:][:e.width], row[i:], e.n)
			}
		}
		for i := range e.n {
			samples := e.planes[i].all[j*wide:][:wide]
			for x := e.width; x < wide; x++ {
				samples[x] = samples[e.width-1]
			}
		}
	}
	for i := range e.n {
		if p := &e.planes[i]; p.h < e.h {
			for j := range 8 {
				average(p.samples[j*p.stride:][:p.stride], p.all[j*e.v*wide:], wide, e.v)
			}
		}
	}
}

// every takes every nth byte.
func every(dst, src []byte, n int) {
	for i := range dst {
		dst[i] = src[n*i]
	}
}

// average computes a row of averages of 2 columns and v rows, rounding halves up and down alternately, as
// libjpeg does.
func average(dst, src []byte, stride, v int) {
	if v == 1 {
		for i := range dst {
			dst[i] = byte((int(src[2*i]) + int(src[2*i+1]) + i&1) >> 1)
		}
		return
	}
	below := src[stride:]
	for i := range dst {
		dst[i] = byte((int(src[2*i]) + int(src[2*i+1]) + int(below[2*i]) + int(below[2*i+1]) + 1 + i&1) >> 2)
	}
}

// fromRGB converts pixels to YCbCr, in 16 bits after the point.
func fromRGB(y, cb, cr, rgb []byte) {
	n := len(rgb) / 3
	y, cb, cr = y[:n], cb[:n], cr[:n]
	for i := range y {
		r, g, b := int32(rgb[3*i]), int32(rgb[3*i+1]), int32(rgb[3*i+2])
		y[i] = byte((19595*r + 38470*g + 7471*b + 1<<15) >> 16)
		cb[i] = byte((-11059*r - 21709*g + 32768*b + 128<<16 + 1<<15 - 1) >> 16)
		cr[i] = byte((32768*r - 27439*g - 5329*b + 128<<16 + 1<<15 - 1) >> 16)
	}
}
